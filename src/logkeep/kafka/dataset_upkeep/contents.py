"""What a dataset has, by names, sizes and indexes. Reads no record."""

import struct
from collections.abc import Iterator

import msgspec

from logkeep.formats.datasets.kafka_backup_v1.files import ENTRY_BYTES, MAGIC
from logkeep.kafka.dataset_upkeep.dataset import ExistingDataset
from logkeep.kafka.dataset_upkeep.segments import first_offset
from logkeep.kafka.importing.files import FilesPartitionReader
from logkeep.kafka.importing.kafka_backup_v1 import V1Files
from logkeep.kafka.importing.reader import PartitionReader
from logkeep.kafka.record.dataset_document import DatasetLog, NotedLog
from logkeep.store.base import Store


class DatasetPartition(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    first: int | None
    last: int | None
    """Offsets of the first and the last record; null if there is none, or if only reading the records would show it.
    Names of Avro and Parquet files show only the first offset; the last one is what the run that wrote it noted."""
    files: int
    """How many files with records there are."""
    stored_bytes: int
    """The size of these files."""


def contents_of(dataset: ExistingDataset) -> Iterator[DatasetPartition]:
    for (topic, number), files in dataset.v1.items():
        yield _of_v1(dataset.target.store, topic, number, files)
    notes = dataset.document.noted if dataset.document is not None else {}
    for each in dataset.reader.partitions if dataset.reader is not None else ():
        yield _of_reader(each, notes.get(DatasetLog(each.topic, each.partition)))


def _of_v1(store: Store, topic: str, number: int, files: V1Files) -> DatasetPartition:
    return DatasetPartition(
        topic=topic,
        partition=number,
        first=next((o for start in sorted(files.indexes) if (o := _entry(store, files, start, 0)) is not None), None),
        last=next(
            (o for start in sorted(files.indexes, reverse=True) if (o := _entry(store, files, start, -1)) is not None),
            None,
        ),
        files=len(files.records),
        stored_bytes=sum(info.size for info in files.records.values()),
    )


def _entry(store: Store, files: V1Files, start: int, which: int) -> int | None:
    """The offset in the first (0) or last (-1) entry of a segment's index; None if it has no whole entry."""
    index = files.indexes[start]
    count = (index.size - len(MAGIC)) // ENTRY_BYTES
    if count < 1:
        return None
    at = len(MAGIC) + (which % count) * ENTRY_BYTES
    (offset,) = struct.unpack(">q", store.get_range(index.name, at, 8))
    return int(offset) if offset >= 0 else None


def _of_reader(reader: PartitionReader, note: NotedLog | None) -> DatasetPartition:
    span, first, last, files = reader.span, None, None, 1
    if isinstance(reader, FilesPartitionReader):
        files = len(reader.files)
        starts = [first_offset(info.name) for info in reader.files]
        first = starts[0] if starts else None
        last = note.last if note is not None and starts[-1:] == list(note.starts[-1:]) and starts else None
    known = span if span is not None and span.start < span.end else None
    return DatasetPartition(
        topic=reader.topic,
        partition=reader.partition,
        first=known.start if known else first,
        last=known.end - 1 if known else last,
        files=files,
        stored_bytes=reader.size_bytes,
    )
