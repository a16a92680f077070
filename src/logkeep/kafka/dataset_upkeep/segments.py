"""The segments of each partition of a dataset, oldest first, and the largest time of a record in one."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from logkeep.errors import UsageError
from logkeep.formats.datasets.binary_spans import numbers
from logkeep.formats.datasets.kafka_backup_v1 import v1_reader_kernels as k
from logkeep.formats.kafka.record_kernels import Longs
from logkeep.kafka.dataset_upkeep.dataset import ExistingDataset
from logkeep.kafka.dataset_upkeep.prune import NO_TIME, DatasetSegment
from logkeep.kafka.dataset_upkeep.v1_segments import WRONG_FILE, readable_index
from logkeep.kafka.importing.files import AVRO, PARQUET, FilesPartitionReader
from logkeep.kafka.importing.kafka_backup_v1 import V1Files, v1_partition
from logkeep.kafka.importing.reader import ReadNotes
from logkeep.kafka.importing.v1_segment import V1SegmentReader
from logkeep.store.base import Store

Log = tuple[str, int]
_NUMBER = re.compile(r"-([0-9]+)\.[a-z]+")


def segments_of(dataset: ExistingDataset) -> dict[Log, tuple[DatasetSegment, ...]]:
    """The segments of each partition. Raises UsageError for archives of other tools: those delete their own files."""
    if dataset.v1:
        return {log: _v1(dataset.target.store, log, files) for log, files in dataset.v1.items()}
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


def _v1(store: Store, log: Log, files: V1Files) -> tuple[DatasetSegment, ...]:
    """The index of a segment goes first: records without an index are still found.

    A segment without a whole record, as a killed writer leaves it, is none: the last one with records stays.
    """
    starts = sorted(start for start, info in files.records.items() if info.size > k.LEAST_RECORD_BYTES)
    while starts and not _has_record(store, log, files, starts[-1]):
        starts.pop()
    return tuple(
        DatasetSegment(
            start,
            tuple(each[start].name for each in (files.indexes, files.records) if start in each),
            sum(each[start].size for each in (files.indexes, files.records) if start in each),
        )
        for start in starts
    )


def _has_record(store: Store, log: Log, files: V1Files, start: int) -> bool:
    with suppress(*WRONG_FILE):
        return readable_index(_opened(store, log, files, start))[0].has_record()
    return False


def _opened(store: Store, log: Log, files: V1Files, start: int) -> V1SegmentReader:
    """One segment, which has a record file with bytes."""
    own = V1Files(
        records={start: files.records[start]},
        indexes={each: info for each, info in files.indexes.items() if each == start},
    )
    (listed,) = v1_partition(store, *log, own).segments
    assert listed.segment is not None  # noqa: S101 - its file has bytes
    return listed.segment


def _v1_times(dataset: ExistingDataset, log: Log, segment: DatasetSegment) -> Iterator[Longs]:
    opened = _opened(dataset.target.store, log, dataset.v1[log], segment.first)
    for records, _ in readable_index(opened)[0].scan(ReadNotes()):
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
