"""Finds a few records of one archived topic: at an offset, the first or the last ones, or those that a search selects.

Only the records that are returned become Python values.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from logkeep.formats.kafka.partitioner import partition_of_key
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.scan.plan import ScanSelection, loss_text, lost_offsets, plan_scan, selected_cuts
from logkeep.kafka.scan.read import read_range
from logkeep.kafka.scan.search import RecordSearch
from logkeep.kafka.scan.values import ScanCounters, ScanIsolation, ScanRange
from logkeep.model.ranges import Range
from logkeep.repository.backups.manifest import KnownGap

_FOREVER = 2**63 - 1


@dataclass(frozen=True)
class RecordQuestion:
    topic: str
    partition: int | None = None
    offset: int | None = None
    """If a partition is chosen: records from this offset on, or exactly this one."""
    exactly: bool = False
    since_ms: int | None = None
    until_ms: int | None = None
    isolation: ScanIsolation = ScanIsolation.COMMITTED
    search: RecordSearch = field(default_factory=RecordSearch)
    limit: int = 100
    last: bool = False
    """The last ones, by time, instead of the first ones; of one partition by offset."""

    @property
    def selection(self) -> ScanSelection:
        numbers = None if self.partition is None else frozenset({self.partition})
        offsets = {}
        if self.partition is not None and self.offset is not None:
            end = self.offset + 1 if self.exactly else _FOREVER
            offsets = {(self.topic, self.partition): Range(self.offset, end)}
        return ScanSelection(
            (self.topic,), (), (), False, numbers, offsets, self.since_ms, self.until_ms, self.isolation
        )


@dataclass(frozen=True)
class FoundRecord:
    partition: int
    offset: int
    time_ms: int
    append_time: bool
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


@dataclass(frozen=True)
class FoundRecords:
    records: tuple[FoundRecord, ...]
    more: bool
    """Whether there are more records than were wanted."""
    partitions: int
    """How many partitions of the topic the backup has."""
    searched: tuple[int, ...]
    """The partitions that were read, in order."""
    hashed_to: int | None = None
    """The partition to which Kafka's default partitioner assigns the key."""
    assumed: int = 0
    """The number of partitions for which that holds, where nothing says how many there were; 0: the number is known."""


def find_records(view: KafkaBackupView, asked: RecordQuestion, counters: ScanCounters) -> FoundRecords:
    """The records that a question selects. Raises UsageError for a topic or partition that is not there, Damaged, or a
    StoreError."""
    ranges = list(plan_scan(view, asked.selection))
    there = len(selected_cuts(view, ScanSelection(topics=(asked.topic,))))
    partitions = next((t.partitions for t in view.record.topics if t.name == asked.topic), 0)
    hashed_to = hashed_partition(asked, partitions)
    ranges.sort(key=lambda each: (each.log.partition != hashed_to, each.log.partition))
    finder = _Finder(asked, counters)
    searched = finder.run(ranges, hashed_to)
    records, more = finder.result()
    return FoundRecords(records, more, there, tuple(searched), hashed_to)


def hashed_partition(asked: RecordQuestion, partitions: int) -> int | None:
    """Where Kafka's default partitioner puts the key of a question; None if no order of partitions helps. Pure."""
    if asked.search.key is None or asked.partition is not None or partitions < 2:
        return None
    return partition_of_key(asked.search.key, partitions)


class _Finder:
    def __init__(self, asked: RecordQuestion, counters: ScanCounters) -> None:
        self._asked, self._counters = asked, counters
        self._found: list[tuple[int, pa.RecordBatch]] = []
        self._rows = 0

    def run(self, ranges: list[ScanRange], hashed_to: int | None) -> list[int]:
        searched: list[int] = []
        for each in ranges:
            if self._rows > self._asked.limit and not self._asked.last:
                break
            if self._rows and searched == [hashed_to]:
                break  # the key is in the partition where it belongs
            searched.append(each.log.partition)
            self._take(each)
        return searched

    def _take(self, wanted: ScanRange) -> None:
        """One more than is wanted, so that it is known whether there are others."""
        room = self._asked.limit + 1 - (0 if self._asked.last else self._rows)
        only = None if self._asked.search.everything else self._asked.search
        for batch in read_range(wanted, self._counters, only=only, newest_first=self._asked.last):
            kept = batch[max(batch.num_rows - room, 0) :] if self._asked.last else batch[:room]
            self._found.append((wanted.log.partition, kept))
            self._rows += kept.num_rows
            room -= kept.num_rows
            if room <= 0:
                return

    def result(self) -> tuple[tuple[FoundRecord, ...], bool]:
        records = [record for partition, batch in self._found for record in found_in(partition, batch)]
        limit = self._asked.limit
        kept = last_by_time(records, limit) if self._asked.last else tuple(records[:limit])
        return kept, len(records) > limit


def last_by_time(records: Iterable[FoundRecord], limit: int) -> tuple[FoundRecord, ...]:
    """The last ones of all partitions, the oldest first. Pure.

    A record counts as no older than those before it in its partition: a producer may have sent it late, or without a
    time. So what is returned of a partition are its last records, without a hole.
    """
    reached = dict[int, int]()
    rows = list[tuple[int, FoundRecord]]()
    for each in sorted(records, key=lambda r: (r.partition, r.offset)):
        reached[each.partition] = max(each.time_ms, reached.get(each.partition, each.time_ms))
        rows.append((reached[each.partition], each))
    rows.sort(key=lambda row: row[0])  # stable: by partition and offset where times are equal
    return tuple(each for _, each in rows[max(len(rows) - limit, 0) :])


def found_in(partition: int, batch: pa.RecordBatch) -> Iterator[FoundRecord]:
    times = np.asarray(batch["timestamp"].cast(pa.int64())).tolist()
    rows = zip(
        *(batch[name].to_pylist() for name in ("offset", "timestamp_type", "key", "value", "headers")), strict=True
    )
    for time_ms, (offset, kind, key, value, headers) in zip(times, rows, strict=True):
        pairs = tuple((each["key"], each["value"]) for each in headers)
        yield FoundRecord(partition, offset, time_ms, kind == 1, key, value, pairs)


def lost_among(view: KafkaBackupView, asked: RecordQuestion, found: FoundRecords) -> list[KnownGap]:
    """Offsets that were lost, among those that were searched up to the limit."""
    offsets: dict[int, list[int]] = {}
    for record in found.records:
        offsets.setdefault(record.partition, []).append(record.offset)

    def reached(gap: KnownGap) -> bool:
        shown = offsets.get(gap.log.partition)
        if not found.more or (not asked.last and gap.log.partition != found.searched[-1]):
            return gap.log.partition in found.searched
        return shown is not None and (gap.end > min(shown) if asked.last else gap.start < max(shown))

    return [gap for gap in lost_offsets(view, asked.selection) if reached(gap)]


def why_absent(view: KafkaBackupView, asked: RecordQuestion, counters: ScanCounters) -> str:
    """Why there is no record at exactly this offset, and where the next one is."""
    (cut,) = selected_cuts(view, asked.selection)
    offset = asked.offset or 0
    if not cut.start <= offset < cut.end:
        return (
            f"the backup has offsets {cut.start} to {cut.end - 1} of this partition"
            if cut.end > cut.start
            else "the backup has no records of this partition"
        )
    for gap in view.gaps({cut.log: Range(offset, offset + 1)}):
        return loss_text(gap)
    hidden = replace(asked, isolation=ScanIsolation.ALL)
    if asked.isolation is ScanIsolation.COMMITTED and find_records(view, hidden, counters).records:
        return "it belongs to a transaction that was not committed; --isolation all shows it"
    later = replace(asked, exactly=False, limit=1)
    following = find_records(view, later, counters).records
    where = f"the next record is at offset {following[0].offset}" if following else "no record follows it"
    return f"compaction removed it, it was deleted at the source, or it is a transaction marker; {where}"
