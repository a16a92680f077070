"""Whole exports in this process, from records in a list."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.dataset_upkeep.verify import read_back
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.run import DatasetExport, ExportDone, ExportOptions
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.datasets.values import ExportableLog, ExportableLogs, LogToExport, ReadCounts
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.record.documents import GroupRecord, TopicRecord
from logkeep.model.work import Engine, Progress
from logkeep.store.access import create_place
from logkeep.store.base import Store
from logkeep.store.local.store import LocalStore
from tests.support.kafka.arrow_rows import ArrowRow, record_batch

ID = "a" * 32
Rows = Mapping[DatasetLog, Sequence[ArrowRow]]


def rows(*offsets: int, value: bytes | None = b"v") -> list[ArrowRow]:
    return [(offset, 0, 0, b"k", value, []) for offset in offsets]


def exportable(topic: str, partition: int, start: int, end: int, history: str = "") -> ExportableLog:
    """A log of a backup if it has a history, otherwise one of a cluster."""
    return ExportableLog(DatasetLog(topic, partition), history or ID, start, end, 100, -1 if history else 1)


def exportable_logs(
    *logs: ExportableLog, groups: Sequence[GroupRecord] = (), partitions: int | None = None
) -> ExportableLogs:
    counts = {each.log.topic: partitions or each.log.partition + 1 for each in logs}
    topics = tuple(TopicRecord(name, ID, False, count, 1, {}) for name, count in sorted(counts.items()))
    return ExportableLogs("c", all(each.live for each in logs), topics, logs, tuple(groups))


@dataclass(frozen=True)
class ListedSource:
    """An `ExportSource`."""

    facts: ExportableLogs
    data: Rows
    fails: dict[DatasetLog, tuple[int, Exception]] = field(default_factory=dict)
    """Raised once, in place of the first record from this offset on."""

    def records(self, logs: tuple[LogToExport, ...], engine: Engine, units: int) -> "ListedSource":
        return self

    def buried_below(self, log: DatasetLog, offset: int) -> int:
        return 0

    @contextmanager
    def opened(self) -> Iterator["ListedSource"]:
        yield self

    def read(
        self, planned: LogToExport, start: int, counts: ReadCounts, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        for row in self.data.get(planned.log, ()):
            if not start <= row[0] < planned.end:
                continue
            failing = self.fails.get(planned.log)
            if failing is not None and row[0] >= failing[0]:
                raise self.fails.pop(planned.log)[1]
            yield record_batch([row])


@dataclass(frozen=True)
class ListedExports:
    """Into a directory, or into a store that is none."""

    place: Path | Store
    form: str = "kafka-backup-v1"
    segment_bytes: int = 50
    schema: str = ""

    @property
    def target(self) -> DatasetTarget:
        place = self.place
        return DatasetTarget(LocalStore(place), place) if isinstance(place, Path) else DatasetTarget(place)

    def task(self, *rewrite: str) -> DatasetExport:
        options = ExportOptions(self.form, "committed", DatasetOptions(self.segment_bytes, self.schema), rewrite)
        create = partial(create_place, str(self.place)) if isinstance(self.place, Path) else lambda: None
        return DatasetExport(self.target, options, read_back, create)

    def run(self, source: ListedSource, *rewrite: str) -> ExportDone:
        return self.task(*rewrite).run(source, lambda _: InlineEngine())

    def add(self, log: ExportableLog, *offsets: int, value: bytes | None = b"v") -> ExportDone:
        """One log with these records."""
        return self.run(ListedSource(exportable_logs(log), {log.log: rows(*offsets, value=value)}))
