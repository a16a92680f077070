"""When keys that are gone from the live log are a fault of the backup, and what is reported of them."""

import hashlib
from uuid import UUID

import msgspec
import pytest

from logkeep.formats.compare.log_compare import LogComparison
from logkeep.kafka.deletions.returning_task import KeysFound, ReturningKey
from logkeep.kafka.record.deletion_times import DeletionTimes
from logkeep.kafka.record.documents import PartitionRecord
from logkeep.kafka.verify.compare_task import compared_pieces
from logkeep.kafka.verify.deleted_keys import deleted_before_cut, findings_of
from logkeep.kafka.verify.findings import NOT_COMPARED
from logkeep.kafka.verify.records import SegmentRange
from logkeep.model.clock_time import ClockName, ClockTime
from logkeep.model.findings import Severity
from logkeep.model.segments import Collection, LogName, Segment

LOG = LogName(Collection.TOPICS, "users", UUID(int=5).hex, 0)
HOUR, DAY = 3_600_000, 86_400_000
KEY = ReturningKey(log="users/0", key_sha256=hashlib.sha256(b"secret").hexdigest(), offsets=(4, 7), key="secret")


def _found(*, dense: bool = False, at_ms: int = 100 * HOUR, clock: ClockName = ClockName.BROKER) -> KeysFound:
    return KeysFound(log=LOG, keys=1, records=2, listed=(KEY,), later_dense=dense, read=ClockTime(at_ms, clock))


def _log(deletions: DeletionTimes | None) -> PartitionRecord:
    made = PartitionRecord(topic="users", partition=0, history=LOG.history, start=0, end=9, last_stable=9, last_epoch=0)
    return msgspec.structs.replace(made, deletions=deletions)


def _times(*, unproven: bool = False) -> DeletionTimes:
    hull = (0, 9) if unproven else (-1, -1)
    return DeletionTimes(
        cut_ms=10 * HOUR, clock=ClockName.BROKER, retention_ms=DAY, unproven_from=hull[0], unproven_to=hull[1]
    )


@pytest.mark.parametrize(
    ("times", "found", "fault"),
    [
        (_times(), _found(), False),
        (_times(unproven=True), _found(), True),
        (_times(), _found(dense=True), True),
        (_times(), _found(at_ms=12 * HOUR), True),
        (_times(), _found(at_ms=9 * HOUR), False),
        (_times(), _found(at_ms=12 * HOUR, clock=ClockName.OWN), False),
        (None, _found(), False),
        (None, _found(dense=True), True),
    ],
    ids=[
        "proven: deleted since",
        "unproven",
        "no deletion after the cut can be missing",
        "its tombstone would still be there",
        "a clock that went back",
        "another clock",
        "proven by its rows: deleted since",
        "proven by its rows, and none is missing after the cut",
    ],
)
def test_deleted_before_the_cut(times: DeletionTimes | None, found: KeysFound, fault: bool) -> None:
    assert deleted_before_cut(found, _log(times)) is fault


def test_a_finding_names_offsets_and_hashes_and_never_a_key() -> None:
    for before_cut, code, severity in (
        (True, "deleted-keys-return", Severity.WARNING),
        (False, "deleted-since", Severity.NOTE),
    ):
        (finding,) = findings_of(_found(), before_cut=before_cut)
        assert (finding.code, finding.severity, finding.where) == (code, severity, "users/0")
        assert f"offset 4, key with SHA-256 {KEY.key_sha256}" in finding.what
        assert b"secret" not in msgspec.json.encode(finding)


def test_nothing_is_reported_of_a_log_without_such_keys() -> None:
    none = msgspec.structs.replace(_found(), keys=0, records=0, listed=())
    assert findings_of(none, before_cut=True) == []


def test_a_log_that_could_not_be_read_is_not_called_good() -> None:
    broken = msgspec.structs.replace(_found(), problem="the leader changed")
    assert [f.code for f in findings_of(broken, before_cut=True)] == ["not-comparable"]


def test_a_log_that_was_lost_while_it_was_compared_beside_is_reported_once() -> None:
    rows = [Segment.without_object(LOG, at, at + 5, f"{at:016x}") for at in (0, 5)]
    pieces = [SegmentRange(row, f"{row.token}.log", row.start, row.end) for row in rows]
    compared = (LogComparison(identical=5), LogComparison(identical=2, missing=1))
    keys = msgspec.structs.replace(_found(), problem="gone", compared=compared)
    found = compared_pieces(pieces, keys.compared)
    assert (found.identical, found.equal) == (7, 0)
    findings = [*findings_of(keys, before_cut=True), *found.findings]
    assert [f.code for f in findings] == [NOT_COMPARED, "source-differs"]
    assert findings[0].what == "not compared with the live log: gone"
    whole = compared_pieces(pieces, [LogComparison(identical=5), LogComparison(equal=5)])
    assert (whole.identical, whole.equal, whole.findings) == (5, 5, [])


def test_a_log_that_was_lost_behind_the_cut_was_compared_up_to_it() -> None:
    keys = msgspec.structs.replace(_found(), later_problem="gone", compared=(LogComparison(identical=5),))
    assert [f.what for f in findings_of(keys, before_cut=True)] == ["not compared with the keys that are live: gone"]
