"""The segments of each partition of a dataset, oldest first, and the largest time of a record in one."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from logkeep.errors import UsageError
from logkeep.formats.datasets.binary_spans import numbers
from logkeep.formats.datasets.kafka_backup_v1 import v1_reader_kernels as k
from logkeep.formats.kafka.record_kernels import Longs
from logkeep.kafka.dataset_upkeep.dataset import ExistingDataset
from logkeep.kafka.dataset_upkeep.prune import NO_TIME, DatasetSegment
from logkeep.kafka.dataset_upkeep.v1_segments import readable_index
from logkeep.kafka.importing.files import AVRO, PARQUET, FilesPartitionReader
from logkeep.kafka.importing.kafka_backup_v1 import V1Files, v1_partition
from logkeep.kafka.importing.reader import ReadNotes

Log = tuple[str, int]
_NUMBER = re.compile(r"-([0-9]+)\.[a-z]+")


def segments_of(dataset: ExistingDataset) -> dict[Log, tuple[DatasetSegment, ...]]:
    """The segments of each partition. Raises UsageError for archives of other tools: those delete their own files."""
    if dataset.v1:
        return {log: _v1(files) for log, files in dataset.v1.items()}
    if dataset.format not in {AVRO, PARQUET}:
        remedy = "delete old segments with the tool that wrote it"
        raise UsageError(f"an archive in the format {dataset.format} is not pruned", remedy=remedy)
    return {log: _files(reader) for log, reader in _readers(dataset).items()}


def latest_time(dataset: ExistingDataset, log: Log) -> Callable[[DatasetSegment], int]:
    """A function that reads a segment and returns the largest time of its records."""
    times = partial(_v1_times, dataset, log) if dataset.v1 else partial(_file_times, _readers(dataset)[log])

    def read(segment: DatasetSegment) -> int:
        return max((int(np.max(some)) for some in times(segment)), default=NO_TIME)

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


def _v1_times(dataset: ExistingDataset, log: Log, segment: DatasetSegment) -> Iterator[Longs]:
    files = dataset.v1[log]
    own = V1Files(
        records={segment.first: files.records[segment.first]},
        indexes={start: info for start, info in files.indexes.items() if start == segment.first},
    )
    (listed,) = v1_partition(dataset.target.store, *log, own).segments
    if listed.segment is not None:
        for records, _ in readable_index(listed.segment)[0].scan(ReadNotes()):
            yield records.numbers[:, k.TIME]


def _readers(dataset: ExistingDataset) -> dict[Log, FilesPartitionReader]:
    some = dataset.reader.partitions if dataset.reader is not None else ()
    return {(each.topic, each.partition): each for each in some if isinstance(each, FilesPartitionReader)}


def _files(reader: FilesPartitionReader) -> tuple[DatasetSegment, ...]:
    return tuple(DatasetSegment(first_offset(info.name), (info.name,), info.size) for info in reader.files)


def first_offset(name: str) -> int:
    """The number in the name of a file."""
    found = _NUMBER.search(name.rpartition("/")[2])
    return int(found[1]) if found else -1


def _file_times(reader: FilesPartitionReader, segment: DatasetSegment) -> Iterator[Longs]:
    alone = replace(reader, files=tuple(info for info in reader.files if info.name in segment.names))
    for batch in alone.records(ReadNotes()):
        if batch.num_rows:
            yield numbers(batch, "timestamp")
