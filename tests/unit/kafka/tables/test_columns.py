"""Records as the columns of Spark's Kafka source: the types that Spark compares, and the values that it gives."""

from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from logkeep.formats.datasets.arrow import SCHEMA
from logkeep.kafka.tables.columns import spark_columns
from logkeep.kafka.tables.options import COLUMNS

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
OF_SPARK = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField("headers", _HEADERS),
    ]
)
"""The schema of Spark's own source, written by hand."""
FAR_MS = 2**62


def _records(*rows: tuple[Any, ...]) -> pa.RecordBatch:
    """Rows of offset, time, its type, key, value and headers."""
    names = SCHEMA.names
    dicts = [dict(zip(names, (*row[:5], [{"key": k, "value": v} for k, v in row[5]]), strict=True)) for row in rows]
    return pa.RecordBatch.from_pylist(dicts, SCHEMA)


def test_types_are_those_that_spark_expects() -> None:
    found = spark_columns(_records((0, 0, 0, b"", None, [])), "t", 1, tuple(COLUMNS))
    assert to_arrow_schema(OF_SPARK, timezone="UTC").equals(found.schema)
    assert found["headers"].to_pylist() == [None]
    empty = spark_columns(_records(), "t", 1, tuple(COLUMNS))
    assert (empty.num_rows, empty.schema) == (0, found.schema)


def test_values() -> None:
    headers: list[tuple[bytes, bytes | None]] = [(b"a", b"1"), (b"a", None), (b"\xff\xfe", b""), (b"", b"\xff")]
    found = spark_columns(_records((7, 5, 1, None, b"", headers), (9, -1, 0, b"k", b"v", [])), "t", 3, tuple(COLUMNS))
    found = found.set_column(5, "timestamp", found["timestamp"].cast(pa.int64()))
    assert found.to_pylist() == [
        {
            "key": None,
            "value": b"",
            "topic": "t",
            "partition": 3,
            "offset": 7,
            "timestamp": 5000,
            "timestampType": 1,
            "headers": [
                {"key": "a", "value": b"1"},
                {"key": "a", "value": None},
                {"key": "\ufffd\ufffd", "value": b""},
                {"key": "", "value": b"\xff"},
            ],
        },
        {
            "key": b"k",
            "value": b"v",
            "topic": "t",
            "partition": 3,
            "offset": 9,
            "timestamp": -1000,
            "timestampType": 0,
            "headers": None,
        },
    ]


def test_times_beyond_sparks_are_its_last_ones() -> None:
    found = spark_columns(
        _records((0, FAR_MS, 0, None, None, []), (1, -FAR_MS, 0, None, None, [])), "t", 0, ("timestamp",)
    )
    last = (2**63 - 1) // 1000 * 1000
    assert found["timestamp"].cast(pa.int64()).to_pylist() == [last, -last]


def test_a_slice_has_its_own_headers() -> None:
    rows = _records(*((n, n, 0, None, None, [(b"h%d" % n, None)] * n) for n in range(5)))
    found = spark_columns(rows.slice(2, 2), "t", 0, ("offset", "headers")).to_pylist()
    assert [(row["offset"], [h["key"] for h in row["headers"]]) for row in found] == [(2, ["h2"] * 2), (3, ["h3"] * 3)]
