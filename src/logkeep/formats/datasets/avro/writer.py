"""Writes records of one log as Avro files.

The bytes of a file depend on its records, its options and nothing else: not on how many records are given at a time. A
block ends after the record that brings its plain bytes to `BLOCK_BYTES`.

The schema `seed001` cannot hold everything. What it cannot hold is written as closely as possible, and the records are
counted by kind: a null value becomes empty, of repeated headers the last is kept, a null header becomes empty, a name
that is not UTF-8 is written with U+FFFD in place of what is wrong, and an append time loses its type.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logkeep.formats.datasets.arrow import APPEND_TIME
from logkeep.formats.datasets.avro import avro_kernels as k
from logkeep.formats.datasets.avro.batch_spans import BatchSpans, batch_spans
from logkeep.formats.datasets.avro.container import AvroCodec, block, file_header, number, piece, sync_marker
from logkeep.formats.datasets.avro.schemas import AvroSchema
from logkeep.formats.kafka.record_kernels import Bytes, Longs
from logkeep.formats.kafka.records import Flags

BLOCK_BYTES = 256 << 10
_RECORD_ROOM, _HEADER_ROOM = 64, 44


class AvroLoss(StrEnum):
    """What the schema `seed001` cannot hold."""

    NULL_VALUES = "null-values"
    REPEATED_HEADERS = "repeated-headers"
    NULL_HEADERS = "null-headers"
    HEADER_NAMES = "header-names"
    APPEND_TIMES = "append-times"


@dataclass(frozen=True)
class AvroOptions:
    schema: AvroSchema = AvroSchema.FAITHFUL
    codec: AvroCodec = AvroCodec.DEFLATE


class AvroFileWriter:
    """The bytes of one file: `begin`, then `add` as often as there are records, then `end`."""

    def __init__(self, topic: str, partition: int, first_offset: int, options: AvroOptions) -> None:
        self._options = options
        self._sync = sync_marker(topic, partition, first_offset)
        self._prefix = np.frombuffer(piece(topic.encode()) + number(partition), np.uint8)
        self._held, self._held_records = b"", 0
        self._out = np.empty(0, np.uint8)
        self.losses: Counter[AvroLoss] = Counter()

    def begin(self) -> bytes:
        return file_header(self._options.schema, self._options.codec, self._sync)

    def add(self, batch: pa.RecordBatch) -> bytes:
        """The blocks that these records complete. Records have the columns of `arrow.SCHEMA`."""
        return b"".join(self.pieces(batch))

    def pieces(self, batch: pa.RecordBatch) -> Iterator[bytes | memoryview]:
        """The same without a copy: each piece is valid until the next call. Take all of them."""
        plain, ends = self._encoded(batch)
        first = 0
        while first < len(ends):
            before = int(ends[first - 1]) if first else 0
            last = int(np.searchsorted(ends, before + BLOCK_BYTES - len(self._held)))
            if last == len(ends):
                self._held += plain[before : int(ends[-1])].tobytes()
                self._held_records += last - first
                break
            yield from self._block(plain[before : int(ends[last])], last + 1 - first)
            first = last + 1

    def end(self) -> bytes:
        """The last block, if records are left."""
        return b"".join(self._block(memoryview(b""), 0)) if self._held_records else b""

    def _block(self, plain: memoryview, records: int) -> tuple[bytes | memoryview, ...]:
        whole = memoryview(b"".join((self._held, plain))) if self._held else plain
        made = block(self._options.codec, self._held_records + records, whole, self._sync)
        self._held, self._held_records = b"", 0
        return made

    def _encoded(self, batch: pa.RecordBatch) -> tuple[memoryview, Longs]:
        """The records, valid until the next call, and where each ends."""
        faithful = self._options.schema == AvroSchema.FAITHFUL
        spans = batch_spans(batch)
        text = _mark_headers(spans)
        if faithful:
            spans.headers[:, k.IN_MAP] &= text & (spans.headers[:, k.HEADER_SIZE] >= 0)
        else:
            if not text.all():
                spans = _with_text_names(batch, text)
                _mark_headers(spans)
            self.losses.update(_losses(spans, text))
        room, ends = self._room(spans), np.empty(len(spans), np.int64)
        if room > len(self._out):
            self._out = np.empty(room, np.uint8)
        data = spans.keys, spans.values, spans.names, spans.contents
        if k.encode_rows(self._prefix, spans.rows, spans.headers, *data, int(faithful), self._out, ends) < 0:
            raise ValueError("the columns of the records contradict each other")
        return self._out.data, ends

    def _room(self, spans: BatchSpans) -> int:
        headers = np.maximum(spans.headers[:, [k.NAME_SIZE, k.HEADER_SIZE]], 0).sum()
        sizes = np.maximum(spans.rows[:, [k.KEY_SIZE, k.VALUE_SIZE]], 0).sum()
        fixed = len(spans) * (len(self._prefix) + _RECORD_ROOM) + len(spans.headers) * _HEADER_ROOM
        return int(fixed + sizes + 2 * headers)


def _mark_headers(spans: BatchSpans) -> Bytes:
    """Mark which headers a map keeps: the last of each name. Returns which names are text."""
    text = np.ones(len(spans.headers), np.uint8)
    if len(text) and k.mark_headers(spans.names, spans.rows, spans.headers, text):
        spans.headers[:, k.IN_MAP] = 0
        spans.headers[_last_of_each_name(spans), k.IN_MAP] = 1
    return text


def _last_of_each_name(spans: BatchSpans) -> Longs:
    counts = spans.rows[:, k.HEADERS_END] - spans.rows[:, k.HEADERS_FROM]
    names = [spans.names[at : at + size].tobytes() for at, size in spans.headers[:, : k.NAME_SIZE + 1].tolist()]
    table = pa.table(
        {"row": np.repeat(np.arange(len(spans)), counts), "name": names, "header": np.arange(len(names))},
        schema=pa.schema({"row": pa.int64(), "name": pa.binary(), "header": pa.int64()}),
    )
    last = table.group_by(["row", "name"], use_threads=False).aggregate([("header", "max")])["header_max"]
    return np.array(last.to_pylist(), np.int64)


def _with_text_names(batch: pa.RecordBatch, text: Bytes) -> BatchSpans:
    """The same records; what is not UTF-8 in names of headers is U+FFFD."""
    headers = batch.column("headers")
    pairs = headers.flatten()
    names, contents = pairs.flatten()
    wrong = pa.array((text == 0).tolist(), pa.bool_())
    better = [name.decode(errors="replace").encode() for name in names.filter(wrong).to_pylist()]
    names = pc.replace_with_mask(names, wrong, pa.array(better, pa.binary()))
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_pylist()
    borders = pa.array(np.cumsum([0, *counts]).tolist(), pa.int32())
    kind = headers.type
    made = pa.ListArray.from_arrays(
        borders, pa.StructArray.from_arrays([names, contents], fields=list(kind.value_type)), type=kind
    )
    return batch_spans(batch.set_column(batch.schema.get_field_index("headers"), batch.schema.field("headers"), made))


def _losses(spans: BatchSpans, text: Bytes) -> Counter[AvroLoss]:
    """How many records lose something, by kind. Of a repeated header nothing else is counted: it is not in the file."""
    kept = spans.headers[:, k.IN_MAP] == 1
    null = spans.headers[:, k.HEADER_SIZE] < 0
    counts = {
        AvroLoss.NULL_VALUES: int((spans.rows[:, k.VALUE_SIZE] < 0).sum()),
        AvroLoss.REPEATED_HEADERS: _records_with(spans, ~kept),
        AvroLoss.NULL_HEADERS: _records_with(spans, kept & null),
        AvroLoss.HEADER_NAMES: _records_with(spans, kept & (text == 0)),
        AvroLoss.APPEND_TIMES: int((spans.rows[:, k.KIND] == APPEND_TIME).sum()),
    }
    return Counter({kind: count for kind, count in counts.items() if count})


def _records_with(spans: BatchSpans, headers: Flags) -> int:
    """How many records have at least one of these headers."""
    found = np.zeros(len(headers) + 1, np.int64)
    np.cumsum(headers, out=found[1:])
    return int((found[spans.rows[:, k.HEADERS_END]] > found[spans.rows[:, k.HEADERS_FROM]]).sum())
