"""The segments of each partition of a dataset, oldest first, and the largest time of a record in one."""

from collections.abc import Callable

import numpy as np

from logkeep.errors import UsageError
from logkeep.formats.datasets import kafka_backup_v1_reading_kernels as k
from logkeep.kafka.dataset_upkeep.existing import ExistingDataset
from logkeep.kafka.dataset_upkeep.prune import NO_TIME, DatasetSegment
from logkeep.kafka.dataset_upkeep.v1_segments import found_records, readable_index
from logkeep.kafka.importing.kafka_backup_v1 import V1Files, v1_partition
from logkeep.kafka.importing.reader import ReadNotes

Log = tuple[str, int]


def segments_of(dataset: ExistingDataset) -> dict[Log, tuple[DatasetSegment, ...]]:
    """Raises UsageError for the formats of other tools: those tools delete their own files."""
    if not dataset.v1:
        remedy = "delete old segments with the tool that wrote it"
        raise UsageError(f"a dataset in the format {dataset.format} is not pruned", remedy=remedy)
    return {log: _v1(files) for log, files in dataset.v1.items()}


def latest_time(dataset: ExistingDataset, log: Log) -> Callable[[DatasetSegment], int]:
    """A function that reads a segment."""

    def read(segment: DatasetSegment) -> int:
        files = V1Files(
            records={segment.first: dataset.v1[log].records[segment.first]},
            indexes={s: i for s, i in dataset.v1[log].indexes.items() if s == segment.first},
        )
        (listed,) = v1_partition(dataset.target.store, *log, files).segments
        latest = NO_TIME
        for records, _ in found_records(readable_index(listed.segment)[0], ReadNotes(), -1) if listed.segment else ():
            latest = max(latest, int(np.max(records.numbers[:, k.TIME])))
        return latest

    return read


def _v1(files: V1Files) -> tuple[DatasetSegment, ...]:
    """The index of a segment goes first: records without an index are still found."""
    return tuple(
        DatasetSegment(
            start,
            tuple(each[start].name for each in (files.indexes, files.records) if start in each),
            sum(each[start].size for each in (files.indexes, files.records) if start in each),
        )
        for start in sorted(files.records)
    )
