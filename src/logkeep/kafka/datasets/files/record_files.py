"""Datasets of whole files, Avro or Parquet: which partitions there are, and where each ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from logkeep.errors import Damaged, TargetUnsafe, UsageError
from logkeep.kafka.datasets.files.kinds import AvroKind, ParquetKind, RecordFileKind
from logkeep.kafka.datasets.files.names import EMPTY, TOPICS, first_offset_of, folder, log_of
from logkeep.kafka.datasets.files.writer import FilesWriter
from logkeep.kafka.datasets.formats import DatasetEnd, DatasetOptions
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.store.base import ObjectInfo
from logkeep.store.object_file import open_object

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RecordFiles:
    """A `DatasetFormat` for one kind of files."""

    kind: RecordFileKind

    @property
    def name(self) -> str:
        return self.kind.name

    def schema(self, options: DatasetOptions) -> str:
        return self.kind.schema(options)

    def holds_all(self, options: DatasetOptions) -> bool:
        return self.kind.holds_all(options)

    def root(self, topic: str) -> str:
        return f"{TOPICS}{topic}/"

    def logs(self, target: DatasetTarget) -> frozenset[DatasetLog]:
        found = (log_of(info.name, self.kind.ending) for info in target.names(TOPICS))
        return frozenset(log for log in found if log is not None)

    def find_end(self, target: DatasetTarget, log: DatasetLog) -> DatasetEnd:
        files, size, is_empty, starts = None, 0, False, list[int]()
        for info in target.names(folder(log)):
            if info.name.endswith(f"/{EMPTY}"):
                is_empty = True
            elif (start := first_offset_of(info.name, log, self.kind.ending)) is not None:
                files, size = info, size + info.size
                starts.append(start)
            else:
                raise _unsafe(target, info.name, "this is not a file of the dataset")
        if files is None:
            return DatasetEnd(joined=is_empty)
        last = self._last_offset(target, log, files)
        return DatasetEnd(joined=True, last=last, first=starts[0], records_bytes=size, starts=tuple(starts))

    def writer(self, target: DatasetTarget, log: DatasetLog, options: DatasetOptions) -> FilesWriter:
        joined = any(True for _ in target.names(folder(log)))
        return FilesWriter(target, log, self.kind, options, joined=joined)

    def has_last(self, target: DatasetTarget, log: DatasetLog, record: "pa.RecordBatch") -> bool:
        ending = self.kind.ending
        files = [each for each in target.names(folder(log)) if first_offset_of(each.name, log, ending) is not None]
        if not files:
            return False
        try:
            with open_object(target.store, files[-1].name, files[-1].size) as file:
                return self.kind.has_last(file, log, record)
        except (Damaged, UsageError) as error:
            raise _unsafe(target, files[-1].name, error.what) from error

    def put_groups(self, target: DatasetTarget, log: DatasetLog, positions: Mapping[str, int]) -> None:
        """These formats have no place for groups; the dataset's own documents have."""

    def _last_offset(self, target: DatasetTarget, log: DatasetLog, info: ObjectInfo) -> int:
        first = first_offset_of(info.name, log, self.kind.ending)
        try:
            with open_object(target.store, info.name, info.size) as file:
                last = self.kind.last_offset(file, log, first or 0)
        except (Damaged, UsageError) as error:
            raise _unsafe(target, info.name, error.what) from error
        if last is None:
            raise _unsafe(target, info.name, "this file is of another topic, partition or offset, or has no record")
        return last


def _unsafe(target: DatasetTarget, name: str, what: str) -> TargetUnsafe:
    remedy = "remove the file, or write to an empty directory"
    return TargetUnsafe(what, subject=f"{target.url}/{name}", remedy=remedy)


AVRO, PARQUET = RecordFiles(AvroKind()), RecordFiles(ParquetKind())
