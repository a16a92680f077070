"""What a reader of datasets returns: topics, partitions with their records as Arrow, groups, and what is doubtful.

A `DatasetReader` is made once from a listing and the small files. Records are read through its partitions, which
pickle: a task takes one, reads it in order with bounded memory, and fills `ReadNotes` on the way. Errors are those of a
dataset that cannot be used; what is merely doubtful is a note, what is missing a gap.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import msgspec

from logkeep.errors import UsageError
from logkeep.kafka.record.dataset_document import DatasetLog, NotedLog
from logkeep.kafka.record.documents import AclRecord, GroupRecord, QuotaRecord
from logkeep.kafka.record.import_label import Doubt, ToolLabel
from logkeep.model.findings import Finding
from logkeep.model.ranges import Range
from logkeep.model.segments import Position

if TYPE_CHECKING:
    import pyarrow as pa


ABORTED_UNKNOWN = "which records belong to aborted transactions"
"""Said in the label of an archive that has them as ordinary records."""
GONE = "the dataset had files with these, and they are not there"
GONE_AT_END = "the dataset had these, and they are not there"
OVERLAPPING = "overlapping-records"
"""Code of a doubt: several files have these records, or one has them again; the first ones are taken."""
START_MISSING = "start-missing"
"""Code of a doubt: files are missing at the start, and `prune` has not deleted them."""


@dataclass(frozen=True)
class DatasetTopic:
    name: str
    partitions: int | None = None
    """The number of partitions; None: the dataset does not have it, and there may be more partitions than files."""
    replication_factor: int = 0
    """0: not known."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """The configs that were set on the topic, where they are known."""
    inherited: Mapping[str, str] = field(default_factory=dict)
    """The configs that were set on the brokers for all topics, where they are known."""


class DatasetGap(msgspec.Struct, frozen=True, order=True):
    """Offsets `[start, end)` whose records were there, and are not in the dataset."""

    start: Position
    end: Position
    reason: str


class ReadNotes:
    """Collects what a reader meets in one partition."""

    def __init__(self) -> None:
        self._doubts: dict[str, Doubt] = {}
        self._reached = -1
        self.lost: list[DatasetGap] = []

    def after(self, offset: int) -> "ReadNotes":
        """The same notes for a file behind others: what was read up to `offset` is not lost."""
        later = ReadNotes()
        later._doubts, later.lost, later._reached = self._doubts, self.lost, offset
        return later

    def add(self, code: str, count: int, where: str) -> None:
        """Count a doubt. Only the first `where` is kept."""
        known = self._doubts.get(code)
        if count:
            self._doubts[code] = Doubt(code, count + (known.count if known else 0), known.first if known else where)

    def lose(self, start: int, end: int, reason: str) -> None:
        start = max(start, self._reached + 1)
        if start < end:
            self.lost.append(DatasetGap(start, end, reason))

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        return tuple(self._doubts[code] for code in sorted(self._doubts))


class PartitionReader(Protocol):
    """One partition of a dataset. Pickles."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def size_bytes(self) -> int:
        """About how many bytes are stored."""

    @property
    def span(self) -> Range | None:
        """The offsets that it covers, where a manifest says so; None: from its first to its last record."""

    def records(self, notes: ReadNotes, start: int = 0) -> "Iterator[pa.RecordBatch]":
        """Batches of the schema in `formats.datasets.arrow`, in order of offset, from `start` on."""

    def listed(self, notes: ReadNotes) -> Sequence[int]:
        """First offsets of the files that are there, in order. What the listing and the indexes show to be missing or
        doubtful is noted; no record is read."""


@dataclass(frozen=True)
class LostPartition:
    """A partition without a file."""

    topic: str
    partition: int
    size_bytes: int = 0
    span: Range | None = None

    def records(self, notes: ReadNotes, start: int = 0) -> "Iterator[pa.RecordBatch]":
        yield from ()

    def listed(self, notes: ReadNotes) -> Sequence[int]:
        return ()


@dataclass(frozen=True)
class DatasetReader:
    """A dataset that was recognised."""

    label: ToolLabel
    topics: tuple[DatasetTopic, ...]
    partitions: tuple[PartitionReader, ...]
    groups: Mapping[str, Mapping[tuple[str, int], int]] = field(default_factory=dict)
    """Offsets of each group, by topic and partition, as they were committed."""
    findings: tuple[Finding, ...] = ()
    """Findings about files other than those with records."""
    known_groups: tuple[GroupRecord, ...] = ()
    """Groups with everything that was committed, where the dataset has it; they count instead of `groups`."""
    noted_topics: Mapping[str, DatasetTopic] = field(default_factory=dict)
    """Topics as the writer of the dataset noted them, by name; also those that have no file."""
    notes: Mapping[DatasetLog, NotedLog] = field(default_factory=dict)
    """What the writer of the dataset noted."""
    cluster_id: str = ""
    """The id of the cluster that was archived, where the dataset has it."""
    acls: tuple[AclRecord, ...] | None = None
    """None: the dataset does not have them."""
    quotas: tuple[QuotaRecord, ...] = ()
    has_aborted: bool = False
    """Whether its writer took records of aborted transactions too, and each record counts as doubtful."""

    @property
    def size_bytes(self) -> int:
        return sum(p.size_bytes for p in self.partitions)

    def partition(self, topic: str, partition: int) -> PartitionReader:
        """The reader of one partition. Raises UsageError if the dataset has no such partition."""
        found = [p for p in self.partitions if (p.topic, p.partition) == (topic, partition)]
        if not found:
            raise UsageError("the dataset has no such partition", subject=f"{topic}/{partition}")
        return found[0]

    def records(
        self, topic: str, partition: int, from_offset: int = 0, notes: ReadNotes | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """The records of one partition, in order."""
        return self.partition(topic, partition).records(notes or ReadNotes(), from_offset)


def by_topic(partitions: Sequence[PartitionReader]) -> dict[str, list[PartitionReader]]:
    found: dict[str, list[PartitionReader]] = {}
    for each in partitions:
        found.setdefault(each.topic, []).append(each)
    return found
