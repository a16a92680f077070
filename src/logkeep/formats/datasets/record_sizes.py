"""How large records are, whatever the format: the rule by which files of a dataset end. Whole columns."""

import numpy as np
import pyarrow as pa

from logkeep.formats.datasets.binary_spans import binary_sizes, list_borders
from logkeep.formats.kafka.record_kernels import Longs

FIXED_BYTES = 32
"""Of a record without key, value and headers: offset, time and lengths."""
_HEADER_BYTES = 8


def record_sizes(batch: pa.RecordBatch) -> Longs:
    """The size of each record of `arrow.SCHEMA`: key, value, names and values of headers, and a fixed part."""
    sizes = binary_sizes(batch.column("key"))
    sizes += binary_sizes(batch.column("value"))
    sizes += FIXED_BYTES
    borders = list_borders(batch.column("headers"))
    if borders[-1] > borders[0]:
        pairs = batch.column("headers").values.slice(int(borders[0]), int(borders[-1] - borders[0]))
        sums = np.zeros(len(pairs) + 1, np.int64)
        np.cumsum(sum(map(binary_sizes, pairs.flatten())) + _HEADER_BYTES, out=sums[1:])
        sizes += np.diff(sums[borders - borders[0]])
    return sizes


def rows_until(sizes: Longs, held_bytes: int, file_bytes: int) -> int:
    """How many of these records a file of `held_bytes` takes: up to the one that brings it to `file_bytes`, or all."""
    reached = int(np.searchsorted(np.cumsum(sizes), file_bytes - held_bytes))
    return min(reached + 1, len(sizes))
