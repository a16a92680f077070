"""The records of a dataset as tables, with the columns of Spark's Kafka source."""

from collections.abc import Iterator

import pyarrow as pa

from logkeep.kafka.importing.reader import DatasetReader, PartitionReader, ReadNotes, by_topic
from logkeep.kafka.tables.columns import spark_columns
from logkeep.kafka.tables.options import COLUMNS

SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())


def dataset_tables(reader: DatasetReader) -> dict[str, list[PartitionReader]]:
    """The partitions of each table: every topic, and `records` for all, which wins over a topic of that name."""
    topics = by_topic(reader.partitions)
    own = [topic.name for topic in reader.topics if topic.name.lower() != "records"]
    return {**{name: topics.get(name, []) for name in own}, "records": list(reader.partitions)}


def dataset_rows(unit: PartitionReader) -> Iterator[pa.RecordBatch]:
    """All records of one partition. What is doubtful about them is not reported here: `kafka import` does."""
    for records in unit.records(ReadNotes()):
        yield spark_columns(records, unit.topic, unit.partition, tuple(COLUMNS))
