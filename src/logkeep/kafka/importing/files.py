"""Opens datasets of whole files: Avro and Parquet as Logkeep writes them, and buckets of Trivadis kafka-backup.

    topics/<topic>/partition=<n>/<topic>+<n>-<seq>.data|.parquet     as documented by Trivadis; written by Logkeep
    topics/<topic>/partition=<n>/_empty                              by Logkeep: a partition without records so far
    <topic>/<n>/<topic>-<n>-<15 digits>.avro                         as the tool of Trivadis writes it
    <topic>/<connector>/<n>/<topic>-<n>-<15 digits>.avro             the same for compacted topics

Directories say topic and partition; a name is only used for the order of files.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from logkeep.errors import Damaged
from logkeep.kafka.importing.reader import OVERLAPPING, DatasetReader, DatasetTopic, PartitionReader, ReadNotes
from logkeep.kafka.record.import_label import ToolLabel
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.store.base import ObjectInfo, Store
from logkeep.store.object_file import open_object

if TYPE_CHECKING:
    import pyarrow as pa

AVRO, PARQUET, TRIVADIS = "avro", "parquet", "trivadis"
_DOCUMENTED = re.compile(r"topics/([^/]+)/partition=(\d{1,10})/([^/]+)\+(\d{1,10})-(\d{1,20})\.(data|parquet)")
_EMPTY = re.compile(r"topics/([^/]+)/partition=(\d{1,10})/_empty")
_REAL = re.compile(r"([^/]+)/(?:([^/]+)/)?(\d{1,10})/[^/]+-(\d{15,19})\.avro")
_REMEDY = "the file was changed, or belongs to another dataset"
_COPY_AGAIN = (
    "copy the file again from where it was written; a dataset of Logkeep is written anew with --rewrite of an export"
)
_UNKNOWN = ("topic ids, configs and numbers of replicas", "leader epochs, producers and transactions")
NOT_IN_SEED001 = (
    "whether an empty value was null",
    "order, repeats and null values of headers",
    "types of timestamps",
)
"""What a dataset with this schema of Avro does not say."""
_LABELS = {
    AVRO: ToolLabel(AVRO, "Logkeep, or another writer of these Avro files", unknown=_UNKNOWN),
    PARQUET: ToolLabel(PARQUET, "Logkeep, or another writer of these Parquet files", unknown=_UNKNOWN),
    TRIVADIS: ToolLabel(
        TRIVADIS,
        "Trivadis kafka-backup",
        unknown=(
            *_UNKNOWN,
            "whether an empty key or value was null",
            "order, repeats and null values of headers",
            "types of timestamps",
            "offsets of groups",
        ),
    ),
}


@dataclass(frozen=True)
class FilesPartitionReader:
    """One partition: its files in order of their numbers."""

    store: Store
    format: str
    topic: str
    partition: int
    files: tuple[ObjectInfo, ...]

    @property
    def size_bytes(self) -> int:
        return sum(f.size for f in self.files)

    @property
    def span(self) -> Range | None:
        return None

    def records(self, notes: ReadNotes, start: int = 0) -> "Iterator[pa.RecordBatch]":
        from logkeep.formats.datasets.binary_spans import numbers  # noqa: PLC0415 - pyarrow loads late

        last = -1
        for info in self.files:
            for batch in self._file(info, notes):
                offsets = numbers(batch, "offset")
                known = int(offsets.searchsorted(last, "right"))
                notes.add(OVERLAPPING, known, info.name)
                last = max(last, int(offsets[-1]))
                wanted = max(known, int(offsets.searchsorted(start)))
                if wanted < len(offsets):
                    yield batch.slice(wanted)

    def listed(self, notes: ReadNotes) -> Sequence[int]:
        return [_first_offset(info.name) for info in self.files]

    def _file(self, info: ObjectInfo, notes: ReadNotes) -> "Iterator[pa.RecordBatch]":
        try:
            yield from self._records_of(info, notes)
        except Damaged as error:
            if error.remedy != Damaged.remedy:
                raise
            raise Damaged(
                error.what, subject=error.subject, remedy=_COPY_AGAIN
            ) from error  # the usual one is for backups

    def _records_of(self, info: ObjectInfo, notes: ReadNotes) -> "Iterator[pa.RecordBatch]":
        from logkeep.formats.datasets.avro.reader import AvroFile  # noqa: PLC0415 - as above
        from logkeep.formats.datasets.parquet import ParquetRecords  # noqa: PLC0415

        file = cast(BinaryIO, open_object(self.store, info.name, info.size))
        opened = (ParquetRecords if self.format == PARQUET else AvroFile)(file, info.name)
        unordered = isinstance(opened, AvroFile) and b"orderedHeaders" not in opened.header.schema
        for batch in opened.records():
            if (opened.topic, opened.partition) != (self.topic, self.partition):
                what = f"it has records of {opened.topic!r}, partition {opened.partition}"
                raise Damaged(what, subject=info.name, remedy=_REMEDY)
            if batch.num_rows:
                yield self._noted(batch, info.name, notes, unordered=unordered)

    def _noted(self, batch: "pa.RecordBatch", name: str, notes: ReadNotes, *, unordered: bool) -> "pa.RecordBatch":
        """Count what the file could not hold; headers of Trivadis become what they were."""
        import numpy as np  # noqa: PLC0415 - as above

        from logkeep.formats.datasets.binary_spans import binary_spans, list_borders  # noqa: PLC0415
        from logkeep.formats.datasets.java_values import without_java  # noqa: PLC0415

        batch = _with_known_kinds(batch)
        if unordered:
            notes.add("headers-unordered", int((np.diff(list_borders(batch.column("headers"))) > 1).sum()), name)
        if self.format != TRIVADIS:
            return batch
        empty = sum(int((binary_spans(batch.column(c)).sizes == 0).sum()) for c in ("key", "value"))
        notes.add("null-or-empty", empty, name)
        headers, decoded, raw = without_java(batch.column("headers"))
        notes.add("java-headers", decoded, name)
        notes.add("java-headers-raw", raw, name)
        return batch.set_column(batch.schema.get_field_index("headers"), batch.schema.field("headers"), headers)


def _with_known_kinds(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Records without a time are those of a producer: a log has no third kind."""
    import numpy as np  # noqa: PLC0415 - as above
    import pyarrow as pa  # noqa: PLC0415

    at = batch.schema.get_field_index("timestamp_type")
    column = batch.column(at)
    kinds = np.frombuffer(column.buffers()[1], np.int8, len(column), column.offset)
    if (kinds >= 0).all():
        return batch
    made = pa.Array.from_buffers(pa.int8(), len(kinds), [None, pa.py_buffer(np.maximum(kinds, 0).tobytes())])
    return batch.set_column(at, batch.schema.field(at), made)


@dataclass(frozen=True)
class _Found:
    topic: str
    partition: int
    copy: str
    number: int
    info: ObjectInfo


def is_format(objects: Sequence[ObjectInfo], wanted: str) -> bool:
    return any(True for _ in _find_files(objects, wanted))


def open_files(store: Store, objects: Sequence[ObjectInfo], wanted: str) -> DatasetReader:
    """The dataset in a directory or bucket."""
    logs: dict[tuple[str, int], dict[str, list[_Found]]] = {}
    for each in _find_files(objects, wanted):
        logs.setdefault((each.topic, each.partition), {}).setdefault(each.copy, []).append(each)
    for log in _marked_empty(objects) if wanted != TRIVADIS else ():
        logs.setdefault(log, {"": []})
    findings, partitions = list[Finding](), list[PartitionReader]()
    for (topic, partition), copies in sorted(logs.items()):
        chosen = max(
            copies, key=lambda name: (max((f.number for f in copies[name]), default=0), len(copies[name]), name)
        )
        files = tuple(f.info for f in sorted(copies[chosen], key=lambda f: f.number))
        partitions.append(FilesPartitionReader(store, wanted, topic, partition, files))
        findings += _other_copies(topic, partition, chosen, copies)
    topics = tuple(DatasetTopic(name) for name in sorted({topic for topic, _ in logs}))
    return DatasetReader(_LABELS[wanted], topics, tuple(partitions), {}, tuple(findings))


def _find_files(objects: Iterable[ObjectInfo], wanted: str) -> Iterator[_Found]:
    for info in objects:
        if wanted == TRIVADIS:
            if real := _REAL.fullmatch(info.name):
                yield _Found(real[1], int(real[3]), real[2] or "", int(real[4]), info)
        elif (named := _DOCUMENTED.fullmatch(info.name)) and (named[6] == "parquet") == (wanted == PARQUET):
            if (named[1], int(named[2])) != (named[3], int(named[4])):
                raise Damaged("its name is not one of its directory", subject=info.name, remedy=_REMEDY)
            yield _Found(named[1], int(named[2]), "", int(named[5]), info)


def _first_offset(name: str) -> int:
    """Of a file, by its name: the digits behind the last `-`."""
    return int(name.rpartition("-")[2].partition(".")[0])


def _marked_empty(objects: Iterable[ObjectInfo]) -> Iterator[tuple[str, int]]:
    for info in objects:
        if marked := _EMPTY.fullmatch(info.name):
            yield marked[1], int(marked[2])


def _other_copies(topic: str, partition: int, chosen: str, copies: dict[str, list[_Found]]) -> Iterator[Finding]:
    for name in sorted(set(copies) - {chosen}):
        yield Finding(
            code="other-copy",
            severity=Severity.NOTE,
            where=f"{topic}/{partition}",
            what=f"the copy of the connector {name} is not read; the one of {chosen} reaches further",
        )
