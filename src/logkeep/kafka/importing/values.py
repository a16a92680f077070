"""Units and results of an import: values that cross process borders."""

from dataclasses import dataclass

import msgspec

from logkeep.kafka.importing.reader import DatasetGap, PartitionReader
from logkeep.kafka.record.dataset_document import NotedLog
from logkeep.kafka.record.import_label import Doubt
from logkeep.kafka.scan.values import ScanRange
from logkeep.model.segments import LogName
from logkeep.repository.chain.commits import SourceRef


@dataclass(frozen=True)
class DatasetSurveyUnit:
    """One partition of a dataset, and what is archived of it."""

    reader: PartitionReader
    archived: ScanRange | None = None
    note: NotedLog | None = None
    has_aborted: bool = False

    @property
    def size_bytes(self) -> int:
        return self.reader.size_bytes


class PartitionSurvey(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that reading one partition shows."""

    topic: str
    partition: int
    start: int
    end: int
    """The offsets that the dataset covers, `[start, end)`; both 0 without any."""
    records: int
    size_bytes: int
    gaps: tuple[DatasetGap, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    differs_at: int = -1
    """The first offset whose record is not equal to the archived one; -1: there is none."""
    unarchived: int = 0
    """Records at offsets that are archived without a record."""


@dataclass(frozen=True)
class ImportRange:
    """Offsets `[lo, hi)` of one partition that are archived, with those of them that are lost."""

    reader: PartitionReader
    log: LogName
    lo: int
    hi: int
    gaps: tuple[DatasetGap, ...]

    @property
    def size_bytes(self) -> int:
        return self.reader.size_bytes


@dataclass(frozen=True)
class ImportUnit:
    """What one task archives."""

    name: str
    place: SourceRef
    backup: int
    run: str
    ranges: tuple[ImportRange, ...]
    segment_bytes: int

    @property
    def size_bytes(self) -> int:
        return sum(r.size_bytes for r in self.ranges)
