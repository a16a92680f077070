"""Registers the format `logkeep` with Spark, which looks for packages whose names begin with `pyspark_`.

Spark imports this in every session of an environment where Logkeep is installed, so it loads nothing else.
"""

from logkeep.engine.spark.data_source import TableSource
from logkeep.model.table_format import TableFormat


def _kafka_tables() -> TableFormat:
    from logkeep.kafka.tables.format import KafkaTables  # noqa: PLC0415 - Arrow and numpy, slow to load

    return KafkaTables()


class DefaultSource(TableSource):
    """`spark.read.format("logkeep")`."""

    table_format = staticmethod(_kafka_tables)

    @classmethod
    def name(cls) -> str:
        return "logkeep"
