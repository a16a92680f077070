"""Records in Arrow from plain values, for tests of formats."""

from collections.abc import Sequence

import pyarrow as pa

from logkeep.formats.datasets.arrow import SCHEMA

ArrowRow = tuple[int, int, int, bytes | None, bytes | None, Sequence[tuple[bytes, bytes | None]]]
"""Offset, time in ms, type of the time, key, value, headers."""


def record_batch(rows: Sequence[ArrowRow]) -> pa.RecordBatch:
    columns: list[list[object]] = [[row[i] for row in rows] for i in range(5)]
    columns.append([[{"key": name, "value": value} for name, value in row[5]] for row in rows])
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
