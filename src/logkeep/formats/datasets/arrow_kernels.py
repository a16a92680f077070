"""The compiled part of turning records into Arrow columns: where the headers of many records lie."""

import numpy as np

from logkeep.formats.jit import kernel
from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.record_kernels import Bytes, Ints, Longs, Number, varint32


@kernel
def header_spans(data: Bytes, spans: Ints, name_at: Longs, name_size: Longs, value_at: Longs, value_size: Longs) -> int:
    """One row per header, in order; a size of -1 is null. Returns how many rows were filled.

    Records are those of `record_kernels.decode_batches`, which has looked at every length; the columns have room for
    the sum of HEADERS.
    """
    row = 0
    for record in range(spans.shape[0]):
        at: Number = np.int64(spans[record, k.HEADERS_AT])
        end = np.int64(spans[record, k.END_AT])
        for _ in range(spans[record, k.HEADERS]):
            size, at = varint32(data, at, end)
            if at < 0 or size < 0 or size > end - at or row >= name_at.shape[0]:
                return row
            name_at[row], name_size[row] = at, size
            size, at = varint32(data, at + size, end)
            if at < 0 or size > end - at:
                return row
            value_at[row], value_size[row] = at, size
            at += max(size, 0)
            row += 1
    return row
