"""The records of a dataset as tables, with the columns of Spark's Kafka source, and what the tables lack."""

from collections.abc import Iterator

import pyarrow as pa

from logkeep.kafka.importing.findings import doubt_text
from logkeep.kafka.importing.reader import DatasetReader, PartitionReader, ReadNotes, by_topic
from logkeep.kafka.importing.writer_notes import note_missing_files
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.tables.columns import spark_columns
from logkeep.kafka.tables.options import COLUMNS
from logkeep.model.findings import Finding, Severity

SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())


def dataset_tables(reader: DatasetReader) -> dict[str, list[PartitionReader]]:
    """The partitions of each table: every topic, and `records` for all, which wins over a topic of that name."""
    topics = by_topic(reader.partitions)
    own = [topic.name for topic in reader.topics if topic.name.lower() != "records"]
    return {**{name: topics.get(name, []) for name in own}, "records": list(reader.partitions)}


def dataset_rows(unit: PartitionReader) -> Iterator[pa.RecordBatch]:
    """All records of one partition. What only reading them shows is not reported here: `kafka import` does."""
    for records in unit.records(ReadNotes()):
        yield spark_columns(records, unit.topic, unit.partition, tuple(COLUMNS))


def missing_files(reader: DatasetReader) -> Iterator[Finding]:
    """What the tables lack, as far as the listing, the indexes and the document show it: the tasks that read records
    cannot report."""
    for each in reader.partitions:
        log, notes = DatasetLog(each.topic, each.partition), ReadNotes()
        note_missing_files(each, reader.notes.get(log), notes)
        for gap in sorted(notes.lost):
            what = f"offsets [{gap.start}, {gap.end}) are not in the dataset: {gap.reason}"
            yield Finding(code="gap", severity=Severity.NOTE, where=str(log), what=what)
        for doubt in notes.doubts:
            what = f"{doubt_text(doubt.code, doubt.count)[1]}; the first: {doubt.first}"
            yield Finding(code=doubt.code, severity=Severity.NOTE, where=str(log), what=what)
