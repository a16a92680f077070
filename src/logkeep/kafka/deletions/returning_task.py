"""The task that finds keys of one archived log that a restore would bring back although the live log has none of them.

The archive is compared with the live log as before a burial. The live log is read beyond the cut too: a key that was
written or deleted there did not vanish. Keys in clear leave the task only if the caller asks for them.
"""

import hashlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import msgspec
import numpy as np

from logkeep.formats.compare.log_compare import LogComparison
from logkeep.formats.compare.vanished_keys import all_vanished, judge_keys
from logkeep.formats.kafka.batches import TRANSACTIONAL, BatchStretch, Longs
from logkeep.formats.kafka.record_kernels import KEY_SIZE
from logkeep.formats.kafka.record_view import View, chosen, visible_records
from logkeep.formats.kafka.transactions import SettledTransactions, Settling
from logkeep.kafka.deletions.compare_task import DeletionUnit, compared_rows, key_rows, live_logs
from logkeep.kafka.logs.archived import stretches
from logkeep.kafka.logs.live import LiveLogs, LiveRange, Lost
from logkeep.kafka.logs.row_slices import RowSlices
from logkeep.model.clock_time import ClockTime
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.model.work import Progress

MOST_OFFSETS = 1_000
"""How many offsets of a log are read again, so that their keys can be listed."""


@dataclass(frozen=True)
class ReturningUnit:
    """One archived log, and how far the live one is read."""

    compared: DeletionUnit
    live_end: int
    show_keys: bool = False
    spans: tuple[Range, ...] = ()
    """Archived offsets of which every live record is compared too."""

    @property
    def size_bytes(self) -> int:
        return self.compared.size_bytes


class ReturningKey(msgspec.Struct, frozen=True, kw_only=True):
    """One key that a restore would bring back."""

    log: str
    key_sha256: str
    offsets: tuple[int, ...]
    """The offsets of its archived records; if the log has very many, only the first ones of the log."""
    key: str | None = None
    """In clear, where the user asked for it; bytes that are no text are written as `\\xff`."""


class KeysFound(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one log."""

    log: LogName
    keys: int
    records: int
    listed: tuple[ReturningKey, ...]
    later_dense: bool
    """Every live offset after the cut has its record: no tombstone that was written there is gone."""
    read: ClockTime
    """When the live log had been read."""
    problem: str = ""
    """Why the live log could not be read up to the cut."""
    later_problem: str = ""
    """Why it could not be read after the cut."""
    compared: tuple[LogComparison, ...] = ()
    """The comparison of each of the unit's spans."""


def find_returning(unit: ReturningUnit, progress: Progress) -> KeysFound:
    """A task. Raises Damaged or another StoreError for the archive, and errors of the cluster."""
    archived = unit.compared
    more = unit.live_end - archived.end
    with closing(live_logs(archived)) as logs, compared_rows(archived, logs, progress, more, unit.spans) as compared:
        later = LaterRecords(unit, logs)
        later.collect(compared.slices, progress)
        found = all_vanished(judge_keys(rows, archived.live_start) for rows in compared.slices)
    return KeysFound(
        log=archived.log,
        keys=found.vanished,
        records=len(found.offsets),
        listed=tuple(_listed(unit, np.sort(found.offsets)[:MOST_OFFSETS])),
        later_dense=later.count == more,
        read=archived.brokers.now(),
        problem=compared.live.problem,
        later_problem=later.problem,
        compared=compared.compared,
    )


@dataclass
class LaterRecords:
    """What the live log has after the cut: read once, and transactions once more when it is known how they ended."""

    unit: ReturningUnit
    logs: LiveLogs
    count: int = 0
    """How many records and markers there are."""
    problem: str = ""
    _settling: Settling = field(default_factory=Settling)
    _transactional: bool = False

    def collect(self, slices: RowSlices, progress: Progress) -> None:
        self._add(self._first_pass(), None, slices, progress)
        if self._transactional:
            again = (_in_transactions(stretch, wanted=True) for stretch in self._stretches())
            self._add(again, self._settling.settled(), slices, progress)

    def _first_pass(self) -> Iterator[BatchStretch]:
        for stretch in self._stretches():
            self.count += int(stretch.batches.headers["records"].sum())
            self._settling.take(stretch.buffer, stretch.batches)
            plain = _in_transactions(stretch, wanted=False)
            self._transactional |= len(plain.batches) < len(stretch.batches)
            yield plain

    def _add(
        self,
        batches: Iterator[BatchStretch],
        settled: SettledTransactions | None,
        slices: RowSlices,
        progress: Progress,
    ) -> None:
        archived = self.unit.compared
        for records in visible_records(batches, View(archived.end, self.unit.live_end, settled)):
            everyone = np.ones(len(records), np.bool_)
            slices.add(key_rows(records, everyone, archived.seeds, records.spans[:, KEY_SIZE] >= 0))
            progress(len(records.data))

    def _stretches(self) -> Iterator[BatchStretch]:
        archived = self.unit.compared
        wanted = LiveRange(
            archived.log.name, archived.topic_id, archived.log.partition, archived.end, self.unit.live_end
        )
        for part in self.logs.read(wanted, archived.broker):
            if isinstance(part, Lost):
                self.problem = part.reason
                return
            yield part


def _in_transactions(stretch: BatchStretch, *, wanted: bool) -> BatchStretch:
    """The batches of transactions and their markers, or the others."""
    inside = (stretch.batches.headers["attributes"] & TRANSACTIONAL) != 0
    return BatchStretch(stretch.buffer, chosen(stretch.batches, inside == wanted))


def _listed(unit: ReturningUnit, offsets: Longs) -> Iterator[ReturningKey]:
    """The keys at these offsets, read again from the archive."""
    found: dict[bytes, list[int]] = {}
    for key, offset in _keys_at(unit.compared, offsets) if len(offsets) else ():
        found.setdefault(key, []).append(offset)
    for key, some in found.items():
        yield ReturningKey(
            log=str(unit.compared.log),
            key_sha256=hashlib.sha256(key).hexdigest(),
            offsets=tuple(some),
            key=key.decode(errors="backslashreplace") if unit.show_keys else None,
        )


def _keys_at(archived: DeletionUnit, offsets: Longs) -> Iterator[tuple[bytes, int]]:
    first, last = int(offsets[0]), int(offsets[-1]) + 1
    there = np.searchsorted(offsets, [(s.start, s.end) for s in archived.segments])
    holding = [s for s, (low, high) in zip(archived.segments, there.tolist(), strict=True) if low < high]
    for records in visible_records(stretches(archived.place, holding, first, last), View(first, last)):
        for row in np.flatnonzero(np.isin(records.offsets, offsets)).tolist():
            yield records.key(row) or b"", int(records.offsets[row])
