"""Three sources of the same records in one Spark session, read without a sink: ours, Kafka's and Parquet files.

    python -m benchmarks.spark_scans BOOTSTRAP TOPIC REPOSITORY PARQUET-DIRECTORY JAR,JAR… ROUNDS

Prints the least wall seconds and CPU seconds of each, of all processes of Spark: `ours=…,…;Spark's Kafka source=…,…;
spark.read.parquet=…,…`. The session is warm, the sources take turns.
"""

import sys
import time

from pyspark.sql import DataFrame, SparkSession

from benchmarks.client_cpu import client_cpu_s


def main() -> None:
    bootstrap, topic, repository, files, jars, rounds = sys.argv[1:]
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

    best: dict[str, tuple[float, float]] = {}
    for _ in range(int(rounds) + 1):
        for name, opened in (("ours", ours), ("Spark's Kafka source", connector), ("spark.read.parquet", parquet)):
            began, spent = time.monotonic(), client_cpu_s(without=-1)
            opened().write.format("noop").mode("overwrite").save()
            now = time.monotonic() - began, client_cpu_s(without=-1) - spent
            wall, cpu = best.get(name, now)
            best[name] = min(wall, now[0]), min(cpu, now[1])
    print(";".join(f"{name}={wall:.3f},{cpu:.2f}" for name, (wall, cpu) in best.items()))
    spark.stop()


if __name__ == "__main__":
    main()
