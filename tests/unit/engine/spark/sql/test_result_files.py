"""Results of queries as files: read back by the csv and json modules and by pyarrow."""

import base64
import csv
import io
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logkeep.engine.spark.sql.result_files import SpooledSink, file_sink, python_values
from logkeep.errors import UsageError

TABLE = pa.table(
    {
        "text": pa.array(['a,"b"\nc', "", None, " x"]),
        "bytes": pa.array([b"\x00\xff", b"", None, b"v"], pa.binary()),
        "number": pa.array([1, -(2**63), None, 2**53 + 1], pa.int64()),
        "share": pa.array([0.5, float("nan"), None, float("inf")]),
        "money": pa.array([Decimal("1.50"), None, None, Decimal("-2.00")], pa.decimal128(10, 2)),
        "yes": pa.array([True, False, None, True]),
        "time": pa.array([0, 2**62, None, -1000], pa.timestamp("us", "UTC")),
        "headers": pa.array(
            [[{"key": "a", "value": b"1"}], [], None, []],
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        ),
        "configs": pa.array([[("a", "1")], [], None, []], pa.map_(pa.string(), pa.string())),
    }
)


def _written(form: str, table: pa.Table = TABLE) -> bytes:
    out = io.BytesIO()

    def write(data: bytes) -> bool:
        return out.write(data) == len(data)

    sink = file_sink(form, write)
    sink.begin(table.schema)
    assert all(sink.batch(each) for each in table.to_batches(max_chunksize=2))
    sink.end()
    assert sink.rows == table.num_rows
    return out.getvalue()


def test_json_lines() -> None:
    first, second, third, fourth = map(json.loads, _written("jsonl").splitlines())
    assert first == {
        "text": 'a,"b"\nc',
        "bytes": base64.b64encode(b"\x00\xff").decode(),
        "number": 1,
        "share": 0.5,
        "money": "1.50",
        "yes": True,
        "time": "1970-01-01T00:00:00.000Z",
        "headers": [{"key": "a", "value": "MQ=="}],
        "configs": {"a": "1"},
    }
    assert (second["share"], second["time"]) == ("nan", f"{2**62} µs since 1970")
    assert set(third.values()) == {None}
    assert fourth["number"] == 2**53 + 1


def test_csv_keeps_null_and_empty_apart() -> None:
    text = _written("csv").decode()
    assert text.splitlines()[0] == "text,bytes,number,share,money,yes,time,headers,configs"
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0]["text"] == 'a,"b"\nc'
    assert json.loads(rows[0]["headers"]) == [{"key": "a", "value": "MQ=="}]
    assert text.splitlines()[3].startswith('"","",'), "empty"
    assert text.splitlines()[4] == "," * (len(TABLE.columns) - 1), "null"


def test_parquet_is_written_in_one_pass() -> None:
    comparable = TABLE.drop_columns("share")  # NaN is not equal to itself
    assert pq.read_table(io.BytesIO(_written("parquet", comparable))).equals(comparable)
    nothing = TABLE.slice(0, 0)
    assert pq.read_table(io.BytesIO(_written("parquet", nothing))).equals(nothing)


def test_a_reader_that_has_left_ends_the_query() -> None:
    sink = file_sink("csv", lambda _: False)
    sink.begin(TABLE.schema)
    assert not sink.batch(TABLE.to_batches()[0])


def test_two_columns_of_one_name_are_no_json() -> None:
    twice = pa.schema([("a", pa.int64()), ("a", pa.int64())])
    with pytest.raises(UsageError, match="two columns are called a"):
        file_sink("jsonl", lambda _: True).begin(twice)


def test_a_spooled_query_that_begins_again_writes_its_rows_once() -> None:
    out = io.BytesIO()
    sink = SpooledSink(file_sink("jsonl", lambda data: bool(out.write(data)) or True))
    for _ in range(2):
        sink.begin(TABLE.schema)
        for each in TABLE.to_batches():
            sink.batch(each)
    sink.end()
    assert len(out.getvalue().splitlines()) == TABLE.num_rows


def test_a_time_that_python_cannot_hold_is_shown_all_the_same() -> None:
    local = pa.array([0, 2**62], pa.timestamp("us"))
    assert [str(value) for value in python_values(local)] == ["1970-01-01 00:00:00", f"{2**62} µs since 1970"]
