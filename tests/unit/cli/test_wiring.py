"""Which verbs get a store that refuses writes."""

from pathlib import Path
from typing import Any

import pytest

from logkeep.cli import wiring
from logkeep.cli.wiring import named_backup
from logkeep.config.load import load
from logkeep.config.option import Option
from logkeep.config.places import NOWHERE
from logkeep.errors import UsageError
from logkeep.repository.access import Repository, open_repository
from logkeep.store.base import Store
from logkeep.store.readonly import ReadOnlyStore
from tests.support.cli.filled_repository import fill
from tests.support.cli.in_process import Here


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Store]:
    """The stores that repositories were opened with."""
    stores: list[Store] = []

    def recorded(store: Store) -> Repository:
        stores.append(store)
        return open_repository(store)

    monkeypatch.setattr(wiring, "open_repository", recorded)
    return stores


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("list",), 0),
        (("info", "latest"), 0),
        (("status",), 0),
        (("receipts", "list"), 0),
        (("receipts", "show", "latest"), 40),
        (("kafka", "groups", "latest"), 40),
    ],
)
def test_verbs_that_only_read_cannot_write(
    arguments: tuple[str, ...], code: int, tmp_path: Path, opened: list[Store]
) -> None:
    fill(tmp_path)
    here = Here(tmp_path)
    before = here.tree()
    here.run(*arguments, code=code)
    assert opened
    assert all(isinstance(store, ReadOnlyStore) for store in opened)
    assert here.tree() == before


@pytest.mark.parametrize(
    "arguments", [("verify",), ("hold", "latest"), ("repair", "--dry-run"), ("prune", "--dry-run")]
)
def test_verbs_that_store_results_can_write(arguments: tuple[str, ...], tmp_path: Path, opened: list[Store]) -> None:
    fill(tmp_path)
    Here(tmp_path).run_any(*arguments)
    assert opened
    assert not any(isinstance(store, ReadOnlyStore) for store in opened)


def test_what_replaces_data_never_chooses_a_backup_by_itself() -> None:
    assert named_backup("2026", "logkeep kafka restore") == "2026"
    with pytest.raises(UsageError, match="name the backup") as refused:
        named_backup(None, "logkeep kafka restore")
    assert "logkeep kafka restore latest" in refused.value.remedy


class _Run:
    """The settings of a call with these flags."""

    def __init__(self, flags: dict[str, object]) -> None:
        self.settings = load(flags, {}, NOWHERE).settings

    def __getitem__(self, option: Option[Any]) -> object:
        return self.settings[option]


@pytest.mark.parametrize(("flags", "patient"), (({}, False), ({"--retry-for": "2m"}, True)))
def test_a_refused_connection_is_waited_for_when_the_user_says_how_long(
    flags: dict[str, object], patient: bool
) -> None:
    """The same two minutes as a default mean that a wrong endpoint is reported within seconds."""
    limits = wiring._retry_limits(_Run(flags))  # type: ignore[arg-type]  # only settings are read
    assert limits.total_s == 120
    assert (limits.lasting_s >= limits.first_contact_s) is patient
