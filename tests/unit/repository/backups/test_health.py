"""Whether a backup counts as damaged, by the names of its verifications."""

from datetime import UTC, datetime

import pytest

from logkeep.model.ids import BackupId
from logkeep.repository.backups.verdicts import verdicts
from logkeep.repository.chain.layout import VerificationName


def looked(*history: tuple[str, str]) -> bool:
    found = [
        VerificationName(BackupId(1), f"2026111{n}T", level, verdict) for n, (level, verdict) in enumerate(history)
    ]
    return verdicts(found)[BackupId(1)].damaged


def test_damage_stands_until_a_look_as_deep_finds_none() -> None:
    assert looked(("data", "damaged"))
    assert looked(("data", "damaged"), ("files", "good"))
    assert not looked(("data", "damaged"), ("data", "good"))
    assert not looked(("files", "damaged"), ("data", "good"))
    assert looked(("data", "good"), ("files", "damaged"))
    assert looked(("from-the-future", "damaged"), ("data", "good"))
    assert not looked(("files", "good"))


def test_a_clock_that_is_ahead_hides_no_damage_that_is_found_later() -> None:
    def stored(when: str, verdict: str, hour: int) -> VerificationName:
        return VerificationName(BackupId(1), when, "data", verdict, datetime(2026, 11, 15, hour, tzinfo=UTC))

    ahead = stored("20301115T090000000000Z", "good", 10)
    damage, repaired = (stored(f"20261115T{h}0000000000Z", v, h) for h, v in ((11, "damaged"), (12, "good")))
    assert verdicts([ahead, damage])[BackupId(1)].damaged
    assert not verdicts([ahead, damage, repaired])[BackupId(1)].damaged
    assert verdicts([ahead])[BackupId(1)].time == datetime(2026, 11, 15, 10, tzinfo=UTC)
    assert not verdicts([stored("20301115T090000000000Z", "damaged", 10), repaired])[BackupId(1)].damaged


@pytest.mark.parametrize("hour", [10, 11, 12])
def test_a_copied_repository_keeps_the_order_of_its_verifications(hour: int) -> None:
    """All objects of a copy may be stored at one time, or in another order, long after they were written."""
    found = [
        VerificationName(
            BackupId(1), "20261115T110000000000Z", "data", "damaged", datetime(2026, 12, 1, 11, tzinfo=UTC)
        ),
        VerificationName(
            BackupId(1), "20261115T120000000000Z", "data", "good", datetime(2026, 12, 1, hour, tzinfo=UTC)
        ),
    ]
    assert not verdicts(found)[BackupId(1)].damaged
