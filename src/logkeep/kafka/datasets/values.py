"""What an export knows of its source, and what it plans for each log. Values that cross process borders."""

from dataclasses import dataclass, field

import msgspec

from logkeep.kafka.logs.read_times import ReadTimes
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.record.documents import AclRecord, GroupRecord, QuotaRecord, TopicRecord
from logkeep.model.clock_time import ClockTime
from logkeep.model.findings import Finding
from logkeep.model.ranges import Range


@dataclass(frozen=True)
class ExportableLog:
    """One log of the source."""

    log: DatasetLog
    history: str
    """The topic id as 32 hex digits; of an archived log, the name of its history, which begins with them."""
    start: int
    end: int
    """The last stable offset: a dataset never goes beyond it."""
    size_bytes: int = 0
    """About how many bytes all of its records have."""
    broker: int = -1
    """The leader in a cluster."""
    buried: int = 0
    """Archived offsets that are left out, because their keys were deleted at the source."""
    folded_to: int = 0
    """Below this offset the archived log was folded, which may have dropped tombstones."""
    unproven: str = ""
    """Why deletions may be missing in what is archived; empty if none can."""
    lost: tuple[Range, ...] = ()
    """Offsets that the source once had, and that were lost before they could be archived."""

    @property
    def live(self) -> bool:
        """A log of a cluster may lose its end and grow again; an archived one has another history then."""
        return self.broker >= 0


@dataclass(frozen=True)
class ExportableLogs:
    """A cluster, or a backup of one."""

    cluster_id: str
    live: bool
    """Whether it is a cluster: then a log that is shorter than the dataset has lost its end."""
    topics: tuple[TopicRecord, ...]
    logs: tuple[ExportableLog, ...]
    groups: tuple[GroupRecord, ...]
    acls: tuple[AclRecord, ...] | None = None
    quotas: tuple[QuotaRecord, ...] = ()
    configs_known: bool = False
    """Whether all configs of the topics are known, those of the brokers too."""
    cut: ClockTime | None = None
    """The time before the first log end was read."""
    named: frozenset[str] = frozenset()
    """Topics that the user named, each by its whole name."""
    findings: tuple[Finding, ...] = ()
    """What the source has and an export of it lacks: topics that are hidden from this user, transactions that hang."""

    def positions(self) -> dict[DatasetLog, dict[str, int]]:
        """What groups have committed, by log. Share groups have no single position."""
        found: dict[DatasetLog, dict[str, int]] = {}
        for group in self.groups:
            for commit in group.commits if group.kind != "share" else ():
                if commit.committed >= 0:
                    found.setdefault(DatasetLog(commit.topic, commit.partition), {})[group.name] = commit.committed
        return found


@dataclass(frozen=True)
class LogToExport:
    """A log of which offsets `[start, end)` are read, and their visible records written."""

    source: ExportableLog
    start: int
    joined: bool
    """Whether the dataset has the partition already."""
    last: int = -1
    """The offset of the last record that the dataset has; -1 if it has none."""
    unfinished: bool = False
    """A killed run left something in the dataset that has to be cut off, listed or removed."""
    hole: Range | None = None
    """Offsets between the dataset's end and the log start, which the source has no longer."""
    passed: tuple[Range, ...] = ()
    """Lost offsets that an earlier run passed and did not report, because it failed."""

    @property
    def lost(self) -> tuple[tuple[int, int], ...]:
        """All lost offsets that the dataset passes, as far as they are known before the log is read."""
        archived = (r for r in self.source.lost if r.end > self.start and r.start < self.end)
        holes = (*self.passed, *((self.hole,) if self.hole is not None else ()), *archived)
        return tuple(dict.fromkeys((r.start, r.end) for r in holes))

    @property
    def log(self) -> DatasetLog:
        return self.source.log

    @property
    def end(self) -> int:
        return self.source.end

    @property
    def offsets(self) -> int:
        return max(self.end - self.start, 0)

    @property
    def size_bytes(self) -> int:
        """About how many bytes are read."""
        whole = max(self.end - self.source.start, 1)
        return self.source.size_bytes * self.offsets // whole


class ExportedLog(msgspec.Struct, frozen=True, kw_only=True):
    """What a task did for one log."""

    topic: str
    partition: int
    records: int
    written_bytes: int
    files: int
    last: int
    """The offset of the last record of the dataset; -1 if it has none."""
    not_held: dict[str, int] = {}
    uncounted: bool = False
    """Whether `not_held` leaves out records that an earlier attempt wrote."""
    fetched_bytes: int = 0
    dense: bool = False
    """Whether every offset of the range had its record, or its marker."""
    lost: tuple[tuple[int, int], ...] = ()
    """Offsets that the source removed while they were read."""
    times: ReadTimes | None = None
    starts: tuple[int, ...] = ()
    """The same as `DatasetEnd.starts`, for the files that all attempts added."""

    @property
    def log(self) -> DatasetLog:
        return DatasetLog(self.topic, self.partition)


class ExportResult(msgspec.Struct, frozen=True):
    logs: tuple[ExportedLog, ...]


@dataclass
class ReadCounts:
    """What a source has read for one log."""

    fetched_bytes: int = 0
    dense_offsets: int = 0
    """Offsets in batches without a hole."""
    lost: list[tuple[int, int]] = field(default_factory=list)
    times: ReadTimes | None = None
