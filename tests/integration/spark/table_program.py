"""A program of a user of Spark, run by the tests as a process of its own: a session without any setting of ours.

`python -m tests.integration.spark.table_program REPO` prints one JSON document.
"""

import json
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


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


if __name__ == "__main__":
    print(json.dumps(plain(*sys.argv[1:])))
