"""What an offline restore is asked for, what it plans, what a task is given, what is told at the end. Values only."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import msgspec

from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, RestoreId
from logkeep.model.segments import LogName, Segment
from logkeep.repository.chain.commits import SourceRef

DEFAULT_SEGMENT_BYTES = 1 << 30
"""A broker's own `segment.bytes`."""


class Way(StrEnum):
    SINGLE = "single"
    SEED = "seed"
    EVERY = "every-replica"


class LogEnd(msgspec.Struct, frozen=True):
    """An earlier end for one archived log."""

    topic: str
    partition: int
    end: int


@dataclass(frozen=True, kw_only=True)
class OfflineWish:
    """What the user asked for."""

    backup: BackupId
    roots: tuple[Path, ...]
    """The broker's `log.dirs`, all of them: a partition may lie in any."""
    choice: RestoreSelection = field(default_factory=RestoreSelection)
    """Topics, names, partitions, and earlier ends as they are typed."""
    ends: tuple[LogEnd, ...] = ()
    """Earlier ends that were found out otherwise, by a time for example."""
    until_ms: int | None = None
    """That time, for the procedure."""
    repo: str = ""
    """The repository, for the procedure; empty: whoever follows it has it in the environment or a file."""
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    replace: bool = False
    """Whether directories that hold records may be overwritten."""
    here_only: bool = False
    """Whether partitions without a directory here are left to the other brokers, instead of a refusal."""
    brokers: tuple[int, ...] = ()
    """Of the whole target cluster, for the procedure; none: as far as the directories tell."""
    way: Way | None = None
    """Which procedure is told; none: the usual one for these topics."""


class DirectoryState(StrEnum):
    """What lies in the directory of a partition before the restore."""

    EMPTY = "empty"
    RECORDS = "records"
    RESTORED = "restored"
    """Exactly what this restore writes, by its own note: it is read and proven again."""


class OldFile(msgspec.Struct, frozen=True):
    name: str
    size_bytes: int


class OfflineRestoreLog(msgspec.Struct, frozen=True, kw_only=True):
    """One archived log and the directory that it goes into."""

    log: LogName
    topic: str
    partition: int
    start: int
    end: int
    """Source offsets `[start, end)` come back, at the same offsets."""
    segments: tuple[Segment, ...]
    """In order; only those that reach into the range and have an object."""
    root: str
    topic_id: str
    """Hex; of the target."""
    standing: DirectoryState
    old_files: tuple[OldFile, ...]
    """What is removed."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def directory(self) -> Path:
        return Path(self.root) / self.name

    @property
    def size_bytes(self) -> int:
        return sum(s.plain_bytes for s in self.segments)


class OfflineUnit(msgspec.Struct, frozen=True, kw_only=True):
    """What one task writes: one partition."""

    place: SourceRef
    backup: int
    planned: OfflineRestoreLog
    segment_bytes: int
    replace: bool = False
    """Whether a directory of this very restore that does not prove any more is written again."""


class RestoredSegment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One segment file, as it was read back."""

    name: str
    size_bytes: int
    batches: int
    records: int
    first_offset: int
    last_offset: int
    """Both -1 in a file without batches."""
    sha256: str
    fingerprint: str
    """SHA-256 over base offset, size, record count and CRC-32C of every batch as archived."""


class LogWritten(msgspec.Struct, frozen=True, kw_only=True):
    """How the restore of one log ended."""

    log: LogName
    topic: str
    partition: int
    directory: str
    start: int = 0
    end: int = 0
    """Of the restored log: behind the markers, where transactions were open."""
    markers: int = 0
    """Transactions that were open at the end, and are aborted by a marker of ours behind it."""
    cut_batch: bool = False
    """Whether the end lay inside a batch, which was made anew without its later records."""
    emptied: int = 0
    """Offsets at the end that an empty batch takes, since compaction had left nothing there."""
    again: bool = False
    """It was there already: only the proof was made again."""
    files: tuple[RestoredSegment, ...] = ()
    problem: str = ""
    """Why it was not written, or not proven; then the directory is as it was."""

    @property
    def records(self) -> int:
        return sum(f.records for f in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(f.size_bytes for f in self.files)


@dataclass(frozen=True, kw_only=True)
class OfflineRestorePlan:
    """What a restore would do. `--dry-run` ends with it."""

    backup: int
    cluster_id: str
    nodes: tuple[int, ...]
    """Of the target, by the directories themselves."""
    own_cluster: bool
    """Whether the target is the cluster that was backed up."""
    logs: tuple[OfflineRestoreLog, ...]
    elsewhere: tuple[str, ...]
    """Partitions without a directory here: not made yet, or those of other brokers."""
    running: bool
    """Whether a broker runs on these directories now."""
    findings: tuple[Finding, ...]
    procedure: str
    """What is done before and after, step by step, for this cluster."""
    topics: int = 0

    @property
    def size_bytes(self) -> int:
        return sum(log.size_bytes for log in self.logs)


@dataclass(frozen=True, kw_only=True)
class OfflineReport:
    """What was done."""

    foreseen: OfflineRestorePlan
    logs: tuple[LogWritten, ...]
    findings: tuple[Finding, ...]
    """Those of the plan and those of the work."""
    started: str
    finished: str
    restore: RestoreId
    """Under which plan and receipt are kept."""

    @property
    def good(self) -> bool:
        return not any(log.problem for log in self.logs)

    @property
    def records(self) -> int:
        return sum(log.records for log in self.logs)
