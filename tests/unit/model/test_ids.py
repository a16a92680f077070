"""Ids of backups and names of sources."""

from datetime import UTC, datetime

import pytest

from logkeep.errors import UnknownBackup, UsageError
from logkeep.model.ids import BackupId, choose_id, next_id, source_name

NOW = datetime(2026, 11, 15, 10, 30, tzinfo=UTC)
IDS = [BackupId(i) for i in (20261114020000, 20261115020000, 20261115030000)]


def test_the_default_id_is_the_time_and_always_grows() -> None:
    assert next_id(NOW, 0) == 20261115103000
    assert next_id(NOW, 20261115103000) == 20261115103001
    assert next_id(NOW, 99999999999999) == 100000000000000


def test_ids_by_number_prefix_and_latest() -> None:
    assert choose_id("latest", IDS) == IDS[-1]
    assert choose_id("20261114", IDS) == IDS[0]
    assert choose_id(str(IDS[1]), IDS) == IDS[1]
    with pytest.raises(UnknownBackup, match="fits 2 backups: 20261115020000, 20261115030000"):
        choose_id("20261115", IDS)
    for nothing in ("7", "x", "-1", ""):
        with pytest.raises(UnknownBackup):
            choose_id(nothing, IDS)
    with pytest.raises(UnknownBackup, match="no backup yet"):
        choose_id("latest", [])


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "-x", ".x", "a b", "x" * 65, "ä"])
def test_source_names_cannot_lead_anywhere(bad: str) -> None:
    with pytest.raises(UsageError):
        source_name(bad)
