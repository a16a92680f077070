"""The peer: Spark's own Kafka connector, writing Avro. A program of its own, since it needs a session of its own.

    python -m benchmarks.spark_connector BOOTSTRAP TOPIC DIRECTORY JAR,JAR… [JOBS]

For each job prints the seconds from its start to its end, the CPU seconds of all its processes meanwhile, and how long
it takes after that to sync its files: Spark does not.
"""

import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.client_cpu import client_cpu_s


def main() -> None:
    bootstrap, topic, directory, jars = sys.argv[1:5]
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.local.dir", directory).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(2).count()
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    for number in range(int(sys.argv[5]) if len(sys.argv) > 5 else 1):
        out = Path(directory, f"avro-{number}")
        started, cpu = time.monotonic(), client_cpu_s(without=-1)
        reader.load().write.format("avro").option("compression", "uncompressed").save(str(out))
        ended, spent = time.monotonic(), client_cpu_s(without=-1) - cpu
        _sync(out)
        print(f"{ended - started:.3f} {spent:.3f} {time.monotonic() - ended:.3f}")
    spark.stop()


def _sync(directory: Path) -> None:
    for path in [directory, *directory.iterdir()]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


if __name__ == "__main__":
    main()
