"""Reads records of one log from an Avro file of any writer. Safe for any bytes.

Fields are found by the schema in the file's header, see `schemas`. All records must be of one topic and partition,
and their offsets must rise. Records of a block come only when the block is whole; the error for a torn one comes after
the records before it. A file that ends exactly between two blocks is complete for Avro: it has no end mark.

Headers come from `orderedHeaders` where the file has it, else from the map `headers`. Without `timestampType` times are
create times.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from logkeep.errors import Damaged
from logkeep.formats.datasets.arrow import HEADER, HEADERS, SCHEMA
from logkeep.formats.datasets.avro import avro_kernels as k
from logkeep.formats.datasets.avro.blocks import (
    PIECE_BYTES,
    AvroBlock,
    AvroHeader,
    StoredPiece,
    blocks,
    last_block_at,
    plain_pieces,
    read_header,
)
from logkeep.formats.datasets.avro.container import AvroCodec
from logkeep.formats.datasets.avro.schemas import FIELD_NAMES, read_program
from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroOptions
from logkeep.formats.datasets.record_parts import BytesAt, headers_column, record_batch
from logkeep.formats.kafka.record_kernels import Bytes, Longs

_MOST_ROWS = 1 << 13
_TOGETHER_BYTES, _LARGE_BYTES = 2 << 20, 16 << 20
_LARGEST_RECORD = 2 * k.LARGEST_PIECE
_NO_HEADERS = pa.nulls(0, HEADER)  # `pyarrow.array` would import pandas
_FAULTS = {
    k.SHORT: "a record is longer than its block",
    k.BAD: "a record is malformed",
    k.FOREIGN: "a record is of another topic or partition than the first one",
    k.FALLING: "offsets do not rise",
    k.LEFT_OVER: "bytes are left after the last record",
}


class AvroFile:
    """An open file. `topic` and `partition` are known when the first records were read."""

    def __init__(self, file: BinaryIO, subject: str = "") -> None:
        """Reads the header. Raises UsageError, FormatTooNew, Damaged."""
        self._file, self._subject = file, subject
        self.header: AvroHeader = read_header(file, subject)
        self._program = read_program(self.header.schema, subject)
        self.topic, self.partition = "", -1

    def records(self) -> Iterator[pa.RecordBatch]:
        """All records, in order, as `arrow.SCHEMA`. Raises Damaged with the byte of the block."""
        return self._records_from(self.header.size)

    def last_offset(self) -> int | None:
        """Read from the end of the file: of its last block alone. None if it has no record."""
        last = self.last_record()
        return None if last is None else last.column("offset")[0].as_py()

    def last_record(self) -> pa.RecordBatch | None:
        """The same, with all its columns."""
        last = None
        for batch in self._records_from(last_block_at(self._file, self.header, self._subject)):
            last = batch.slice(batch.num_rows - 1)
        return last

    def _records_from(self, at: int) -> Iterator[pa.RecordBatch]:
        window = _Window(self._file, self.header, at, self._subject)
        rows = np.empty((_MOST_ROWS, k.READ_COLUMNS), np.int64)
        before = -1
        while window.fill():
            if self.partition < 0:
                self._learn_names(window, rows)
            filled = window.decode(self._program, self._name, self.partition, before, rows)
            if filled:
                before = int(rows[filled - 1, k.OFFSET])
                yield self._batch(window.data, rows[:filled])
            window.drop_decoded()

    @property
    def _name(self) -> Bytes:
        return np.frombuffer(self.topic.encode(), np.uint8)

    def _learn_names(self, window: "_Window", rows: Longs) -> None:
        """Topic and partition of the first record, which all others must have."""
        if not window.peek(self._program, rows[:1]):
            return
        at, size = int(rows[0, k.TOPIC_AT]), int(rows[0, k.TOPIC_SIZE])
        partition = int(rows[0, k.PARTITION_NUMBER])
        try:
            self.topic = window.data[at : at + size].tobytes().decode()
        except UnicodeDecodeError as error:
            raise Damaged("the topic of the first record is not text", subject=self._subject) from error
        if not 0 <= partition < 1 << 31:
            raise Damaged(f"the first record has the partition {partition}", subject=self._subject)
        self.partition = partition

    def _batch(self, data: Bytes, rows: Longs) -> pa.RecordBatch:
        keys = BytesAt(rows[:, k.KEY_AT], rows[:, k.KEY_SIZE])
        values = BytesAt(rows[:, k.VALUE_AT], rows[:, k.VALUE_SIZE])
        kinds = rows[:, k.KIND].astype(np.int8)
        headers = self._headers(data, rows)
        return record_batch(data, rows[:, k.OFFSET], rows[:, k.TIME], kinds, keys, values, headers)

    def _headers(self, data: Bytes, rows: Longs) -> pa.Array:
        in_list = rows[:, k.LIST_COUNT] >= 0
        counts = np.maximum(np.where(in_list, rows[:, k.LIST_COUNT], rows[:, k.MAP_COUNT]), 0)
        total = int(counts.sum())
        if not total:
            nothing = pa.py_buffer(np.zeros(len(rows) + 1, np.int32))
            return pa.Array.from_buffers(HEADERS, len(rows), [None, nothing], children=[_NO_HEADERS])
        found = np.empty((total, k.HEADER_COLUMNS), np.int64)
        k.header_entries(data, rows, found, -1, self._list_null)
        names = BytesAt(found[:, k.NAME_AT], found[:, k.NAME_SIZE])
        return headers_column(data, counts, names, BytesAt(found[:, k.HEADER_AT], found[:, k.HEADER_SIZE]))

    @property
    def _list_null(self) -> int:
        steps = self._program[self._program[:, k.FIELD] == k.HEADER_LIST]
        return int(steps[0, k.VALUES]) if len(steps) else -1


class _Window:
    """Plain bytes of some blocks, the last of which may be open. It grows only by bytes that are there."""

    def __init__(self, file: BinaryIO, header: AvroHeader, at: int, subject: str) -> None:
        self._file, self._header, self._subject = file, header, subject
        self._unread = blocks(file, header, at, subject)
        self._pieces: Iterator[bytes | StoredPiece] = iter(())
        self._parts: list[_Part] = []
        self._error: Damaged | None = None
        self._decoded, self._wanted, self._is_full = 0, _TOGETHER_BYTES, False
        self._buffer, self._end = np.empty(_TOGETHER_BYTES, np.uint8), 0

    @property
    def data(self) -> Bytes:
        shown = self._buffer[: self._end]
        shown.flags.writeable = False
        return shown

    def fill(self) -> bool:
        """Read until there is enough to decode; False at the end of the file. Raises Damaged, after all records."""
        if self._is_full:
            return True
        try:
            while self._error is None and self._end < self._wanted:
                if not self._parts or not self._parts[-1].open:
                    block = next(self._unread)
                    self._pieces = plain_pieces(self._file, self._header.codec, block, self._subject)
                    self._parts.append(_Part(block, self._end, self._end, block.records))
                elif piece := next(self._pieces, b""):
                    self._append(piece)
                    self._parts[-1].end = self._end
                else:
                    self._parts[-1].open = False
        except StopIteration:
            pass
        except Damaged as error:
            self._error = error
            if self._parts and self._parts[-1].open:
                self._parts.pop()
        if self._error is not None and not self._parts:
            raise self._error
        return bool(self._parts)

    def _append(self, piece: bytes | StoredPiece) -> None:
        after = self._end + len(piece)
        if after > len(self._buffer):
            self._resize(max(after, min(2 * len(self._buffer), self._wanted + PIECE_BYTES)))
        place = self._buffer[self._end : after].data
        if isinstance(piece, bytes):
            place[:] = piece
        else:
            piece.read_into(place)
        self._end = after

    def _resize(self, size: int) -> None:
        larger = np.empty(size, np.uint8)
        larger[: self._end] = self._buffer[: self._end]
        self._buffer = larger

    def decode(self, program: Longs, topic: Bytes, partition: int, before: int, rows: Longs) -> int:
        """How many rows are filled in. They refer to `data`, until `drop_decoded`."""
        spans = self._spans()
        filled, at, why, field = k.decode_rows(self.data, self._decoded, spans, program, topic, partition, before, rows)
        for part, left in zip(self._parts, spans[:, k.LEFT].tolist(), strict=True):
            part.left = left
        self._decoded, self._wanted, self._is_full = at, _TOGETHER_BYTES, why == k.FULL
        if why not in (k.DONE, k.FULL):
            self._extend_or_fail(at, why, field)
        return filled

    def peek(self, program: Longs, rows: Longs) -> int:
        """Fill in the first rows without taking them."""
        return k.decode_rows(self.data, self._decoded, self._spans(), program, self.data[:0], -1, -1, rows)[0]

    def _spans(self) -> Longs:
        return np.array([(part.end, part.left) for part in self._parts], np.int64)

    def _extend_or_fail(self, at: int, why: int, field: int) -> None:
        part = next((part for part in self._parts if part.left or part.end > at), self._parts[-1])
        missing = self._end - at
        if why == k.SHORT and part.open and missing < _LARGEST_RECORD:
            self._wanted = max(_TOGETHER_BYTES, 2 * missing)
            return
        where = f"the block at byte {part.block.at}, byte {at - part.start} of its records"
        name = f" ({FIELD_NAMES[field]})" if field >= 0 else ""
        self._error = Damaged(f"{where}: {_FAULTS[why]}{name}", subject=self._subject)
        self._parts = []

    def drop_decoded(self) -> None:
        """What is left moves to the front, unless it is decoded next; the memory of a large record is not kept."""
        if self._is_full:
            self._parts = [part for part in self._parts if part.left or part.open or part.end > self._decoded]
            return
        rest = self._buffer[self._decoded : self._end].copy()
        self._end = len(rest)
        if len(self._buffer) > _LARGE_BYTES > self._wanted:
            self._buffer = np.empty(max(_TOGETHER_BYTES, len(rest)), np.uint8)
        self._buffer[: len(rest)] = rest
        for part in self._parts:
            part.start, part.end = part.start - self._decoded, part.end - self._decoded
        self._parts = [part for part in self._parts if part.left or part.open or part.end > 0]
        self._decoded = 0


@dataclass
class _Part:
    """A block in the window: where its plain bytes begin and end, and how many of its records are not decoded."""

    block: AvroBlock
    start: int
    end: int
    left: int
    open: bool = True


def warm() -> None:
    """Compile the kernels of Avro files."""
    headers = [{"key": b"h", "value": b""}]
    record = {"offset": 0, "timestamp": 0, "timestamp_type": 0, "key": b"k", "value": b"v", "headers": headers}
    writer = AvroFileWriter("t", 0, 0, AvroOptions(codec=AvroCodec.NULL))
    parts = writer.begin(), writer.add(pa.RecordBatch.from_pylist([record], SCHEMA)), writer.end()
    for _ in AvroFile(BytesIO(b"".join(parts))).records():
        pass
