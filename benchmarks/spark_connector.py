"""The peer: Spark's own Kafka connector, writing Avro. A program of its own, since it needs a session of its own.

    python -m benchmarks.spark_connector BOOTSTRAP TOPIC DIRECTORY JAR,JAR…

Prints the seconds from the start of the job to its end, and the CPU seconds of all its processes meanwhile.
"""

import sys
import time

from pyspark.sql import SparkSession

from benchmarks.client_cpu import client_cpu_s


def main() -> None:
    bootstrap, topic, directory, jars = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    spark = builder.config("spark.ui.enabled", "false").config("spark.local.dir", directory).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(2).count()
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    started, cpu = time.monotonic(), client_cpu_s(without=-1)
    reader.load().write.format("avro").option("compression", "uncompressed").save(f"{directory}/avro")
    print(f"{time.monotonic() - started:.3f} {client_cpu_s(without=-1) - cpu:.3f}")
    spark.stop()


if __name__ == "__main__":
    main()
