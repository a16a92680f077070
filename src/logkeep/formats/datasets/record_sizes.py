"""How large records are, whatever the format: the rule by which files of a dataset end. Whole columns."""

import numpy as np
import pyarrow as pa

from logkeep.formats.datasets import avro_kernels as k
from logkeep.formats.datasets.batch_spans import batch_spans
from logkeep.formats.kafka.record_kernels import Longs

FIXED_BYTES = 32
"""Of a record without key, value and headers: offset, time and lengths."""
_HEADER_BYTES = 8


def record_sizes(batch: pa.RecordBatch) -> Longs:
    """The size of each record of `arrow.SCHEMA`: key, value, names and values of headers, and a fixed part."""
    spans = batch_spans(batch)
    sizes: Longs = np.maximum(spans.rows[:, [k.KEY_SIZE, k.VALUE_SIZE]], 0).sum(axis=1) + FIXED_BYTES
    if len(spans.headers):
        headers = np.maximum(spans.headers[:, [k.NAME_SIZE, k.HEADER_SIZE]], 0).sum(axis=1) + _HEADER_BYTES
        sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(headers)))
        sizes += sums[spans.rows[:, k.HEADERS_END]] - sums[spans.rows[:, k.HEADERS_FROM]]
    return sizes


def rows_until(sizes: Longs, held_bytes: int, file_bytes: int) -> int:
    """How many of these records a file of `held_bytes` takes: up to the one that brings it to `file_bytes`, or all."""
    reached = int(np.searchsorted(np.cumsum(sizes), file_bytes - held_bytes))
    return min(reached + 1, len(sizes))
