"""Arrow records as the positions of their bytes, for kernels that write them. Nothing is copied but numbers.

`rows` and `headers` have the columns that `avro_kernels` names; a size of -1 is null.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from logkeep.formats.datasets import avro_kernels as k
from logkeep.formats.kafka.record_kernels import Bytes, Longs

_NOTHING = np.frombuffer(b"", np.uint8)


@dataclass(frozen=True)
class BatchSpans:
    """Records of `arrow.SCHEMA`, in order."""

    rows: Longs
    headers: Longs
    keys: Bytes
    values: Bytes
    names: Bytes
    contents: Bytes

    def __len__(self) -> int:
        return len(self.rows)


def batch_spans(batch: pa.RecordBatch) -> BatchSpans:
    rows = np.empty((batch.num_rows, k.ROW_COLUMNS), np.int64)
    for column, name in ((k.OFFSET, "offset"), (k.TIME, "timestamp"), (k.KIND, "timestamp_type")):
        rows[:, column] = _numbers(batch.column(name))
    keys = _binary(batch.column("key"), rows, k.KEY_AT)
    values = _binary(batch.column("value"), rows, k.VALUE_AT)
    lists = batch.column("headers")
    borders = _borders(lists)
    pairs = lists.values.slice(int(borders[0]), int(borders[-1] - borders[0]))
    rows[:, k.HEADERS_FROM], rows[:, k.HEADERS_END] = borders[:-1] - borders[0], borders[1:] - borders[0]
    headers = np.ones((len(pairs), k.HEADER_COLUMNS), np.int64)
    # `flatten` takes the slice of a struct into account, `field` does not.
    names, contents = pairs.flatten()
    return BatchSpans(
        rows, headers, keys, values, _binary(names, headers, k.NAME_AT), _binary(contents, headers, k.HEADER_AT)
    )


def _numbers(column: pa.Array) -> Longs:
    kind = np.dtype(f"i{column.type.bit_width // 8}")
    found = np.frombuffer(column.buffers()[1] or b"", kind, count=column.offset + len(column))
    return found[column.offset :].astype(np.int64)


def _binary(column: pa.Array, into: Longs, first: int) -> Bytes:
    """Fill in starts and sizes; returns the bytes that they refer to."""
    borders = _borders(column)
    into[:, first], into[:, first + 1] = borders[:-1], np.diff(borders)
    validity, _, data = column.buffers()
    if column.null_count:
        bits = np.unpackbits(np.frombuffer(validity, np.uint8), count=column.offset + len(column), bitorder="little")
        into[bits[column.offset :] == 0, first + 1] = -1
    return np.frombuffer(data, np.uint8) if data is not None and data.size else _NOTHING


def _borders(column: pa.Array) -> Longs:
    buffer = column.buffers()[1]
    if not len(column) or buffer is None or not buffer.size:
        return np.zeros(len(column) + 1, np.int64)
    found = np.frombuffer(buffer, np.int32, count=column.offset + len(column) + 1)
    return found[column.offset :].astype(np.int64)
