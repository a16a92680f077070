"""The kernel that decides which neighbouring batches become one, by the exact size of their records when encoded."""

import numpy as np

from logkeep.formats.jit import inlined, kernel
from logkeep.formats.kafka.encode_kernels import varint_size, zigzag
from logkeep.formats.kafka.record_kernels import Bytes, Longs, Number


@inlined
def _encoded_size(ends: Longs, times: Longs, first: Number, start: Number, after: Number) -> Number:
    """The bytes of rows `[start, after)` in a batch whose first record is row `first`."""
    size = np.int64(0)
    for row in range(start, after):
        body = ends[row] - (ends[row - 1] if row else 0)
        inner = 1 + varint_size(zigzag(times[row] - times[first])) + varint_size(zigzag(row - first)) + body
        size += varint_size(zigzag(inner)) + inner
    return size


@kernel(lambda ends, *_: 30 * len(ends))
def begin_groups(ends: Longs, times: Longs, afters: Longs, limits: Longs, begins: Bytes) -> int:
    """Set `begins` where a batch does not fit into the group before it: there a group begins, as where it was set.

    `ends` and `times` are of the records; `afters` is the row after each batch, `limits` how many bytes the encoded
    records of its group may have. Returns the number of groups; -1 if the columns do not fit together.
    """
    groups = 0
    first: Number = np.int64(0)
    row: Number = np.int64(0)
    size: Number = np.int64(0)
    for batch in range(afters.shape[0]):
        after = afters[batch]
        if after <= row or after > ends.shape[0] or after > times.shape[0]:
            return -1
        if batch >= begins.shape[0] or batch >= limits.shape[0]:
            return -1
        more = _encoded_size(ends, times, first, row, after)
        if batch == 0 or begins[batch] != 0 or size + more > limits[batch]:
            begins[batch] = np.uint8(1)
            first, size, groups = row, np.int64(0), groups + 1
            more = _encoded_size(ends, times, first, row, after)
        size += more
        row = after
    return groups
