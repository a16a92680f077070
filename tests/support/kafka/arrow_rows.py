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


def plain_rows(batch: pa.RecordBatch) -> list[ArrowRow]:
    times = batch.column("timestamp").cast(pa.int64())
    return [
        (r["offset"], t, r["timestamp_type"], r["key"], r["value"], [(h["key"], h["value"]) for h in r["headers"]])
        for r, t in zip(batch.drop_columns(["timestamp"]).to_pylist(), times.to_pylist(), strict=True)
    ]
