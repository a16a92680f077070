"""The task that compares archived segments with the live log: every record that the source still has must be archived.

Both sides are read forward in pieces of some megabytes. Each step compares up to the offset that both pieces reach and
then replaces the piece that is finished, so memory is two pieces and their decoded records.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from uuid import UUID

import msgspec

from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.formats.compare.log_compare import END, LogComparison
from logkeep.formats.kafka.batches import BatchStretch
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.retry import Pause, ProgressBackoff
from logkeep.kafka.logs.brokers import Brokers
from logkeep.kafka.logs.live import LiveLogs, LiveRange, Lost
from logkeep.kafka.verify.findings import not_compared, source_differs
from logkeep.kafka.verify.records import SegmentRange
from logkeep.model.findings import Finding
from logkeep.model.work import Progress
from logkeep.repository.segments.log_batches import LogPieces
from logkeep.repository.segments.reader import StoredLog
from logkeep.repository.verify.checks import CheckedObjects
from logkeep.store.base import Store


class LivePiece(msgspec.Struct, frozen=True):
    """A segment, and the first offset that the source still has of its log."""

    piece: SegmentRange
    topic_id: UUID
    start: int

    @property
    def range(self) -> LiveRange:
        log = self.piece.segment.log
        return LiveRange(log.name, self.topic_id, log.partition, max(self.start, self.piece.start), self.piece.end)


class CompareUnit(msgspec.Struct, frozen=True):
    """Segments of partitions that one broker leads."""

    store: Store
    brokers: Brokers
    broker: int
    pieces: list[LivePiece]
    limits: FetchLimits = msgspec.field(default_factory=FetchLimits)

    @property
    def bytes(self) -> int:
        return sum(p.piece.segment.stored_bytes for p in self.pieces)


class CompareResult(msgspec.Struct, frozen=True):
    findings: list[Finding]
    identical: int
    equal: int


def compare_pieces(unit: CompareUnit, progress: Progress) -> CompareResult:
    """Compare the unit's segments. Raises ClusterUnreachable, ClusterNotReady, NotAuthorised or a StoreError."""
    return compare_with(unit, progress, time.sleep)


def compare_with(unit: CompareUnit, progress: Progress, pause: Pause) -> CompareResult:
    """The same with the pause as an argument."""
    checked, identical, equal = CheckedObjects([]), 0, 0
    with closing(LiveLogs(unit.brokers, unit.broker, unit.limits, ProgressBackoff(pause))) as logs:
        for wanted in unit.pieces:
            compared = LogComparison()
            lost = _compare(unit, logs, wanted, compared)
            _report(wanted.piece, compared, lost, checked)
            identical, equal = identical + compared.identical, equal + compared.equal
            progress(wanted.piece.segment.stored_bytes)
    return CompareResult(checked.findings, identical, equal)


def compared_pieces(pieces: Sequence[SegmentRange], compared: Sequence[LogComparison]) -> CompareResult:
    """The result for the pieces of a log that another task has compared. That task reports why it ended early. Pure."""
    checked = CheckedObjects([])
    for piece, found in zip(pieces, compared, strict=True):
        _report(piece, found, "", checked)
    return CompareResult(checked.findings, sum(c.identical for c in compared), sum(c.equal for c in compared))


def _compare(unit: CompareUnit, logs: LiveLogs, wanted: LivePiece, compared: LogComparison) -> str:
    """Compare both logs; returns why that ended early, or nothing."""
    live, archived = logs.read(wanted.range, unit.broker), _archived(unit.store, wanted.piece)
    at, end = wanted.range.start, wanted.range.end
    try:
        here, there = next(live, END), next(archived, END)
        while at < end and here is not END:
            if isinstance(here, Lost):
                return here.reason
            border = min(here.last, there.last, end - 1) + 1
            compared.compare(here, there, at, border)
            at = border
            if there.last < at:
                there = next(archived, END)
            if here.last < at:
                here = next(live, END)
    except (ObjectMissing, Damaged, UnsafeName) as error:
        return f"its archived bytes cannot be read: {error.what}"
    return ""


def _archived(store: Store, piece: SegmentRange) -> Iterator[BatchStretch]:
    """The batches of a segment; a row without an object has none."""
    if not piece.segment.has_object:
        return
    pieces = LogPieces()
    for plain in StoredLog.expected(store, piece.expected).pieces():
        yield from (BatchStretch(buffer, batches) for buffer, batches in pieces.take(plain) if len(batches))


def _report(piece: SegmentRange, compared: LogComparison, lost: str, checked: CheckedObjects) -> None:
    """The archived bytes are whole, or the level `records` has found their damage: here the source is judged."""
    log = piece.segment.log
    if compared.missing:
        more = f" and {compared.missing - 1} more up to {piece.end - 1}" if compared.missing > 1 else ""
        what = f"offset {compared.first_missing}{more} is in the source and not in the archive"
        checked.findings.append(source_differs(log, f"{what} (archived in {piece.name})"))
    if compared.differing:
        more = f" and {compared.differing - 1} more" if compared.differing > 1 else ""
        what = f"the record at offset {compared.first_differing}{more} is different in the source"
        checked.findings.append(source_differs(log, f"{what} (archived in {piece.name})"))
    for reason in filter(None, (lost, compared.unreadable)):
        checked.findings.append(not_compared(log, reason))
