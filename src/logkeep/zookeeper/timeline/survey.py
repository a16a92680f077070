"""Reads what a plan needs from the logs: ends of epochs inside them, where members disagree, times.

`survey` returns the `Holdings` that the planning modules work on. Logs are read forward in chunks, and only a few
numbers stay in memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Final

import msgspec
import numpy as np

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.zookeeper.agreement import same_transaction
from logkeep.formats.zookeeper.names import epoch_of
from logkeep.formats.zookeeper.txnlog import TransactionColumns, tables
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.spans import overlap, runs_of
from logkeep.zookeeper.timeline.holdings import Dispute, Holdings

_FRAME_BYTES: Final = 12
_END_MARK_BYTES: Final = 1


def survey(
    view: BackupView, *, voters: int | None = None, without: Sequence[ArchivedLog | ArchivedSnapshot] = ()
) -> Holdings:
    """`without`: files that are known to be damaged and must not be planned with."""
    held = survey_without_disputes(view, voters=voters, without=without)
    return replace(held, disputed=tuple(disputes(view, held.logs)))


def survey_without_disputes(
    view: BackupView, *, voters: int | None = None, without: Sequence[ArchivedLog | ArchivedSnapshot] = ()
) -> Holdings:
    """Does not compare members' logs, which reads each log once for every other log that it overlaps."""
    logs = tuple(_with_borders(view, log) for log in view.logs if log not in without)
    snapshots = tuple(snapshot for snapshot in view.snapshots if snapshot not in without)
    return Holdings(snapshots, logs, tuple(view.members), (), voters)


def _with_borders(view: BackupView, log: ArchivedLog) -> ArchivedLog:
    if log.borders or epoch_of(log.first) == epoch_of(log.last):
        return log
    try:
        with view.open(log) as source:
            return msgspec.structs.replace(log, borders=borders_in(record.zxid for record in tables(source)))
    except (Damaged, ObjectMissing):  # a plan does not verify: its replay will find the damage
        return log


def borders_in(columns: Iterator[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> tuple[tuple[int, int], ...]:
    """The changes of the epoch in the zxids of a log, which come in pieces."""
    found: list[tuple[int, int]] = []
    last: int | None = None
    for zxids in columns:
        if last is not None and last >> 32 != int(zxids[0]) >> 32:
            found.append((last, int(zxids[0])))
        changes = np.flatnonzero(np.diff(zxids >> 32))
        found += [(int(zxids[at]), int(zxids[at + 1])) for at in changes]
        last = int(zxids[-1])
    return tuple(found)


def disputes(view: BackupView, logs: Sequence[ArchivedLog]) -> Iterator[Dispute]:
    """Compare the bytes of every record that is in two logs."""
    for left, right in to_compare(logs):
        for first, last in differing(view, left, right):
            yield Dispute(left.history, first, last, frozenset({left.member, right.member}))


def to_compare(logs: Sequence[ArchivedLog]) -> Iterator[tuple[ArchivedLog, ArchivedLog]]:
    """Pairs of logs with common zxids of one history. Pairs with equal bytes are left out."""
    for left, right in combinations(logs, 2):
        meet = left.history == right.history and overlap((left.first, left.last), (right.first, right.last))
        if meet and not (left.sha256 and left.sha256 == right.sha256):
            yield left, right


def differing(view: BackupView, left: ArchivedLog, right: ArchivedLog) -> Iterator[tuple[int, int]]:
    """First and last of each run of records that are in both and differ."""
    yield from runs_of(_differing(view, left, right))


def _differing(view: BackupView, left: ArchivedLog, right: ArchivedLog) -> Iterator[int]:
    """Zxids of records that are in both and differ. Nothing after damage is compared: other checks report damage."""
    try:
        with view.open(left) as one, view.open(right) as other:
            for _, differing in compared(tables(one), tables(other)):
                yield from differing
    except (Damaged, ObjectMissing):
        return


def compared(one: Iterator[TransactionColumns], other: Iterator[TransactionColumns]) -> Iterator[tuple[int, list[int]]]:
    """Number of common records and the zxids of those that differ, for some megabytes at a time."""
    a, b = next(one, None), next(other, None)
    while a is not None and b is not None:
        yield _compared(a, b)
        if a.zxid[-1] <= b.zxid[-1]:
            a = next(one, None)
        else:
            b = next(other, None)


def _compared(a: TransactionColumns, b: TransactionColumns) -> tuple[int, list[int]]:
    """Common records are adjacent in both, so whole runs of bytes are compared at once."""
    from_a, from_b = _within(a, b), _within(b, a)
    common, of_a, of_b = np.intersect1d(a.zxid[from_a], b.zxid[from_b], assume_unique=True, return_indices=True)
    of_a, of_b = of_a + from_a.start, of_b + from_b.start
    differing: list[int] = []
    jumps = np.flatnonzero((np.diff(of_a) != 1) | (np.diff(of_b) != 1)) + 1
    for start, end in pairwise([0, *jumps.tolist(), len(common)]):
        rows_a, rows_b = of_a[start:end].tolist(), of_b[start:end].tolist()
        if rows_a and not np.array_equal(_bytes_of(a, rows_a[0], rows_a[-1]), _bytes_of(b, rows_b[0], rows_b[-1])):
            pairs = zip(rows_a, rows_b, strict=True)
            differing += [int(a.zxid[of]) for of, at in pairs if not same_transaction(_body(a, of), _body(b, at))]
    return len(common), differing


def _within(records: TransactionColumns, others: TransactionColumns) -> slice:
    """The rows from the first of the others to their last; one of the two may be very short."""
    start = int(np.searchsorted(records.zxid, others.zxid[0]))
    return slice(start, int(np.searchsorted(records.zxid, others.zxid[-1], "right")))


def _bytes_of(records: TransactionColumns, first: int, last: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    start = int(records.body_at[first]) - _FRAME_BYTES
    end = int(records.body_at[last]) + int(records.body_bytes[last]) + _END_MARK_BYTES
    return np.frombuffer(records.data, np.uint8)[start:end]


def _body(records: TransactionColumns, row: int) -> bytes:
    start = int(records.body_at[row])
    return bytes(records.data[start : start + int(records.body_bytes[row])])


class LogTimes:
    """Times of transactions, read from the logs on demand."""

    def __init__(self, view: BackupView) -> None:
        self._view = view
        self._known: dict[tuple[ArchivedLog, int], int | None] = {}

    def time_of(self, log: ArchivedLog, zxid: int) -> int | None:
        if (log, zxid) not in self._known:
            self._known[log, zxid] = self._read(log, zxid)
        return self._known[log, zxid]

    def _read(self, log: ArchivedLog, zxid: int) -> int | None:
        for records in self._tables(log):
            if records.zxid[-1] >= zxid:
                at = int(np.searchsorted(records.zxid, zxid))
                return int(records.time_ms[at]) if records.zxid[at] == zxid else None
        return None

    def first_later(self, log: ArchivedLog, first: int, last: int, time_ms: int) -> tuple[int, int] | None:
        for records in self._tables(log):
            later = (records.time_ms > time_ms) & (records.zxid >= first) & (records.zxid <= last)
            if later.any():
                at = int(np.argmax(later))
                return int(records.zxid[at]), int(records.time_ms[at])
        return None

    def _tables(self, log: ArchivedLog) -> Iterator[TransactionColumns]:
        """The readable records; a plan does not verify: its replay will find the damage."""
        try:
            with self._view.open(log) as source:
                yield from tables(source)
        except (Damaged, ObjectMissing):
            return
