"""Arrow records as the positions of their bytes, for kernels that write them. Nothing is copied but numbers.

`rows` and `headers` have the columns that `avro_kernels` names; a size of -1 is null.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from logkeep.formats.datasets.avro import avro_kernels as k
from logkeep.formats.datasets.binary_spans import binary_spans, list_borders, numbers
from logkeep.formats.kafka.record_kernels import Bytes, Longs


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
        rows[:, column] = numbers(batch, name)
    keys = _fill(batch.column("key"), rows, k.KEY_AT)
    values = _fill(batch.column("value"), rows, k.VALUE_AT)
    borders = list_borders(batch.column("headers"))
    rows[:, k.HEADERS_FROM], rows[:, k.HEADERS_END] = borders[:-1] - borders[0], borders[1:] - borders[0]
    pairs = batch.column("headers").values.slice(int(borders[0]), int(borders[-1] - borders[0]))
    headers = np.ones((len(pairs), k.HEADER_COLUMNS), np.int64)
    # `flatten` takes the slice of a struct into account, `field` does not.
    names, contents = pairs.flatten()
    return BatchSpans(
        rows, headers, keys, values, _fill(names, headers, k.NAME_AT), _fill(contents, headers, k.HEADER_AT)
    )


def _fill(column: pa.Array, into: Longs, first: int) -> Bytes:
    """Fill in starts and sizes; returns the bytes that they refer to."""
    data, into[:, first], into[:, first + 1] = binary_spans(column)
    return data
