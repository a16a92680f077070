"""A program of a user of Spark, run by the tests as a process of its own: Spark's connectors beside our data source.

`python -m tests.integration.spark.judge_program MASTER JARS REPO BROKERS TOPICS [CONF=VALUE …]` prints a JSON document.
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

LEVELS = ("read_committed", "read_uncommitted")


def differences(spark: SparkSession, repo: str, brokers: str, topic: str, level: str) -> dict[str, Any]:
    """Spark's own source on the live topic against ours on the backup, by the same options."""
    job = {"kafka.bootstrap.servers": brokers, "kafka.isolation.level": level, "subscribe": topic}
    job |= {"includeHeaders": "true"}
    live = spark.read.format("kafka").options(**job).load().cache()
    ours = spark.read.format("logkeep").options(**job, repo=repo).load().cache()
    return {
        "same types": live.dtypes == ours.dtypes,
        "records": live.count(),
        "only live": live.exceptAll(ours).count(),
        "only ours": ours.exceptAll(live).count(),
    }


def main(master: str, jars: str, repo: str, brokers: str, topics: str, *conf: str) -> None:
    builder = SparkSession.builder.master(master).config("spark.jars", jars)
    for each in ("spark.sql.shuffle.partitions=2", *conf):
        builder = builder.config(*each.split("=", 1))
    spark = builder.getOrCreate()
    found = {f"{t} {level}": differences(spark, repo, brokers, t, level) for t in topics.split(",") for level in LEVELS}
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
