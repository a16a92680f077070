"""`logkeep sql` and the data source behind it, on one real session; rows are compared with those made by hand."""

import csv
import io
import json
import os
import random
import shutil
import struct
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from logkeep.cli.frame.main import call
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import standard_console
from logkeep.config.places import NOWHERE
from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.formats.datasets.avro.container import AvroCodec
from logkeep.formats.datasets.avro.schemas import AvroSchema
from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroOptions
from logkeep.model.cache import cache_dir
from tests.support.kafka.arrow_samples import PARTITION, TOPIC, rows_of, sample
from tests.support.kafka.listed_exports import ListedExports, ListedSource, exportable, exportable_logs
from tests.support.kafka.listed_exports import rows as records_at
from tests.support.kafka.salvage_steps import salvaged
from tests.support.kafka.table_logs import START_MS, Row, all_rows, back_up_tables
from tests.support.servers.spark_connectors import CONNECTORS

pytestmark = pytest.mark.xdist_group("spark")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@dataclass(frozen=True)
class Said:
    code: int
    data: bytes
    err: str

    @property
    def out(self) -> str:
        return self.data.decode()


@dataclass(frozen=True)
class Shell:
    """The command in this process, with the one session of this file."""

    engine: SparkEngine
    repo: str
    first: int
    second: int

    def sql(self, query: str, *flags: str) -> Said:
        return self.call("sql", query, *flags)

    def call(self, *words: str) -> Said:
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
        known = {"LOGKEEP_REPO": self.repo, "LOGKEEP_CACHE_DIR": str(cache_dir(os.environ, Path.home()))}
        with redirect_stdout(out), redirect_stderr(err):
            world = World(known, standard_console(known, stdin=io.StringIO()), lambda _: NOWHERE)
            world.spark = self.engine
            code = call([*words], world)
        assert "Traceback" not in err.getvalue(), err.getvalue()
        assert isinstance(out.buffer, io.BytesIO)
        return Said(code, out.buffer.getvalue(), err.getvalue())

    def rows(self, query: str, *flags: str) -> list[list[Any]]:
        said = self.sql(query, "--json", *flags)
        assert said.code == 0, said.err
        found: list[list[Any]] = json.loads(said.out)["rows"]
        return found

    def refused(self, query: str, *flags: str, code: int = 40) -> str:
        said = self.sql(query, *flags)
        assert (said.code, said.data) == (code, b""), said.err
        return said.err


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    directory = tmp_path_factory.mktemp("sql")
    backed = back_up_tables(directory)
    again = salvaged(backed.place, [directory / "source"])[1]
    second = again.entry.id if again.entry is not None else backed.backup
    cache = cache_dir(os.environ, Path.home())
    (avro,) = [jar for jar in CONNECTORS.files(cache) if "spark-avro" in jar.name]
    settings = SparkSettings(cache, "local[2]", {"spark.jars": str(avro)})
    with closing(SparkEngine(settings)) as engine:
        yield Shell(engine, backed.place.store.url, backed.backup, second)


def test_topics_are_tables_and_names_ignore_case(shell: Shell) -> None:
    assert shell.rows("SELECT partition, count(*) FROM ORDERS GROUP BY 1 ORDER BY 1") == [[0, 390], [1, 390]]
    assert shell.rows("SELECT count(*), min(offset) FROM `my-topic.x`") == [[390, 0]]
    assert shell.rows("SELECT topic, count(*) FROM records GROUP BY 1 ORDER BY 1") == [
        ["UPPER", 390],
        ["Upper", 390],
        ["my-topic.x", 390],
        ["orders", 780],
    ]
    joined = "SELECT count(*) FROM orders o JOIN `my-topic.x` x ON o.offset = x.offset WHERE o.partition = 1"
    assert shell.rows(joined) == [[390]]


def test_a_table_shows_bytes_as_text(shell: Shell) -> None:
    said = shell.sql(
        "SELECT key, value, headers, timestamp FROM orders WHERE partition = 0 AND offset IN (1, 4)", "--limit", "1"
    )
    assert said.code == 0
    head, row, count = said.out.splitlines()
    assert head.split() == ["key", "value", "headers", "timestamp"]
    assert row.startswith('key 1  {"n": 1}  [{"key":"a","value":"MQ=="}')
    assert "2023-11-14T22:13:20.007Z" in row
    assert count == "1 row, and more: --limit shows them"


def test_every_output_has_all_rows(shell: Shell) -> None:
    query = "SELECT key, value, topic, partition, offset, timestamp, headers FROM orders ORDER BY partition, offset"
    expected = [row.spark() for row in all_rows("orders")]
    lines = [json.loads(line) for line in shell.sql(query, "--output", "jsonl").out.splitlines()]
    assert [(line["partition"], line["offset"]) for line in lines] == [(row[3], row[4]) for row in expected]
    rows = list(csv.DictReader(io.StringIO(shell.sql(query, "--output", "csv").out)))
    assert [(row["topic"], int(row["offset"])) for row in rows] == [(row[2], row[4]) for row in expected]
    table = pq.read_table(io.BytesIO(shell.sql(query, "--output", "parquet").data))
    assert [(row["key"], row["value"], row["offset"]) for row in table.to_pylist()] == [
        (r[0], r[1], r[4]) for r in expected
    ]
    assert table.schema.field("timestamp").type.tz == "UTC"
    assert shell.sql(query, "--output", "csv", "--limit", "3").out.count("\n") == 4


def test_sparks_own_parquet_reader_reads_a_dataset(shell: Shell, tmp_path: Path) -> None:
    done = shell.call("kafka", "export", str(shell.first), "--format", "parquet", "--to", str(tmp_path / "set"))
    assert done.code == 0, done.err
    shell.rows("SELECT 1")  # the session runs from here on
    spark = SparkSession.active()
    found = spark.read.parquet(str(tmp_path / "set" / "topics" / "orders"))
    columns = (
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "CAST(unix_millis(timestamp) AS BIGINT)",
        "timestampType",
    )
    rows = [tuple(row) for row in found.selectExpr(*columns).orderBy("partition", "offset").collect()]
    expected = [row.spark(headers=False) for row in all_rows("orders")]
    assert [tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in rows] == expected
    headers = found.selectExpr("partition", "offset", "headers").orderBy("partition", "offset").collect()
    assert [[bytes(h["value"]) if h["value"] is not None else None for h in row["headers"]] for row in headers] == [
        [value for _, value in row.headers or ()] for row in all_rows("orders")
    ]


def test_sparks_own_avro_reader_reads_every_schema_and_codec(shell: Shell, tmp_path: Path) -> None:
    """`partition` is a field of the records and a part of the path at once."""
    shell.rows("SELECT 1")
    for schema in AvroSchema:
        batch = sample(200, plain=schema == AvroSchema.SEED001)
        for codec in AvroCodec:
            writer = AvroFileWriter(TOPIC, PARTITION, 0, AvroOptions(schema, codec))
            file = tmp_path / schema / f"partition={PARTITION}" / f"{codec}.data"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(writer.begin() + writer.add(batch) + writer.end())
        reader = SparkSession.active().read.format("avro").option("pathGlobFilter", "*.data")
        rows = [row.asDict(recursive=True) for row in reader.load(str(tmp_path / schema)).orderBy("offset").collect()]
        assert {(row["topic"], row["partition"]) for row in rows} == {(TOPIC, PARTITION)}
        expected = [row if schema == AvroSchema.FAITHFUL else _by_name(row) for row in rows_of([batch])]
        assert [_avro_row(row) for row in rows] == [row for row in expected for _ in AvroCodec]


def _avro_row(row: dict[str, Any]) -> tuple[Any, ...]:
    """As `rows_of` has it. A map has no order."""
    fields = row["offset"], row.get("timestampType", 0), _bytes(row["key"]), _bytes(row["value"]), row["timestamp"]
    if "orderedHeaders" in row:
        return *fields, [(bytes(each["key"]), _bytes(each["value"])) for each in row["orderedHeaders"] or ()]
    return _by_name((*fields, [(name.encode(), bytes(value)) for name, value in (row["headers"] or {}).items()]))


def _by_name(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return *row[:-1], sorted(row[-1])


def _bytes(data: bytearray | bytes | None) -> bytes | None:
    return None if data is None else bytes(data)


def test_the_backup_describes_itself(shell: Shell) -> None:
    assert shell.rows("SELECT topic, partitions FROM logkeep_topics ORDER BY 1")[-1] == ["orders", 2]
    assert (
        shell.rows("SELECT sum(end_offset - start_offset) FROM logkeep_partitions WHERE topic = 'orders'")[0][0] >= 878
    )
    assert shell.rows("SELECT count(*) FROM logkeep_groups") == [[0]]
    assert shell.rows("SELECT count(DISTINCT object) > 0 FROM logkeep_segments") == [[True]]


def test_two_backups_are_compared(shell: Shell) -> None:
    given = ("--backup", str(shell.second), "--as", f"then={shell.first}")
    assert shell.rows("SELECT * FROM `then.orders` EXCEPT ALL SELECT * FROM orders", *given) == []
    assert shell.rows("SELECT count(*) FROM `then.logkeep_topics`", *given) == [[4]]
    assert "--as then=2" in shell.refused("SELECT 1", "--as", "then=1", "--as", "then=2")
    assert "--as ID" in shell.refused("SELECT 1", "--as", "ID")


def test_values_are_decoded(shell: Shell) -> None:
    query = "SELECT value_json, parse_json(value_json):n::int, key_json FROM orders WHERE partition = 0 AND offset = 1"
    assert shell.rows(query, "--decode") == [['{"n": 1}', 1, None]]


def test_a_dataset_is_queried_too(shell: Shell, tmp_path: Path) -> None:
    """One record, its bytes written by hand."""
    topic, name = tmp_path / "sold", "segment_partition_000_from_offset_0000000000"
    topic.mkdir()
    record = struct.pack(">qiqi1si1si", 7, 0, START_MS, 1, b"k", 1, b"v", 0)
    (topic / f"{name}_records").write_bytes(b"\1" + record)
    (topic / f"{name}_index").write_bytes(b"\1" + struct.pack(">qqq", 7, 1, len(record)))
    (topic / "index_partition_000").write_bytes(b"\1" + struct.pack(">i", len(name)) + name.encode() + bytes(8))
    (topic / "consumer_offsets_partition_000").write_text("{}")
    assert shell.rows("SELECT key, value, offset FROM sold", "--from", str(tmp_path)) == [["k", "v", 7]]
    assert "the nearest are: `sold`" in shell.refused("SELECT * FROM solt", "--from", str(tmp_path))
    assert "leave them out" in shell.refused("SELECT 1", "--from", str(tmp_path), "--as", "then=1")


def test_a_query_of_a_dataset_names_what_is_missing(shell: Shell, tmp_path: Path) -> None:
    """One file in the middle, one whole partition, one whole topic: the rows are fewer, and the answer says so."""
    exports = ListedExports(tmp_path / "set", "avro", segment_bytes=1)
    logs = [exportable("sold", 0, 0, 3), exportable("sold", 1, 0, 2), exportable("gone", 0, 0, 2)]
    exports.run(ListedSource(exportable_logs(*logs), {each.log: records_at(*range(each.end)) for each in logs}))
    query, there = "SELECT count(*) FROM records", ("--from", str(tmp_path / "set"))
    whole = json.loads(shell.sql(query, "--json", *there).out)
    assert (whole["rows"], whole["findings"]) == ([[7]], [])
    topics = tmp_path / "set" / "topics"
    (topics / "sold" / "partition=0" / f"sold+0-{1:020}.data").unlink()
    for lost in (topics / "sold" / "partition=1", topics / "gone"):
        shutil.rmtree(lost)
    said = json.loads(shell.sql(query, "--json", *there).out)
    assert said["rows"] == [[2]]
    assert {(f["code"], f["severity"]) for f in said["findings"]} == {("gap", "note")}
    assert sorted(f"{f['where']} {f['what'].partition(' are ')[0]}" for f in said["findings"]) == [
        "gone/0 offsets [0, 2)",
        "sold/0 offsets [1, 2)",
        "sold/1 offsets [0, 2)",
    ]
    assert shell.rows("SELECT count(*) FROM gone", *there) == [[0]]
    assert "NOTE    sold/0: offsets [1, 2) are not in the dataset" in shell.sql(query, *there).out


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT * FROM oders", "the nearest are: `orders`"),
        ("SELECT * FROM kafka.orders", "there is no table `kafka`"),
        ("SELECT * FROM db.orders", "the nearest are: `orders`"),
        ("SELECT * FROM upper", "several topics are called UPPER and Upper"),
        ("SELECT * FROM my.topic.x", "there is no table `my.topic.x`"),
        ("SELECT colour FROM orders", "Spark cannot answer the query"),
        ("SELECT * FROM my-topic.x", "Spark cannot answer the query"),
        ("DROP VIEW orders", "Spark cannot answer the query"),
    ],
)
def test_a_wrong_query_is_answered_with_what_is_there(shell: Shell, query: str, says: str) -> None:
    assert says in shell.refused(query)


def test_contradictions_are_refused(shell: Shell) -> None:
    assert "leave one out" in shell.refused("SELECT 1", "--output", "csv", "--json")
    assert "no backup has the id 1" in shell.refused("SELECT 1", "--backup", "1")
    assert "--engine is inline" in shell.refused("SELECT 1", "--engine", "inline")


def test_a_table_that_is_read_twice_has_the_rows_of_both(shell: Shell) -> None:
    """Spark keeps one plan for each frame: filters are not pushed down where that would lose rows."""
    both = "SELECT * FROM orders WHERE offset = 5 UNION ALL SELECT * FROM orders WHERE offset = 300"
    assert len(shell.rows(both)) == 4
    shared = "WITH o AS (SELECT * FROM orders) SELECT (SELECT count(*) FROM o WHERE offset < 5), count(*) FROM o"
    assert shell.rows(shared) == [[10, 780]]


def test_spark_keeps_the_plan_of_filters_which_is_why_pushdown_is_off_by_default(shell: Shell) -> None:
    shell.rows("SELECT 1")
    for pushdown, after in (("false", 780), ("true", 2)):
        frame = _frame(shell, subscribe="orders", pushdown=pushdown)
        assert frame.where("offset = 5").count() == 2
        assert frame.count() == after, "a Spark that answers 780 with pushdown has repaired it: make it the default"


def _frame(shell: Shell, **options: str) -> DataFrame:
    spark = SparkSession.active()
    return spark.read.format("logkeep").options(repo=shell.repo, includeHeaders="true", **options).load()


def _collected(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((_plain(row) for row in frame.collect()), key=str)


def _plain(row: Any) -> tuple[Any, ...]:
    return tuple(_cell(value) for value in row)


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, list):
        return tuple(
            (header["key"], bytes(header["value"]) if header["value"] is not None else None) for header in value
        )
    return bytes(value) if isinstance(value, bytearray) else value


def _conditions(seed: int, count: int) -> list[str]:
    """Random filters, also such as are not pushed, and as exclude each other."""
    rng = random.Random(seed)

    def one() -> str:
        offset, ms = rng.randrange(-5, 450), START_MS + rng.randrange(-2000, 42_000)
        time = (_EPOCH + timedelta(milliseconds=ms)).strftime("%Y-%m-%d %H:%M:%S.%f")
        compared = rng.choice(("<", "<=", ">", ">=", "=", "<>"))
        return rng.choice(
            (
                f"offset {compared} {offset}",
                f"offset IN ({offset}, {offset + 7}, NULL)",
                f"timestamp {compared} TIMESTAMP '{time} UTC'",
                f"partition {compared} {rng.randrange(3)}",
                f"topic {rng.choice(('=', '<>', '<'))} '{rng.choice(('orders', 'Upper', 'none'))}'",
                "topic IN ('orders', 'UPPER')",
                f"(offset < {offset} OR partition = 1)",
                "key = X'6b65792031'",
                "value IS NULL",
                f"NOT (offset BETWEEN {offset} AND {offset + 30})",
            )
        )

    return [" AND ".join(one() for _ in range(rng.randint(1, 4))) for _ in range(count)]


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 22))])
def test_filters_give_the_same_rows_with_pushdown_and_without(shell: Shell, seed: int) -> None:
    shell.rows("SELECT 1")  # the session runs
    spark, answers = SparkSession.active(), list[list[tuple[Any, ...]]]()
    conditions = _conditions(seed, 8)
    try:
        for setting in ("true", "false"):
            spark.conf.set(_PUSHDOWN, setting)
            frames = [
                _frame(shell, pushdown=setting).where(each).withColumn("case", lit(n))
                for n, each in enumerate(conditions)
            ]
            whole = frames[0]
            for frame in frames[1:]:
                whole = whole.unionAll(frame)
            answers.append(_collected(whole))
    finally:
        spark.conf.set(_PUSHDOWN, "true")
    assert answers[0] == answers[1], conditions


def test_a_frame_has_the_rows_of_the_log(shell: Shell) -> None:
    shell.rows("SELECT 1")
    assert _collected(_frame(shell, subscribe="orders")) == _expected(all_rows("orders"))
    whole = _frame(shell, subscribe="orders", minPartitions="6", pushdown="true")
    part = whole.where("partition = 1 AND offset BETWEEN 50 AND 60")
    rows = [row for row in all_rows("orders") if row.partition == 1 and 50 <= row.offset <= 60]
    assert _collected(part) == _expected(rows)
    assert _collected(_frame(shell, subscribe="orders", isolation="all")) == _expected(
        all_rows("orders", isolation="all")
    )
    assert _frame(shell).select("offset").where("topic = 'none'").count() == 0


def _expected(rows: list[Row]) -> list[tuple[Any, ...]]:
    return sorted((row.spark() for row in rows), key=str)
