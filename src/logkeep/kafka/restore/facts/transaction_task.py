"""The tasks that read the transactions of restored logs, also beyond the cut, so that torn ones can be found.

First the batch indexes say which producers have transactional batches before and after the cut of each log. Only where
a producer has both, in whatever logs, may a transaction of it be torn: then the segments with its batches are read, and
each of its transactions becomes a row. A restore without a point in time needs none of this.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from logkeep.errors import Damaged, FormatTooNew, ObjectMissing, UnsafeName
from logkeep.formats.kafka.batch_index import BatchIndex
from logkeep.formats.kafka.transaction_scan import TRANSACTION, RestoreCut, Rows, TransactionScan
from logkeep.kafka.logs.archived import stretches
from logkeep.kafka.logs.header_check import index_beside
from logkeep.kafka.logs.rebuilt_index import rebuild_index
from logkeep.model.segments import LogName, Segment
from logkeep.model.work import Progress
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.reader import StoredLog

_UNIT_SEGMENTS = 256
_UNREADABLE = (Damaged, ObjectMissing, FormatTooNew, UnsafeName)


class CutLog(msgspec.Struct, frozen=True, kw_only=True):
    """A log `[start, archived_end)` of which a restore brings back `[start, end)`."""

    log: LogName
    start: int
    end: int
    archived_end: int
    segments: tuple[Segment, ...]
    """In order, up to the archived end."""
    before_ms: int | None = None
    """Records of this time or later are left out, at any offset."""


class TransactionUnit(msgspec.Struct, frozen=True, kw_only=True):
    place: SourceRef
    logs: tuple[CutLog, ...]
    unsettled: bool = False
    """Whether records of transactions without a marker are restored."""
    producers: tuple[int, ...] = ()
    """The producers whose transactions are read."""


class LogProducers(msgspec.Struct, frozen=True, kw_only=True):
    """Transactional producers of a log: with batches before its cut, and with batches that are left out."""

    log: LogName
    restored: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    damage: str = ""
    """Why the log cannot be read."""


class ProducersResult(msgspec.Struct, frozen=True, kw_only=True):
    logs: tuple[LogProducers, ...]


class LogTransactions(msgspec.Struct, frozen=True, kw_only=True):
    log: LogName
    encoded: bytes = b""
    """Rows of `TRANSACTION`."""
    damage: str = ""

    @property
    def rows(self) -> Rows:
        return np.frombuffer(self.encoded, TRANSACTION)


class TransactionsResult(msgspec.Struct, frozen=True, kw_only=True):
    logs: tuple[LogTransactions, ...]


def transaction_units(
    place: SourceRef, logs: Iterable[CutLog], *, unsettled: bool, producers: Sequence[int] = ()
) -> list[TransactionUnit]:
    """Logs in their order, in units of a bounded number of segments. One log is never divided."""
    bundles: list[list[CutLog]] = []
    for log in logs:
        if not bundles or sum(len(c.segments) for c in bundles[-1]) + len(log.segments) > _UNIT_SEGMENTS:
            bundles.append([])
        bundles[-1].append(log)
    return [
        TransactionUnit(place=place, logs=tuple(some), unsettled=unsettled, producers=tuple(producers))
        for some in bundles
    ]


def producers_at_cuts(found: Iterable[LogProducers], *, in_one_log: bool) -> tuple[int, ...]:
    """Producers of which a transaction may be torn. `in_one_log`: also in a single log."""
    every = list(found)
    restored, missing = ({p for log in every for p in getattr(log, name)} for name in ("restored", "missing"))
    logs = Counter(p for log in every for p in {*log.restored, *log.missing})
    return tuple(sorted(p for p in restored & missing if in_one_log or logs[p] > 1))


def list_producers(unit: TransactionUnit, _: Progress) -> ProducersResult:
    """A task: reads indexes alone. Damage is part of the result; raises a StoreError when the store fails."""
    return ProducersResult(logs=tuple(_producers(unit.place, log) for log in unit.logs))


def _producers(place: SourceRef, wanted: CutLog) -> LogProducers:
    restored, missing = set[int](), set[int]()
    try:
        for index in (_index(place, s) for s in _stored(wanted)):
            rows = index.rows[(index.transactional | index.control) & (index.rows["last_offset"] >= wanted.start)]
            late = rows["last_offset"] >= wanted.end
            if wanted.before_ms is not None:
                late |= rows["max_time_ms"] >= wanted.before_ms
            restored.update(rows["producer_id"][rows["base_offset"] < wanted.end].tolist())
            missing.update(rows["producer_id"][late].tolist())
    except _UNREADABLE as error:
        return LogProducers(log=wanted.log, damage=str(error))
    return LogProducers(log=wanted.log, restored=tuple(sorted(restored)), missing=tuple(sorted(missing)))


def scan_transactions(unit: TransactionUnit, progress: Progress) -> TransactionsResult:
    """A task: reads the segments with batches of the unit's producers."""
    return TransactionsResult(logs=tuple(_transactions(unit, log, progress) for log in unit.logs))


def _transactions(unit: TransactionUnit, wanted: CutLog, progress: Progress) -> LogTransactions:
    scan = TransactionScan(RestoreCut(wanted.end, wanted.before_ms, unit.unsettled), unit.producers)
    try:
        for segment in _stored(wanted):
            if np.isin(_index(unit.place, segment).rows["producer_id"], unit.producers).any():
                for stretch in stretches(unit.place, (segment,), wanted.start, wanted.archived_end):
                    around = stretch.touching(wanted.start, wanted.archived_end)
                    scan.take(around.buffer, around.batches)
            progress(segment.stored_bytes)
    except _UNREADABLE as error:
        return LogTransactions(log=wanted.log, damage=str(error))
    return LogTransactions(log=wanted.log, encoded=scan.rows().tobytes())


def _stored(wanted: CutLog) -> Iterator[Segment]:
    return (s for s in wanted.segments if s.has_object and s.end > wanted.start and s.start < wanted.archived_end)


def _index(place: SourceRef, segment: Segment) -> BatchIndex:
    found = index_beside(place, segment)
    return rebuild_index(StoredLog.of(place, segment), segment.sha256) if found is None else found
