"""The task that compares one folded log with its source, key by key.

The source is read once for its transactions and once for its records, the archive likewise. What is kept of a record is
a row of hashes; rows are divided by key into slices that fit into memory, and each slice is compared on its own.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from uuid import UUID

import msgspec
import numpy as np

from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.formats.compaction.barrier_kernels import TOMBSTONE
from logkeep.formats.compaction.barriers import ROW
from logkeep.formats.compaction.record_rows import Seeds, hashed_rows
from logkeep.formats.compaction.source_compare import LIVE, FoldedComparison, compare_keys, joined
from logkeep.formats.kafka.batches import BatchStretch
from logkeep.formats.kafka.record_kernels import KEY_SIZE, VALUE_SIZE
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.transactions import SettledTransactions, Settling
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.logs.archived import stretches
from logkeep.kafka.logs.brokers import Brokers
from logkeep.kafka.logs.burials import read_buried
from logkeep.kafka.logs.live import LiveLogs, LiveRange, Lost
from logkeep.kafka.logs.row_slices import RowSlices
from logkeep.kafka.verify.compare_task import CompareResult
from logkeep.kafka.verify.findings import not_compared, source_differs
from logkeep.model.findings import Finding
from logkeep.model.segments import LogName, Segment
from logkeep.model.work import Progress
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef

_MEMORY_BYTES = 192 << 20
_SORTED_ROW_BYTES = 4 * ROW.itemsize


class FoldedCompareUnit(msgspec.Struct, frozen=True):
    """One log of the cut, and where the source begins."""

    place: SourceRef
    log: LogName
    start: int
    end: int
    segments: tuple[Segment, ...]
    buried: tuple[ObjectRef, ...]
    topic_id: UUID
    live_start: int
    brokers: Brokers
    broker: int
    seeds: Seeds
    limits: FetchLimits = msgspec.field(default_factory=FetchLimits)

    @property
    def bytes(self) -> int:
        return sum(segment.stored_bytes for segment in self.segments)


class _SourceLost(Exception):
    """The live log cannot be read to its end. The text says why."""


def compare_folded(unit: FoldedCompareUnit, progress: Progress) -> CompareResult:
    """A task. Raises errors of the cluster, or a StoreError."""
    try:
        found = _compared(unit)
    except _SourceLost as lost:
        return CompareResult([not_compared(unit.log, str(lost))], 0, 0)
    except (ObjectMissing, Damaged, UnsafeName) as error:
        return CompareResult([not_compared(unit.log, f"its archived bytes cannot be read: {error.what}")], 0, 0)
    progress(unit.bytes)
    return CompareResult(list(_differences(unit, found)), 0, found.equal)


def _compared(unit: FoldedCompareUnit) -> FoldedComparison:
    first = max(unit.start, unit.live_start)
    backoff = ProgressBackoff(time.sleep, time.monotonic)
    with ExitStack() as stack:
        logs = stack.enter_context(closing(LiveLogs(unit.brokers, unit.broker, unit.limits, backoff)))
        slices = stack.enter_context(closing(RowSlices(_slices(unit), ROW)))
        live = View(first, unit.end, _settled(_live(unit, logs, first), unit.end))
        _collect(_live(unit, logs, first), live, LIVE, unit.seeds, slices)
        archive = View(
            unit.start, unit.end, _settled(_archived(unit), unit.end), buried=read_buried(unit.place, unit.buried)
        )
        _collect(_archived(unit), archive, 0, unit.seeds, slices)
        return joined(compare_keys(rows) for rows in slices)


def _slices(unit: FoldedCompareUnit) -> int:
    """The source may have every offset of the cut."""
    most = sum(segment.records for segment in unit.segments) + unit.end - max(unit.start, unit.live_start)
    return max(1, -(-most * _SORTED_ROW_BYTES // _MEMORY_BYTES))


def _archived(unit: FoldedCompareUnit) -> Iterator[BatchStretch]:
    return stretches(unit.place, unit.segments, unit.start, unit.end)


def _live(unit: FoldedCompareUnit, logs: LiveLogs, first: int) -> Iterator[BatchStretch]:
    if first >= unit.end:
        return
    wanted = LiveRange(unit.log.name, unit.topic_id, unit.log.partition, first, unit.end)
    for part in logs.read(wanted, unit.broker):
        if isinstance(part, Lost):
            raise _SourceLost(part.reason)
        yield part


def _settled(log: Iterator[BatchStretch], end: int) -> SettledTransactions:
    settling = Settling()
    for stretch in log:
        below = stretch.touching(0, end)
        settling.take(below.buffer, below.batches)
    return settling.settled()


def _collect(log: Iterator[BatchStretch], view: View, side: int, seeds: Seeds, slices: RowSlices) -> None:
    for records in visible_records(log, view):
        rows = hashed_rows(records, seeds)
        tombstone = (records.spans[:, VALUE_SIZE] < 0) & (records.spans[:, KEY_SIZE] >= 0)
        rows["kind"] = side | np.where(tombstone, TOMBSTONE, 0)
        slices.add(rows)


def _differences(unit: FoldedCompareUnit, found: FoldedComparison) -> Iterator[Finding]:
    texts = (
        (found.missing, "is in the source, and neither it nor a later record of its key is in the archive"),
        (found.differing, "is different in the source"),
    )
    for offsets, what in texts:
        if len(offsets):
            more = f" and {len(offsets) - 1} more" if len(offsets) > 1 else ""
            yield source_differs(unit.log, f"the record at offset {offsets[0]}{more} {what}")
