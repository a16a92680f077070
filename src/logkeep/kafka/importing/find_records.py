"""Finds a few records of one topic in a dataset: the same question as for a backup.

A dataset has no index by time or from its end: its partitions are read from the wanted offset on, with bounded memory.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logkeep.errors import UsageError
from logkeep.kafka.importing.reader import DatasetReader, PartitionReader, ReadNotes
from logkeep.kafka.scan.find import FoundRecord, FoundRecords, RecordQuestion, found_in, last_by_time
from logkeep.kafka.scan.plan import no_topic


def find_in_dataset(reader: DatasetReader, asked: RecordQuestion, subject: str) -> FoundRecords:
    """Raises UsageError for a topic or partition that is not there, and what the reader raises."""
    there = sorted((p for p in reader.partitions if p.topic == asked.topic), key=lambda p: p.partition)
    if not there:
        raise no_topic(asked.topic, {p.topic for p in reader.partitions}, subject, "the dataset")
    chosen = [p for p in there if asked.partition in (None, p.partition)]
    if not chosen:
        raise UsageError(f"{asked.topic} has no partition {asked.partition} in the dataset", subject=subject)
    found: list[FoundRecord] = []
    searched = []
    for each in chosen:
        if len(found) > asked.limit and not asked.last:
            break
        searched.append(each.partition)
        found += _last(each, asked) if asked.last else _first(each, asked, asked.limit + 1 - len(found))
    kept = last_by_time(found, asked.limit) if asked.last else tuple(found[: asked.limit])
    return FoundRecords(kept, len(found) > asked.limit, len(there), tuple(searched))


def _first(partition: PartitionReader, asked: RecordQuestion, room: int) -> list[FoundRecord]:
    found: list[FoundRecord] = []
    for batch in _matching_records(partition, asked):
        found += found_in(partition.partition, batch[: room - len(found)])
        if len(found) >= room:
            break
    return found


def _last(partition: PartitionReader, asked: RecordQuestion) -> list[FoundRecord]:
    """One more than is wanted, so that it is known whether there are others."""
    kept: list[pa.RecordBatch] = []
    for batch in _matching_records(partition, asked):
        kept.append(batch)
        while sum(each.num_rows for each in kept[1:]) > asked.limit:
            del kept[0]
    found = [record for batch in kept for record in found_in(partition.partition, batch)]
    return found[max(len(found) - asked.limit - 1, 0) :]


def _matching_records(partition: PartitionReader, asked: RecordQuestion) -> Iterator[pa.RecordBatch]:
    for batch in partition.records(ReadNotes(), asked.offset or 0):
        if asked.exactly:
            batch = batch.filter(pc.equal(batch["offset"], asked.offset))  # noqa: PLW2901 - the same batch, narrower
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
