"""Columns of records in Arrow, as the arrays that kernels take. Nothing is copied but numbers.

Bytes are read-only, also where their owner may write, and numbers are not: kernels are compiled for each kind of array.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from logkeep.formats.kafka.record_kernels import Bytes, Longs
from logkeep.formats.kafka.records import Flags

_NO_BYTES = np.frombuffer(b"", np.uint8)


class BinarySpans(NamedTuple):
    """The values of a binary column: where each begins in the data, and its size; -1 for null."""

    data: Bytes
    starts: Longs
    sizes: Longs


def binary_spans(column: pa.Array) -> BinarySpans:
    if not len(column):
        return BinarySpans(_NO_BYTES, np.empty(0, np.int64), np.empty(0, np.int64))
    around = _borders(column)
    sizes = np.diff(around)
    if column.null_count:
        sizes[_nulls(column)] = -1
    data = column.buffers()[2]
    found = np.frombuffer(data, np.uint8) if data is not None and data.size else _NO_BYTES
    found.flags.writeable = False
    return BinarySpans(found, around[:-1].copy(), sizes)


def binary_sizes(column: pa.Array) -> Longs:
    """The size of each value of a binary column; 0 for null."""
    if not len(column):
        return np.empty(0, np.int64)
    sizes = np.diff(_borders(column))
    if column.null_count:
        sizes[_nulls(column)] = 0
    return sizes


def _borders(column: pa.Array) -> Longs:
    borders = np.frombuffer(column.buffers()[1], np.int32)
    return borders[column.offset : column.offset + len(column) + 1].astype(np.int64)


def _nulls(column: pa.Array) -> Flags:
    found: Flags = ~column.is_valid().to_numpy(zero_copy_only=False)
    return found


def list_borders(column: pa.ListArray) -> Longs:
    """For n lists n + 1 borders in `column.values`."""
    if not len(column):
        return np.zeros(1, np.int64)
    found: Longs = column.offsets.to_numpy().astype(np.int64)
    return found


def numbers(records: pa.RecordBatch, name: str) -> Longs:
    """A column of numbers, or of times as milliseconds. It has no nulls."""
    column = records.column(name)
    kind = np.int8 if column.type == pa.int8() else np.int64
    found = np.frombuffer(column.buffers()[1], kind) if len(column) else np.empty(0, kind)
    return found[column.offset : column.offset + len(column)].astype(np.int64)
