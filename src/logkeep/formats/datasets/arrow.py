"""Records as an Arrow table, for other formats and for queries.

Nothing is lost: null and empty differ in keys, values and header values, headers keep their order and may repeat, and
names of headers are bytes, because they need not be text. Times are milliseconds since 1970; -1 means no time, as in
Kafka. The columns are copies: they stay valid when the records are overwritten.
"""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.encode_kernels import count_borders, pack
from logkeep.formats.kafka.record_kernels import Bytes, Ints, Longs, header_spans
from logkeep.formats.kafka.records import Flags, RecordColumns

CREATE_TIME, APPEND_TIME = 0, 1
"""Values of `timestamp_type`, as Kafka's clients number them: the latter where a record has the append time."""

HEADER = pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())])
HEADERS = pa.list_(pa.field("header", HEADER, nullable=False))
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("timestamp_type", pa.int8(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS, nullable=False),
    ]
)


def arrow_records(records: RecordColumns, columns: Collection[str] | None = None) -> pa.RecordBatch:
    """One row per record, also for control records; filter with `RecordColumns.chosen` before.

    Only these columns, in the order of `SCHEMA`; None: all of them.
    """
    fields = [field for field in SCHEMA if columns is None or field.name in columns]
    return pa.RecordBatch.from_arrays([_column(field.name, records) for field in fields], schema=pa.schema(fields))


def _column(name: str, records: RecordColumns) -> pa.Array:
    spans = records.spans
    match name:
        case "offset":
            return _numbers(name, records.offsets)
        case "timestamp":
            return _numbers(name, records.times_ms)
        case "timestamp_type":
            return _numbers(name, records.append_time.astype(np.int8))
        case "key":
            return binary_column(records.data, spans[:, k.KEY_AT], spans[:, k.KEY_SIZE])
        case "value":
            return binary_column(records.data, spans[:, k.VALUE_AT], spans[:, k.VALUE_SIZE])
    return _headers(records)


def _headers(records: RecordColumns) -> pa.Array:
    counts = records.spans[:, k.HEADERS]
    room = int(counts.sum(dtype=np.int64))
    if not room:  # of most records: the kernels need not be called
        none = pa.nulls(0, HEADER)
        return pa.Array.from_buffers(HEADERS, len(counts), [None, _borders(counts)], children=[none])
    name_at, name_size, value_at, value_size = (np.empty(room, np.int64) for _ in range(4))
    header_spans(records.data, records.spans, name_at, name_size, value_at, value_size)
    names = binary_column(records.data, name_at, name_size)
    values = binary_column(records.data, value_at, value_size)
    pairs = pa.StructArray.from_arrays([names, values], fields=list(HEADER))
    return pa.Array.from_buffers(HEADERS, len(records), [None, _borders(counts)], children=[pairs])


def warm(records: RecordColumns) -> None:
    """Compile what `arrow_records` calls only for records with headers; these may have none."""
    room = int(records.spans[:, k.HEADERS].sum(dtype=np.int64))
    header_spans(records.data, records.spans, *(np.empty(room, np.int64) for _ in range(4)))


def binary_column(data: Bytes, starts: Longs | Ints, sizes: Longs | Ints) -> pa.Array:
    """Parts of the data as an array; a size of -1 is null. Raises ValueError if they do not fit into 31 bits."""
    starts, sizes = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(sizes, np.int64)
    borders = np.empty(len(sizes) + 1, np.int32)
    nulls, end = count_borders(sizes, borders)
    if end < 0:
        raise ValueError("more than 2 GiB of bytes in one column")
    out = np.empty(end, np.uint8)
    pack(data, starts, borders, out)
    there = validity(sizes >= 0) if nulls else None
    return pa.Array.from_buffers(pa.binary(), len(sizes), [there, pa.py_buffer(borders), pa.py_buffer(out)], nulls)


def _borders(lengths: Ints) -> pa.Buffer:
    """Sums fit into 32 bits: all pieces come from a buffer of less than 2 GiB."""
    borders = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=borders[1:])
    return pa.py_buffer(borders)


def validity(there: Flags) -> pa.Buffer:
    """The bits that say which values of a column are not null."""
    return pa.py_buffer(np.packbits(there, bitorder="little"))


def _numbers(name: str, column: Longs | npt.NDArray[np.int8]) -> pa.Array:
    """A copy. (`pyarrow.array` would import pandas.)"""
    return pa.Array.from_buffers(SCHEMA.field(name).type, len(column), [None, pa.py_buffer(column.copy())])
