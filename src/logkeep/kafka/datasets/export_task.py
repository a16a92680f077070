"""The task of an export: it reads logs of a source and adds their visible records to a dataset, one log at a time.

An attempt that is repeated continues where the dataset ends by then.
"""

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from logkeep.errors import TargetUnsafe
from logkeep.kafka.datasets.format_table import dataset_format
from logkeep.kafka.datasets.formats import DatasetEnd, DatasetFormat, DatasetOptions, RecognisesLast
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.datasets.values import ExportedLog, ExportResult, LogToExport, ReadCounts
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.model.work import Progress

if TYPE_CHECKING:
    import pyarrow as pa


class OpenRecords(Protocol):
    def read(
        self, planned: LogToExport, start: int, counts: ReadCounts, progress: Progress
    ) -> Iterator["pa.RecordBatch"]:
        """The visible records of `[start, planned.end)`, in order. Fills in the counts at the end."""


class RecordSource(Protocol):
    """Where records come from: a cluster or a backup."""

    def opened(self) -> AbstractContextManager[OpenRecords]: ...


@dataclass(frozen=True)
class ExportUnit:
    target: DatasetTarget
    format: str
    options: DatasetOptions
    source: RecordSource
    logs: tuple[LogToExport, ...]

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.logs)


def export_logs(unit: ExportUnit, progress: Progress) -> ExportResult:
    """A task: export the logs of a unit. Raises errors of the source and of the target."""
    with unit.source.opened() as records:
        return ExportResult(tuple(_export(unit, records, each, progress) for each in unit.logs))


def compare_ends(unit: ExportUnit, progress: Progress) -> ExportResult:
    """A task: compare the last record of each log with the source, and write nothing. The result of a log has one
    record, or none if the source has none there. Raises TargetUnsafe if it has another one."""
    form, compared = dataset_format(unit.format), list[ExportedLog]()
    with unit.source.opened() as records:
        for each in unit.logs:
            counts, (topic, partition) = ReadCounts(), each.log
            own, found = form.find_end(unit.target, each.log), 0
            with closing(_read(records, each, each.start, counts, progress)) as last:
                for batch in last:
                    found += batch.num_rows
                    for _ in _after_last(unit.target, form, each.log, own, iter([batch])):
                        pass
            compared.append(
                ExportedLog(topic=topic, partition=partition, records=found, written_bytes=0, files=0, last=each.start)
            )
    return ExportResult(tuple(compared))


def _export(unit: ExportUnit, records: OpenRecords, planned: LogToExport, progress: Progress) -> ExportedLog:
    form = dataset_format(unit.format)
    own = form.find_end(unit.target, planned.log)
    before = -1 if own.last is None else own.last
    start = planned.start if own.next is None else max(planned.start, own.next)
    compared = own.last if planned.source.live and isinstance(form, RecognisesLast) else None
    if compared is not None and compared >= planned.source.start:
        start = compared
    writer, counts = form.writer(unit.target, planned.log, unit.options), ReadCounts()
    try:
        # a thread may read ahead of the writer: it ends here, before its connections are closed
        with closing(_read(records, planned, start, counts, progress)) as found:
            for batch in _after_last(unit.target, form, planned.log, own, found):
                writer.write(batch)
                del batch  # while the next one is made, its memory is free
        written = writer.finish()
    except BaseException:
        writer.abort()
        raise
    return ExportedLog(
        topic=planned.log.topic,
        partition=planned.log.partition,
        records=written.records,
        written_bytes=written.written_bytes,
        files=written.files,
        last=max(written.last, before),
        not_held=dict(written.not_held),
        uncounted=before > planned.last and not form.holds_all(unit.options),
        fetched_bytes=counts.fetched_bytes,
        dense=counts.dense_offsets == planned.end - planned.start,
        lost=tuple((max(first, before + 1), after) for first, after in counts.lost if after > before + 1),
        times=counts.times,
        starts=(*(start for start in own.starts if start > planned.last), *written.starts),
    )


def _read(
    records: OpenRecords, planned: LogToExport, start: int, counts: ReadCounts, progress: Progress
) -> Generator["pa.RecordBatch", None, None]:
    if planned.offsets:
        yield from records.read(planned, start, counts, progress)


def _after_last(
    target: DatasetTarget, form: DatasetFormat, log: DatasetLog, own: DatasetEnd, found: Iterator["pa.RecordBatch"]
) -> Iterator["pa.RecordBatch"]:
    """The records after the last one of the dataset. Raises TargetUnsafe if the source has another one there."""
    for batch in found:
        rest = batch
        if own.last is not None and batch.num_rows and batch.column("offset")[0].as_py() == own.last:
            if isinstance(form, RecognisesLast) and not form.has_last(target, log, batch.slice(0, 1)):
                raise TargetUnsafe(
                    f"{log} has another record at offset {own.last} than the dataset, which ends there: "
                    "the log lost its end and grew again, or it is another one",
                    subject=target.url,
                    remedy=f"--rewrite {log.topic} writes the topic anew; or write to an empty directory or prefix",
                )
            rest = batch.slice(1)
        if rest.num_rows:
            yield rest
        del batch, rest
