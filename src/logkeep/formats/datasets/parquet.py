"""Writes and reads records of one log as Parquet files.

Columns: key, value, topic, partition, offset, timestamp (ms, UTC), timestampType, headers (a list of structs of two
byte strings). All of them are in the file: tables that are made of files, as Iceberg's, do not read directory names.
Rows are sorted by offset, compressed with zstd, and have statistics and a page index for key, topic, partition, offset
and times.

The bytes of a file depend on its records and the version of pyarrow, not on how many records are given at a time: a row
group ends after the record that brings it to `GROUP_BYTES` or `GROUP_ROWS`.

Reading is safe for any bytes: `parquet_pages` checks footer and pages before the Parquet reader sees them.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logkeep.errors import Damaged, UsageError
from logkeep.formats.datasets.arrow import HEADER, HEADERS, SCHEMA
from logkeep.formats.datasets.parquet_pages import check_file, one_line
from logkeep.formats.datasets.record_sizes import record_sizes

MAGIC = b"PAR1"
GROUP_BYTES, GROUP_ROWS = 16 << 20, 1 << 18
ZSTD_LEVEL = 1
_READ_ROWS = 1 << 14
_PAGE_VALUES = 512
"""The size of a page is compared with its limit after this many values."""

_TOPIC = pa.dictionary(pa.int32(), pa.string())
FILE_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("headers", pa.list_(pa.field("element", HEADER, nullable=False)), nullable=False),
    ]
)
_TOPIC_ONCE = FILE_SCHEMA.set(2, pa.field("topic", _TOPIC, nullable=False))
_NAME_COLUMNS = [FILE_SCHEMA.get_field_index(name) for name in ("topic", "partition", "offset")]
_INDEXED = ["key", "topic", "partition", "offset", "timestamp", "timestampType"]


class ParquetFileWriter:
    """The bytes of one file: `begin`, then `add` as often as there are records, then `end`."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic, self._partition = topic, partition
        self._sink = _Sink()
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = self._held_rows = 0
        self._writer = pq.ParquetWriter(
            self._sink,
            _TOPIC_ONCE,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            use_dictionary=["topic", "partition", "timestampType"],
            write_statistics=_INDEXED,
            write_page_index=True,
            write_batch_size=_PAGE_VALUES,
            sorting_columns=[pq.SortingColumn(FILE_SCHEMA.get_field_index("offset"))],
            store_schema=False,
        )

    def begin(self) -> bytes:
        return self._sink.take()

    def add(self, batch: pa.RecordBatch) -> bytes:
        """The row groups that these records complete. Records have the columns of `arrow.SCHEMA`."""
        ends = np.cumsum(record_sizes(batch))
        first = 0
        while first < len(ends):
            before = int(ends[first - 1]) if first else 0
            last = int(np.searchsorted(ends, before + GROUP_BYTES - self._held_bytes))
            last = min(last, first + GROUP_ROWS - self._held_rows - 1)
            is_full = last < len(ends)
            after = last + 1 if is_full else len(ends)
            self._held.append(batch.slice(first, after - first))
            self._held_bytes, self._held_rows = (
                self._held_bytes + int(ends[after - 1]) - before,
                self._held_rows + after - first,
            )
            if is_full:
                self._write_group()
            first = after
        return self._sink.take()

    def pieces(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        """The same."""
        yield self.add(batch)

    def end(self) -> bytes:
        """The last row group and the footer."""
        if self._held:
            self._write_group()
        self._writer.close()
        return self._sink.take()

    def _write_group(self) -> None:
        """One chunk per column: pages would end where chunks do."""
        rows = pa.Table.from_batches(self._held).combine_chunks()
        self._held = []  # a group is in memory once
        count = len(rows)
        numbers = pa.repeat(pa.scalar(0, pa.int32()), count)
        columns = [
            rows["key"],
            rows["value"],
            pa.DictionaryArray.from_arrays(numbers, pa.array([self._topic])),
            pa.repeat(pa.scalar(self._partition, pa.int32()), count),
            rows["offset"],
            rows["timestamp"],
            rows["timestamp_type"].cast(pa.int32()),
            rows["headers"].cast(FILE_SCHEMA.field("headers").type),
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=_TOPIC_ONCE), row_group_size=count)
        self._held_bytes = self._held_rows = 0


class _Sink:
    """Collects what the Parquet writer writes."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        self.closed = True


class ParquetRecords:
    """An open file. `topic` and `partition` are known when the first records were read."""

    def __init__(self, file: BinaryIO, subject: str = "") -> None:
        """Checks all of the file but values. Raises UsageError if it is not a Parquet file, and Damaged."""
        file.seek(0)
        if file.read(len(MAGIC)) != MAGIC:
            remedy = "one begins with PAR1: copy the file again from where it was written, or remove it"
            raise UsageError("this is not a Parquet file", subject=subject, remedy=remedy)
        check_file(file, len(FILE_SCHEMA) + 1, subject)
        self._subject = subject
        try:
            self._file = pq.ParquetFile(file, pre_buffer=False, read_dictionary=["topic"])
            names = self._file.schema_arrow.remove_metadata()
        except KeyError:  # it has no topic
            names = pa.schema([])
        except _ERRORS as error:
            raise self._unreadable(error) from None
        if not names.equals(_TOPIC_ONCE):
            remedy = f"only files with the columns {', '.join(FILE_SCHEMA.names)} are read"
            raise UsageError("its columns are not those of records", subject=subject, remedy=remedy)
        self.topic, self.partition = "", -1

    def last_offset(self) -> int | None:
        """By the footer's statistics. None if there is no record, or the file has no statistics."""
        groups = self._file.metadata.num_row_groups
        found = self._offsets(groups - 1) if groups else None
        return int(found.max) if found is not None and found.has_min_max else None

    def last_record(self) -> pa.RecordBatch | None:
        """Reads the last row group. None if there is no record. Raises Damaged."""
        last = None
        for batch in self._records_of(range(self._file.num_row_groups)[-1:]):
            last = batch.slice(batch.num_rows - 1)
        return last

    def first_names(self) -> tuple[str, int, int] | None:
        """Topic, partition and offset of the first record, by the footer's statistics."""
        if not self._file.metadata.num_row_groups:
            return None
        columns = [self._file.metadata.row_group(0).column(i).statistics for i in _NAME_COLUMNS]
        if any(each is None or not each.has_min_max for each in columns):
            return None
        topic, partition, offset = (each.min for each in columns)
        return str(topic), int(partition), int(offset)

    def _offsets(self, group: int) -> Any:
        return self._file.metadata.row_group(group).column(FILE_SCHEMA.get_field_index("offset")).statistics

    def records(self) -> Iterator[pa.RecordBatch]:
        """All records, in order, as `arrow.SCHEMA`. Raises Damaged."""
        return self._records_of(range(self._file.num_row_groups))

    def _records_of(self, groups: range) -> Iterator[pa.RecordBatch]:
        before = -1
        try:
            for group in groups:
                for rows in self._file.iter_batches(_READ_ROWS, row_groups=[group], use_threads=False):
                    if rows.num_rows:
                        before = self._check(rows, before, group)
                        yield _records(rows)
        except _ERRORS as error:
            raise self._unreadable(error) from None

    def _check(self, rows: pa.RecordBatch, before: int, group: int) -> int:
        """One topic and partition, offsets that rise. Returns the last offset."""
        rows.validate(full=True)
        if self.partition < 0:
            self.topic, self.partition = rows["topic"][0].as_py(), rows["partition"][0].as_py()
        topics = rows["topic"].dictionary
        if len(topics) > 1:
            topics = rows["topic"].dictionary_decode()
        offsets = np.frombuffer(rows["offset"].buffers()[1], np.int64, rows.num_rows, 8 * rows["offset"].offset)
        if self.partition < 0 or not (_is_all(topics, self.topic) and _is_all(rows["partition"], self.partition)):
            raise Damaged(f"row group {group}: a record is of another topic or partition", subject=self._subject)
        if int(offsets[0]) <= before or (np.diff(offsets) <= 0).any():
            raise Damaged(f"row group {group}: offsets do not rise", subject=self._subject)
        kinds = pc.min_max(rows["timestampType"]).as_py()
        if not -1 <= kinds["min"] <= kinds["max"] <= 1:
            raise Damaged(f"row group {group}: a timestampType is not -1, 0 or 1", subject=self._subject)
        return int(offsets[-1])

    def _unreadable(self, error: BaseException) -> Damaged:
        return Damaged(f"this Parquet file cannot be read: {one_line(error)}", subject=self._subject)


def _is_all(column: pa.Array, value: str | int) -> bool:
    return bool(pc.all(pc.equal(column, value)).as_py())


_ERRORS = (pa.ArrowException, OSError, ValueError, OverflowError, KeyError, IndexError, TypeError)
"""Arrow reports damage through many types, also builtins."""


def _records(rows: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        rows["offset"],
        rows["timestamp"],
        rows["timestampType"].cast(pa.int8()),
        rows["key"],
        rows["value"],
        rows["headers"].cast(HEADERS),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
