"""Requests and copies as stored text, and which part of a log a copy archives."""

from datetime import UTC, datetime

import pytest

from logkeep.checkpoint.archive.copy_plan import CopyPlan, plan_copy
from logkeep.checkpoint.partition_copy import CopyRequest, PartitionCopy, decode, encode, options_of, request_from
from logkeep.errors import BackupFailed, Damaged

REQUEST = CopyRequest(
    id=7,
    application="ab" * 16,
    name="shop",
    history=2,
    partitions=4,
    nonce="0123456789abcdef",
    deadline=datetime(2026, 11, 18, 17, 0, tzinfo=UTC),
    base=3,
)


def test_a_request_is_read_as_it_was_stored() -> None:
    options = options_of(REQUEST, "2026-11-18T17:00:00.000Z")
    assert request_from(7, 3, options, "here") == REQUEST


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("deadline", "soon"),
        ("deadline", "2026-11-18T17:00:00"),
        ("deadline", "0001-01-01T00:00:00Z"),
        ("partitions", "0"),
        ("partitions", "many"),
        ("history", "-1"),
        ("nonce", "x"),
        ("application", ""),
        ("on_failover", "pray"),
    ],
)
def test_a_hostile_request_is_refused(option: str, value: str) -> None:
    options = options_of(REQUEST, "2026-11-18T17:00:00.000Z") | {option: value}
    with pytest.raises(Damaged):
        request_from(7, 3, options, "here")
    del options[option]
    with pytest.raises(Damaged):
        request_from(7, 3, options, "here")


BASE = PartitionCopy(
    partition=0,
    term=1,
    history=2,
    nonce="n",
    outcome="completed",
    position=99,
    cut_end=100,
    log_start=40,
    snapshot_position=60,
)


def test_a_copy_is_read_as_it_was_stored() -> None:
    copy = PartitionCopy(
        partition=0, term=1, history=2, nonce="n", outcome="completed", external={"zk": 4}, checkpoints=((7, 99, 100),)
    )
    assert decode(encode(copy), "here") == copy
    for hostile in ("", "{", "[]", '{"partition":-1}', encode(copy)[:-1] + ',"more":1}', "[" * 5000):
        with pytest.raises(Damaged):
            decode(hostile, "here")


def _plan(base: PartitionCopy | None, start: int, snapshot: int, history: int = 2) -> CopyPlan:
    return plan_copy(base, history=history, local_start=start, snapshot_position=snapshot, cut_end=200)


def test_a_copy_continues_the_log_of_its_base() -> None:
    assert _plan(None, 0, -1) == CopyPlan(0, 0, snapshot_archived=False)
    assert _plan(BASE, 50, 150) == CopyPlan(100, 100, snapshot_archived=False)
    assert _plan(BASE, 50, 60) == CopyPlan(100, 61, snapshot_archived=True)
    assert _plan(BASE, 100, 150) == CopyPlan(100, 100, snapshot_archived=False)


def test_another_history_is_copied_from_the_local_start() -> None:
    assert _plan(BASE, 50, 60, history=3) == CopyPlan(50, 50, snapshot_archived=False)


def test_a_span_that_was_compacted_before_it_was_archived_is_lost() -> None:
    assert _plan(BASE, 120, 150) == CopyPlan(120, 120, snapshot_archived=False, lost=((100, 120),))


@pytest.mark.parametrize(("base", "start", "snapshot"), [(None, 5, -1), (BASE, 120, 110), (BASE, 50, 20)])
def test_a_state_that_cannot_be_rebuilt_is_refused(base: PartitionCopy | None, start: int, snapshot: int) -> None:
    with pytest.raises(BackupFailed):
        _plan(base, start, snapshot)
