"""The task that compares one archived log with the live one, to find keys whose tombstones were never archived.

The archive and the live log are read once, side by side in the order of offsets; a log with transactions is read for
them first. What is kept of a record is a hash of its key, its offset and three flags. These rows are divided by hash
into slices that fit into memory, and each slice is judged on its own.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from uuid import UUID

import msgspec
import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.compare.key_group_kernels import LIVE, TOMBSTONE, TRANSACTIONAL
from logkeep.formats.compare.log_compare import LogComparison
from logkeep.formats.compare.vanished_keys import (
    ROW,
    Rows,
    Vanished,
    all_vanished,
    judge_keys,
)
from logkeep.formats.kafka.batches import CONTROL, BatchStretch, Longs
from logkeep.formats.kafka.batches import TRANSACTIONAL as IN_TRANSACTION
from logkeep.formats.kafka.buried_offsets import BuriedOffsets, encode_runs
from logkeep.formats.kafka.key_hash_kernels import key_hashes
from logkeep.formats.kafka.record_kernels import KEY_SIZE, VALUE_SIZE
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.records import RecordColumns
from logkeep.formats.kafka.transactions import SettledTransactions
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.deletions.live_offsets import LiveOffsets
from logkeep.kafka.deletions.side_by_side import SideBySide
from logkeep.kafka.logs.archived import settled_transactions, stretches
from logkeep.kafka.logs.brokers import Brokers
from logkeep.kafka.logs.burials import read_buried
from logkeep.kafka.logs.live import LiveLogs, LiveRange, read_ahead
from logkeep.kafka.logs.row_slices import RowSlices
from logkeep.model.clock_time import ClockTime
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.model.work import Progress
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef

MEMORY_BYTES = 256 << 20
"""The memory for the rows of one slice, while they are sorted."""
_SORTED_ROW_BYTES = 4 * ROW.itemsize
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class DeletionUnit:
    """One log: `[start, end)` is archived."""

    place: SourceRef
    log: LogName
    topic_id: UUID
    start: int
    end: int
    segments: tuple[Segment, ...]
    buried: tuple[ObjectRef, ...]
    """What is buried already."""
    brokers: Brokers
    broker: int
    live_start: int
    seeds: tuple[int, int]
    limits: FetchLimits = field(default_factory=FetchLimits)
    memory_bytes: int = MEMORY_BYTES

    @property
    def size_bytes(self) -> int:
        return 2 * sum(s.stored_bytes for s in self.segments)


class DeletionsFound(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one log."""

    log: LogName
    end: int
    begin: ClockTime
    """When the comparison began, before the live log was read."""
    runs: bytes
    """Encoded `BuriedOffsets`."""
    keys: int
    vanished: int
    """How many of these keys have no record in the live log, without an archived tombstone."""
    odd: int
    """Keys of which an earlier record is live and a later one is not."""
    unclear: int
    """How many of these have such a record outside of transactions: only a cleaner at work explains them."""
    problem: str = ""
    """Why the comparison is not complete."""


def compare_deletions(unit: DeletionUnit, progress: Progress) -> DeletionsFound:
    """A task. Raises Damaged or another StoreError for the archive, and errors of the cluster."""
    begin = unit.brokers.now()
    with closing(live_logs(unit)) as logs, compared_rows(unit, logs, progress) as compared:
        found = all_vanished([*(judge_keys(rows, unit.live_start) for rows in compared.slices), *compared.ended])
    return DeletionsFound(
        log=unit.log,
        end=unit.end,
        begin=begin,
        runs=encode_runs(BuriedOffsets.of(found.offsets)),
        keys=found.keys,
        vanished=found.vanished,
        odd=found.odd,
        unclear=found.unclear,
        problem=compared.live.problem,
    )


def live_logs(unit: DeletionUnit) -> LiveLogs:
    return LiveLogs(unit.brokers, unit.broker, unit.limits, ProgressBackoff(time.sleep, time.monotonic), lanes=2)


def live_range(unit: DeletionUnit) -> LiveRange:
    """What the live log still has of the archived offsets."""
    return LiveRange(unit.log.name, unit.topic_id, unit.log.partition, max(unit.start, unit.live_start), unit.end)


@dataclass(frozen=True)
class ComparedRows:
    """The rows of all archived records of one log."""

    slices: RowSlices
    live: LiveOffsets
    ended: list[Vanished]
    """Records of transactions that look open in the archive and are not live: they ended."""
    compared: tuple[LogComparison, ...] = ()
    """The comparison of each of the `spans`, record by record."""


class _Transactions(Exception):
    pass


@contextmanager
def compared_rows(
    unit: DeletionUnit, logs: LiveLogs, progress: Progress, more: int = 0, spans: Sequence[Range] = ()
) -> Iterator[ComparedRows]:
    """Read the archive beside the live log. Most compacted logs have no transactions: they are read once.

    The caller adds `more` rows. The live records of `spans` are compared with the archived ones in the same read.
    """
    with ExitStack() as stack:
        try:
            rows = _compared(unit, None, logs, progress, stack, more, SideBySide(spans))
        except _Transactions:
            settled = settled_transactions(unit.place, unit.log, unit.segments, unit.start, unit.end)
            rows = _compared(unit, settled, logs, progress, stack, more, SideBySide(spans))
        yield rows


def _compared(
    unit: DeletionUnit,
    settled: SettledTransactions | None,
    logs: LiveLogs,
    progress: Progress,
    stack: ExitStack,
    more: int,
    beside: SideBySide,
) -> ComparedRows:
    slices = stack.enter_context(closing(RowSlices(slices_for(unit, more), ROW)))
    batches = stretches(unit.place, unit.segments, unit.start, unit.end)
    with closing(read_ahead(logs.read(live_range(unit), unit.broker), "live")) as reading:
        if not beside.compared:
            live = LiveOffsets(reading, progress)
        else:
            live = LiveOffsets(beside.live(reading), progress)
            batches = beside.archived(batches, live.read_to)
        return ComparedRows(slices, live, _collect(unit, settled, batches, live, slices), beside.compared)


def slices_for(unit: DeletionUnit, more: int = 0) -> int:
    """How many slices hold all archived records and `more`."""
    records = sum(s.records for s in unit.segments) + more
    return max(1, -(-records * _SORTED_ROW_BYTES // unit.memory_bytes))


def _collect(
    unit: DeletionUnit,
    transactions: SettledTransactions | None,
    batches: Iterator[BatchStretch],
    live: LiveOffsets,
    slices: RowSlices,
) -> list[Vanished]:
    """Fill the slices. Without `transactions` there must be none."""
    ended = list[Longs]()
    settled = transactions or SettledTransactions((), ())
    ends_known = SettledTransactions(settled.aborted, ())
    view = View(unit.start, unit.end, ends_known, buried=read_buried(unit.place, unit.buried))
    for records in visible_records(_plain(batches) if transactions is None else batches, view):
        there = live.among(records.offsets)
        hanging = (~settled.visible(records.batches))[records.batch]
        ended.append(records.offsets[hanging & ~there].copy())
        slices.add(key_rows(records, there, unit.seeds, ~hanging & (records.spans[:, KEY_SIZE] >= 0)))
    return [Vanished(offsets, 0, 0, 0, 0) for offsets in ended]


def _plain(batches: Iterator[BatchStretch]) -> Iterator[BatchStretch]:
    for stretch in batches:
        if (stretch.batches.headers["attributes"] & (IN_TRANSACTION | CONTROL)).any():
            raise _Transactions
        yield stretch


def key_rows(records: RecordColumns, there: Flags, seeds: tuple[int, int], wanted: Flags) -> Rows:
    hashes = np.empty((len(records), 2), np.uint64)
    if key_hashes(records.data, records.spans, np.uint64(seeds[0]), np.uint64(seeds[1]), hashes):
        raise Damaged("a key is not inside the bytes of its record")
    rows = np.empty(len(records), ROW)
    rows["hash"], rows["check"], rows["offset"] = hashes[:, 0], hashes[:, 1], records.offsets
    rows["kind"] = (
        np.where(there, LIVE, 0)
        | np.where(records.spans[:, VALUE_SIZE] < 0, TOMBSTONE, 0)
        | np.where(records.transactional, TRANSACTIONAL, 0)
    )
    return rows[wanted]
