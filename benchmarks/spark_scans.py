"""Sources of the same records in one Spark session, read without a sink: ours, Kafka's and Parquet files.

`ready batches` is a data source in Python that makes nothing: it gives one batch of records of the same size again and
again, so it is what any source in Python costs for about as many records.

    python -m benchmarks.spark_scans BOOTSTRAP TOPIC REPOSITORY PARQUET-DIRECTORY JAR,JAR… ROUNDS RECORD-BYTES

Prints the least wall seconds and CPU seconds of each, of all processes of Spark: `ours=…,…;Spark's Kafka source=…,…;
spark.read.parquet=…,…;ready batches=…,…`. The session is warm, the sources take turns, every second time in reverse:
the JVM still compiles what they share, and with few rounds that is a part of the figures. What the processes do after
a query, such as Python's garbage collection after a task, counts for the source of the query.
"""

import sys
import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from benchmarks.client_cpu import client_cpu_s

_TASKS, _TOGETHER, _TOGETHER_BYTES = 4, 10_000, 4 << 20
_PAUSE_S, _MOST_PAUSES = 0.1, 20


class ReadyBatches(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> str:
        return (
            "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
            "timestampType int, headers array<struct<key: string, value: binary>>"
        )

    def reader(self, schema: object) -> DataSourceReader:
        return _ReadyReader(int(self.options["records"]) // _TASKS, int(self.options["bytes"]))


class _ReadyReader(DataSourceReader):
    def __init__(self, records: int, record_bytes: int) -> None:
        self._together = min(_TOGETHER, _TOGETHER_BYTES // record_bytes)
        self._batches, self._bytes = records // self._together, record_bytes

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(_TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        count = self._together
        columns = {
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array([b"x" * self._bytes] * count, pa.binary()),
            "topic": pa.array(["ready"] * count),
            "partition": pa.array([partition.value] * count, pa.int32()),
            "offset": pa.array(list(range(count)), pa.int64()),
            "timestamp": pa.array([1_700_000_000_000_000] * count, pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array([0] * count, pa.int32()),
            "headers": pa.nulls(count, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        }
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        yield from [batch] * self._batches


def _cpu_s() -> float:
    """CPU seconds so far, when little more is added to them."""
    spent = client_cpu_s(without=-1)
    for _ in range(_MOST_PAUSES):
        time.sleep(_PAUSE_S)
        before, spent = spent, client_cpu_s(without=-1)
        if spent - before < _PAUSE_S / 10:
            break
    return spent


def main() -> None:
    bootstrap, topic, repository, files, jars, rounds, record_bytes = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    kafka = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "includeHeaders": "true"}

    def ours() -> DataFrame:
        return spark.read.format("logkeep").options(repo=repository, subscribe=topic, includeHeaders="true").load()

    def connector() -> DataFrame:
        return spark.read.format("kafka").options(**kafka).load()

    def parquet() -> DataFrame:
        return spark.read.parquet(files)

    def ready() -> DataFrame:
        spark.dataSource.register(ReadyBatches)
        return spark.read.format("ready").options(records=records, bytes=record_bytes).load()

    records = parquet().count()
    sources = {"ours": ours, "Spark's Kafka source": connector, "spark.read.parquet": parquet, "ready batches": ready}
    best: dict[str, tuple[float, float]] = {}
    for number in range(int(rounds) + 1):
        for name, opened in [*sources.items()][:: -1 if number % 2 else 1]:
            spent, began = _cpu_s(), time.monotonic()
            opened().write.format("noop").mode("overwrite").save()
            taken = time.monotonic() - began
            now = taken, _cpu_s() - spent
            wall, cpu = best.get(name, now)
            best[name] = min(wall, now[0]), min(cpu, now[1])
    print(";".join(f"{name}={wall:.3f},{cpu:.2f}" for name, (wall, cpu) in best.items()))
    spark.stop()


if __name__ == "__main__":
    main()
