"""The task that compares one archived log with the live one, to find keys whose tombstones were never archived.

The archive is read once for its transactions and once for its records, the live log once, side by side in the order of
offsets. What is kept of a record is a hash of its key, its offset and three flags. These rows are divided by hash into
slices that fit into memory, in temporary files if there are several, and each slice is judged on its own.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import IO
from uuid import UUID

import msgspec
import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.compare.vanished_keys import (
    LIVE,
    ROW,
    TOMBSTONE,
    TRANSACTIONAL,
    Rows,
    Vanished,
    all_vanished,
    judge_keys,
)
from logkeep.formats.kafka.batches import CONTROL, Longs
from logkeep.formats.kafka.buried_offsets import BuriedOffsets, encode_runs
from logkeep.formats.kafka.key_hash_kernels import key_hashes
from logkeep.formats.kafka.record_kernels import KEY_SIZE, VALUE_SIZE
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from logkeep.formats.kafka.transactions import SettledTransactions, Settling
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.logs.archived import stretches
from logkeep.kafka.logs.brokers import Brokers
from logkeep.kafka.logs.burials import read_buried
from logkeep.kafka.logs.live import LiveLogs, LiveRange, Lost
from logkeep.model.clock_time import ClockTime
from logkeep.model.segments import LogName, Segment
from logkeep.model.work import Progress
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef

MEMORY_BYTES = 256 << 20
"""For the rows of one slice, while they are sorted."""
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
    """Before the live log was read."""
    runs: bytes
    """Encoded `BuriedOffsets`."""
    keys: int
    vanished: int
    odd: int
    unclear: int
    problem: str = ""
    """Why the comparison is not complete."""


def compare_deletions(unit: DeletionUnit, progress: Progress) -> DeletionsFound:
    """A task. Raises Damaged or another StoreError for the archive, and errors of the cluster."""
    begin = unit.brokers.now()
    settled = _settled(unit)
    with ExitStack() as stack:
        live = LiveOffsets(unit, stack.enter_context(closing(_live_logs(unit))), progress)
        slices = stack.enter_context(closing(RowSlices(_slices(unit))))
        ended = _collect(unit, settled, live, slices)
        found = all_vanished([*(judge_keys(rows, unit.live_start) for rows in slices), *ended])
    return DeletionsFound(
        log=unit.log,
        end=unit.end,
        begin=begin,
        runs=encode_runs(BuriedOffsets.of(found.offsets)),
        keys=found.keys,
        vanished=found.vanished,
        odd=found.odd,
        unclear=found.unclear,
        problem=live.problem,
    )


def _live_logs(unit: DeletionUnit) -> LiveLogs:
    return LiveLogs(unit.brokers, unit.broker, unit.limits, ProgressBackoff(time.sleep, time.monotonic))


def _slices(unit: DeletionUnit) -> int:
    return max(1, -(-sum(s.records for s in unit.segments) * _SORTED_ROW_BYTES // unit.memory_bytes))


def _settled(unit: DeletionUnit) -> SettledTransactions:
    settling = Settling()
    for stretch in stretches(unit.place, unit.segments, unit.start, unit.end):
        before_end = stretch.touching(0, unit.end)
        settling.take(before_end.buffer, before_end.batches)
    if settling.problems:
        raise Damaged(f"a transaction marker cannot be read: {settling.problems[0]}", subject=str(unit.log))
    return settling.settled()


def _collect(
    unit: DeletionUnit, settled: SettledTransactions, live: "LiveOffsets", slices: "RowSlices"
) -> list[Vanished]:
    """Fill the slices. Returns records of transactions that look open in the archive and are not live: they ended."""
    ended = list[Longs]()
    ends_known = SettledTransactions(settled.aborted, ())
    view = View(unit.start, unit.end, ends_known, buried=read_buried(unit.place, unit.buried))
    for records in visible_records(stretches(unit.place, unit.segments, unit.start, unit.end), view):
        there = live.among(records.offsets)
        hanging = (~settled.visible(records.batches))[records.batch]
        ended.append(records.offsets[hanging & ~there].copy())
        slices.add(_rows(records, there, unit.seeds, ~hanging & (records.spans[:, KEY_SIZE] >= 0)))
    return [Vanished(offsets, 0, 0, 0, 0) for offsets in ended]


def _rows(records: RecordColumns, there: Flags, seeds: tuple[int, int], wanted: Flags) -> Rows:
    hashes = np.empty((len(records), 2), np.uint64)
    if key_hashes(records.data, records.spans, np.uint64(seeds[0]), np.uint64(seeds[1]), hashes):
        raise Damaged("a key does not lie in the bytes of its record")
    rows = np.empty(len(records), ROW)
    rows["hash"], rows["check"], rows["offset"] = hashes[:, 0], hashes[:, 1], records.offsets
    rows["kind"] = (
        np.where(there, LIVE, 0)
        | np.where(records.spans[:, VALUE_SIZE] < 0, TOMBSTONE, 0)
        | np.where(records.transactional, TRANSACTIONAL, 0)
    )
    return rows[wanted]


class RowSlices:
    """Rows divided by the hash of their key: in memory if there is one slice, otherwise in temporary files."""

    def __init__(self, slices: int) -> None:
        self._kept: list[Rows] = []
        self._files: list[IO[bytes]] = [tempfile.TemporaryFile() for _ in range(slices)] if slices > 1 else []  # noqa: SIM115

    def add(self, rows: Rows) -> None:
        if not self._files:
            self._kept.append(rows)
            return
        belongs = rows["hash"] % np.uint64(len(self._files))
        for number, file in enumerate(self._files):
            file.write(rows[belongs == number].tobytes())

    def __iter__(self) -> Iterator[Rows]:
        if not self._files:
            yield np.concatenate([np.empty(0, ROW), *self._kept])
        for file in self._files:
            file.seek(0)
            yield np.frombuffer(file.read(), ROW)

    def close(self) -> None:
        for file in self._files:
            file.close()


class LiveOffsets:
    """The offsets of live records, read once in rising order."""

    def __init__(self, unit: DeletionUnit, logs: LiveLogs, progress: Progress) -> None:
        wanted = LiveRange(unit.log.name, unit.topic_id, unit.log.partition, max(unit.start, unit.live_start), unit.end)
        self._source = logs.read(wanted, unit.broker)
        self._held, self._done, self._progress = np.empty(0, np.int64), False, progress
        self.problem = ""

    def among(self, offsets: Longs) -> Flags:
        """Which of these are live. They must not be below any that was asked before."""
        if not len(offsets):
            return np.zeros(0, np.bool_)
        first, last = int(offsets[0]), int(offsets[-1])
        parts = [self._held[np.searchsorted(self._held, first) :]]
        while not self._done and not (len(parts[-1]) and parts[-1][-1] >= last):
            parts.append(self._next())
        self._held = np.concatenate(parts)
        at = np.searchsorted(self._held, offsets)
        found: Flags = np.zeros(len(offsets), np.bool_)
        inside = at < len(self._held)
        found[inside] = self._held[at[inside]] == offsets[inside]
        return found

    def _next(self) -> Longs:
        part = next(self._source, None)
        if part is None or isinstance(part, Lost):
            self._done, self.problem = True, part.reason if isinstance(part, Lost) else self.problem
            return np.empty(0, np.int64)
        self._progress(part.batches.end - part.batches.start)
        found = [np.empty(0, np.int64)]
        data = part.batches.headers["attributes"] & CONTROL == 0
        batches = type(part.batches)(part.batches.headers[data], part.batches.positions[data])
        for records in decode(part.buffer, batches) if len(batches) else ():
            if isinstance(records, Malformed):
                self.problem = f"the source holds a batch that cannot be read: {records}"
                continue
            found.append(records.offsets.copy())
        return np.concatenate(found)
