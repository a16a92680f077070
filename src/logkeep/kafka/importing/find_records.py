"""Finds a few records of one topic in a dataset: the same question as for a backup.

A dataset has no index by time or from its end: its partitions are read from the wanted offset on, with bounded memory.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logkeep.errors import UsageError
from logkeep.kafka.importing.reader import DatasetGap, DatasetReader, PartitionReader, ReadNotes
from logkeep.kafka.importing.writer_notes import noted_records, with_lost_partitions
from logkeep.kafka.record.dataset_document import DatasetLog, NotedLog
from logkeep.kafka.scan.find import (
    FoundRecord,
    FoundRecords,
    RecordQuestion,
    found_in,
    hashed_partition,
    last_by_time,
)
from logkeep.kafka.scan.plan import no_topic


class FoundInDataset(NamedTuple):
    found: FoundRecords
    lost: tuple[tuple[int, DatasetGap], ...]
    """Partitions and offsets that are missing among those that were searched."""


def find_in_dataset(reader: DatasetReader, asked: RecordQuestion, subject: str) -> FoundInDataset:
    """The records that a question selects. Raises UsageError for a topic or partition that is not there, and what the
    reader raises."""
    reader = with_lost_partitions(reader)
    there = sorted((p for p in reader.partitions if p.topic == asked.topic), key=lambda p: p.partition)
    if not there:
        raise no_topic(asked.topic, {p.topic for p in reader.partitions}, subject, "the dataset")
    chosen = [p for p in there if asked.partition in (None, p.partition)]
    if not chosen:
        raise UsageError(f"{asked.topic} has no partition {asked.partition} in the dataset", subject=subject)
    known = next((t.partitions for t in reader.topics if t.name == asked.topic), None)
    assumed = there[-1].partition + 1 if known is None else 0
    hashed_to = hashed_partition(asked, known or assumed)
    chosen.sort(key=lambda p: (p.partition != hashed_to, p.partition))
    found: list[FoundRecord] = []
    searches = list[_Search]()
    for each in chosen:
        if len(found) > asked.limit and not asked.last:
            break
        if found and [search.partition.partition for search in searches] == [hashed_to]:
            break  # the key is in the partition where it belongs
        search = _Search(each, reader.notes, asked)
        searches.append(search)
        found += search.last() if asked.last else search.first(asked.limit + 1 - len(found))
    kept = last_by_time(found, asked.limit) if asked.last else tuple(found[: asked.limit])
    searched = tuple(search.partition.partition for search in searches)
    result = FoundRecords(kept, len(found) > asked.limit, len(there), searched, hashed_to, assumed)
    return FoundInDataset(result, tuple(lost for search in searches for lost in search.lost()))


class _Search:
    """The search of one partition, from the wanted offset on."""

    def __init__(self, partition: PartitionReader, noted: Mapping[DatasetLog, NotedLog], asked: RecordQuestion) -> None:
        self.partition, self._asked, self._notes = partition, asked, ReadNotes()
        self._noted = noted.get(DatasetLog(partition.topic, partition.partition))
        self._end: int | None = None
        """The last offset that was needed; None while all are."""

    def first(self, most: int) -> list[FoundRecord]:
        found: list[FoundRecord] = []
        for batch in self._matching_records():
            found += found_in(self.partition.partition, batch[: most - len(found)])
            if len(found) >= most:
                self._end = found[-1].offset
                break
        return found

    def last(self) -> list[FoundRecord]:
        """The last records, one more than is wanted, so that it is known whether there are others."""
        kept: list[pa.RecordBatch] = []
        for batch in self._matching_records():
            kept.append(batch)
            while sum(each.num_rows for each in kept[1:]) > self._asked.limit:
                del kept[0]
        found = [record for batch in kept for record in found_in(self.partition.partition, batch)]
        return found[max(len(found) - self._asked.limit - 1, 0) :]

    def lost(self) -> Iterator[tuple[int, DatasetGap]]:
        """What is missing from the wanted offset to the last one that was needed."""
        for gap in sorted(self._notes.lost):
            if gap.end > (self._asked.offset or 0) and (self._end is None or gap.start < self._end):
                yield self.partition.partition, gap

    def _matching_records(self) -> Iterator[pa.RecordBatch]:
        asked = self._asked
        for batch in noted_records(self.partition, self._noted, self._notes, asked.offset or 0):
            if asked.exactly:
                self._end = (asked.offset or 0) + 1
                batch = batch.filter(pc.equal(batch["offset"], asked.offset))  # noqa: PLW2901 - the same, narrower
            found = asked.search.in_batch(_in_time(batch, asked))
            if found.num_rows:
                yield found
            if asked.exactly:
                return


def _in_time(batch: pa.RecordBatch, asked: RecordQuestion) -> pa.RecordBatch:
    if asked.since_ms is None and asked.until_ms is None:
        return batch
    times = np.asarray(batch["timestamp"].cast(pa.int64()))
    inside = np.ones(len(times), np.bool_)
    if asked.since_ms is not None:
        inside &= times >= asked.since_ms
    if asked.until_ms is not None:
        inside &= times < asked.until_ms
    return batch.take(pa.array(np.flatnonzero(inside)))
