"""Programs of a user of Spark, run by the tests as processes of their own: sessions without any setting of ours.

`python -m tests.integration.spark.table_program plain REPO` or `… judge REPO BROKERS TOPICS JARS` prints one document.
"""

import json
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

LEVELS = ("read_committed", "read_uncommitted")


def plain(repo: str) -> dict[str, Any]:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    frame = spark.read.format("logkeep").option("repo", repo).option("subscribe", "orders").load()
    spark.sql(f"CREATE TEMPORARY VIEW `my-topic.x` USING logkeep OPTIONS (repo '{repo}', subscribe 'my-topic.x')")
    window = frame.where("partition = 1 AND offset BETWEEN 100 AND 110")
    return {
        "types": frame.dtypes,
        "records": frame.count(),
        "window": [row["offset"] for row in window.orderBy("offset").collect()],
        "view": spark.sql("SELECT count(*) FROM `my-topic.x` WHERE offset < 22").first()[0],  # type: ignore[index]
        "columns": spark.read.format("logkeep").options(repo=repo, columns="offset,headers").load().columns,
        "wrong": _error(spark, repo, subscribe="oders"),
        "unknown": _error(spark, repo, startingOffset="earliest"),
    }


def _error(spark: SparkSession, repo: str, **options: str) -> str:
    try:
        spark.read.format("logkeep").options(repo=repo, **options).load().count()
    except PySparkException as error:
        return str(error)
    return ""


def judge(repo: str, brokers: str, topics: str, jars: str) -> dict[str, Any]:
    """Spark's own Kafka source on the live topics against ours on the backup, by the same options."""
    spark = SparkSession.builder.master("local[2]").config("spark.jars", jars).getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    answer: dict[str, Any] = {}
    for topic in topics.split(","):
        for level in LEVELS:
            job = {"kafka.bootstrap.servers": brokers, "kafka.isolation.level": level, "subscribe": topic}
            job |= {"includeHeaders": "true"}
            live = spark.read.format("kafka").options(**job).load()
            ours = spark.read.format("logkeep").options(**job, repo=repo).load()
            answer[f"{topic} {level}"] = _differences(live, ours)
    return answer


def _differences(live: DataFrame, ours: DataFrame) -> dict[str, Any]:
    live, ours = live.cache(), ours.cache()
    return {
        "same schema": live.schema == ours.schema,
        "records": live.count(),
        "only live": live.exceptAll(ours).count(),
        "only ours": ours.exceptAll(live).count(),
    }


if __name__ == "__main__":
    print(json.dumps(plain(*sys.argv[2:]) if sys.argv[1] == "plain" else judge(*sys.argv[2:])))
