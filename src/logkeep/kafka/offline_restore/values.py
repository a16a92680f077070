"""Values of an offline restore: options, plan, task input and results, report."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import msgspec

from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, RestoreId
from logkeep.model.segments import LogName, Segment
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef

DEFAULT_SEGMENT_BYTES = 1 << 30
"""The broker's default `segment.bytes`."""


class ProcedureKind(StrEnum):
    """The three procedures of an offline restore; see `instructions`."""

    SINGLE = "single"
    SEED = "seed"
    EVERY = "every-replica"


class LogEnd(msgspec.Struct, frozen=True):
    """An earlier end for one archived log."""

    topic: str
    partition: int
    end: int


@dataclass(frozen=True, kw_only=True)
class OfflineRestoreOptions:
    """What the user asked for."""

    backup: BackupId
    roots: tuple[Path, ...]
    """All `log.dirs` of the broker: a partition may be in any of them."""
    selection: RestoreSelection = field(default_factory=RestoreSelection)
    """Topics, names, partitions, and earlier ends, as typed."""
    ends: tuple[LogEnd, ...] = ()
    """Earlier ends from another source, for example from a time."""
    until_ms: int | None = None
    """That time; shown in the procedure."""
    torn: tuple[Finding, ...] = ()
    """Transactions that these ends tear."""
    repo: str = ""
    """The repository; shown in the procedure. Empty: it comes from the environment or a file."""
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    replace: bool = False
    """Whether directories that hold records may be overwritten."""
    here_only: bool = False
    """Whether partitions without a directory here are left to other brokers, instead of refused."""
    brokers: tuple[int, ...] = ()
    """All brokers of the target cluster; used in the procedure. Empty: those found in the directories."""
    way: ProcedureKind | None = None
    """Which procedure is shown; None: the usual one for these topics."""


class DirectoryState(StrEnum):
    """What the directory of a partition holds before the restore."""

    EMPTY = "empty"
    RECORDS = "records"
    RESTORED = "restored"
    """What this restore writes, according to its note: it is only proven again."""


class OldFile(msgspec.Struct, frozen=True):
    name: str
    size_bytes: int


class OfflineRestoreLog(msgspec.Struct, frozen=True, kw_only=True):
    """One archived log and its target directory."""

    log: LogName
    topic: str
    partition: int
    start: int
    end: int
    """Source offsets `[start, end)` are restored, at the same offsets."""
    segments: tuple[Segment, ...]
    """In order; only segments that overlap the range and have an object."""
    buried: tuple[ObjectRef, ...] = ()
    """Objects with offsets that are not restored, because their keys were deleted at the source."""
    root: str
    topic_id: str
    """The target's topic id, in hex."""
    state: DirectoryState
    old_files: tuple[OldFile, ...]
    """Files that are removed."""

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
    """The input of one task: one partition."""

    place: SourceRef
    backup: int
    planned: OfflineRestoreLog
    segment_bytes: int
    replace: bool = False
    """Whether a directory of this restore is written again when its proof fails."""


class RestoredSegment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One segment file, as read back."""

    name: str
    size_bytes: int
    batches: int
    records: int
    first_offset: int
    last_offset: int
    """Both -1 in a file without batches."""
    sha256: str
    fingerprint: str
    """SHA-256 over base offset, size, record count and archived CRC-32C of every batch."""


class LogWritten(msgspec.Struct, frozen=True, kw_only=True):
    """How the restore of one log ended."""

    log: LogName
    topic: str
    partition: int
    directory: str
    start: int = 0
    end: int = 0
    """The end of the restored log, after the abort markers of open transactions."""
    markers: int = 0
    """Transactions that were open at the end; each is aborted by an added marker."""
    cut_batch: bool = False
    """Whether the end was inside a batch, which was rewritten without its later records."""
    emptied: int = 0
    """Offsets at the end that an empty batch covers, because compaction had left no batch there."""
    again: bool = False
    """It was already restored: only the proof was repeated."""
    files: tuple[RestoredSegment, ...] = ()
    problem: str = ""
    """Why it was not written or not proven; then the directory is unchanged."""

    @property
    def records(self) -> int:
        return sum(f.records for f in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(f.size_bytes for f in self.files)


@dataclass(frozen=True, kw_only=True)
class OfflineRestorePlan:
    """The plan of a restore. `--dry-run` shows it."""

    backup: int
    cluster_id: str
    nodes: tuple[int, ...]
    """Broker ids found in the directories."""
    own_cluster: bool
    """Whether the target is the cluster that was backed up."""
    logs: tuple[OfflineRestoreLog, ...]
    elsewhere: tuple[str, ...]
    """Partitions without a directory here: not created yet, or on other brokers."""
    running: bool
    """Whether a broker is running on these directories."""
    findings: tuple[Finding, ...]
    procedure: str
    """The steps before and after the restore, with commands for this cluster."""
    topics: int = 0

    @property
    def size_bytes(self) -> int:
        return sum(log.size_bytes for log in self.logs)


@dataclass(frozen=True, kw_only=True)
class OfflineReport:
    """The result of an offline restore."""

    plan: OfflineRestorePlan
    logs: tuple[LogWritten, ...]
    findings: tuple[Finding, ...]
    """Findings of the plan and of the tasks."""
    started: str
    finished: str
    restore: RestoreId
    """The id of the stored plan and receipt."""

    @property
    def good(self) -> bool:
        return not any(log.problem for log in self.logs)

    @property
    def records(self) -> int:
        return sum(log.records for log in self.logs)
