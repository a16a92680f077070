"""Completed, failed or ongoing: by the numbers of the requirements."""

from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

from logkeep.checkpoint.aggregation import CanComplete, MustFail, StillOngoing, aggregate
from logkeep.checkpoint.partition_copy import PartitionCopy, encode
from logkeep.repository.backups.detached_backup import derived_failure
from logkeep.repository.backups.journal import BackupRequest
from logkeep.repository.chain.owner import this_process

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
NONCE = "00112233445566aa"


def whole(partition: int, term: int = 1, **changes: Any) -> PartitionCopy:
    facts: dict[str, Any] = {"position": 12, "cut_end": 13, "state_digest": "d", "nonce": NONCE, "history": 1} | changes
    return PartitionCopy(partition=partition, term=term, outcome="completed", **facts)


def failed(partition: int, term: int = 1, reason: str = "disk full") -> PartitionCopy:
    return PartitionCopy(partition=partition, term=term, history=1, nonce=NONCE, outcome="failed", reason=reason)


def verdict(*copies: PartitionCopy, now: datetime = NOW) -> StillOngoing | CanComplete | MustFail:
    return aggregate(2, NONCE, LATER, copies, now)


def test_r39_copies_of_two_terms_stay_apart_and_either_is_enough() -> None:
    first, second = whole(0, 1, bytes=7), whole(0, 2, bytes=7)
    assert verdict(second, whole(1), first) == CanComplete((first, whole(1)))


def test_r40_completed_needs_every_partition() -> None:
    assert verdict(whole(0), whole(1)) == CanComplete((whole(0), whole(1)))
    assert verdict(whole(1)) == StillOngoing((0,))
    assert verdict(whole(0), whole(0, 2), whole(5)) == StillOngoing((1,))


def test_r41_one_failed_partition_fails_the_backup_with_its_reason() -> None:
    assert verdict(whole(0), failed(1)) == MustFail("disk full", 1)
    assert verdict(failed(1, 1, "old"), failed(1, 2, "new")) == MustFail("new", 1)


def test_r10_failed_is_final_for_those_who_decide_and_for_readers() -> None:
    """Whatever another leader of the partition stores later, and in whatever order receipts are listed."""
    stored = [failed(0, 1, "store down"), whole(0, 2), whole(1)]
    request = BackupRequest(
        repository="", source="", id=1, owner=this_process(""), started="", base=None, fence=0,
        options={"nonce": NONCE, "deadline": LATER.isoformat(), "partitions": "2"},
    )  # fmt: skip
    for copies in permutations(stored):
        assert verdict(*copies) == MustFail("store down", 0)
        assert derived_failure(request, map(encode, copies), NOW) == "partition 0: store down"
    both = [encode(failed(1, 1, "old")), encode(failed(1, 2, "new"))]
    assert derived_failure(request, both, NOW) == "partition 1: new"
    assert derived_failure(request, map(encode, stored[1:]), NOW) is None


def test_r42_ongoing_while_one_is_missing_and_none_failed() -> None:
    assert verdict() == StillOngoing((0, 1))
    assert verdict(whole(0), now=LATER - timedelta(seconds=1)) == StillOngoing((1,))


def test_at_the_deadline_a_missing_partition_is_named() -> None:
    found = verdict(whole(0), now=LATER)
    assert isinstance(found, MustFail)
    assert (found.partition, "no copy at the deadline 2026-01-01T01:00:00" in found.reason) == (1, True)


def test_whole_at_the_deadline_is_completed() -> None:
    assert verdict(whole(0), whole(1), now=LATER) == CanComplete((whole(0), whole(1)))


def test_a_copy_for_another_request_of_this_id_does_not_count() -> None:
    assert verdict(whole(0, nonce="ffffffffffffffff"), whole(1)) == StillOngoing((0,))


def test_two_whole_copies_that_differ_fail_the_backup() -> None:
    for other in ({"state_digest": "x"}, {"position": 14}, {"cut_end": 14}):
        found = verdict(whole(0), whole(0, 2, **other), whole(1))
        assert isinstance(found, MustFail)
        assert found.partition == 0
