"""Where a backup goes, as seen by the one that takes it: a bundle or a repository, nobody else knows which.

Two sides. A `Shelf` travels into tasks: it opens new objects under names of their own and says what was stored. A
`BackupSink` stays with the driver: it knows what earlier backups hold, and makes what the tasks stored a backup, or
nothing at all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from logkeep.model.findings import Finding
from logkeep.repository.object_writer import StoredObject
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, Member
from logkeep.zookeeper.model.config_files import ConfigFile
from logkeep.zookeeper.model.tree import Tree


class PieceWriter(Protocol):
    """A stream into one new object."""

    def write(self, data: memoryview | bytes) -> None:
        """Append plain bytes; the buffer may be used again at once."""

    def close(self) -> StoredObject:
        """Durable, whole."""

    def abort(self) -> None:
        """Give up. Harmless after `close` and a second time."""


class Shelf(Protocol):
    """Picklable: a task in another process opens it anew."""

    def open_snapshot(self, member: str, history: str, name: str, zxid: int, *, packed: bool) -> PieceWriter:
        """For the snapshot file of this name. `packed`: the server compressed it already."""

    def open_log(self, member: str, history: str, first: int, *, tail: bool = False) -> PieceWriter:
        """For a run of records that begins with this zxid. `tail`: it may be rewritten, so nothing continues it."""

    def open_damaged(self, member: str, history: str, name: str, zxid: int) -> PieceWriter:
        """For a damaged file as it is, beside what could be read of it."""


@dataclass(frozen=True)
class PlacedSnapshot:
    kept: ArchivedSnapshot
    stored: StoredObject


@dataclass(frozen=True)
class PlacedLog:
    kept: ArchivedLog
    stored: StoredObject
    tail: bool = False
    """No server said that it is committed: the next backup begins before it."""


@dataclass(frozen=True)
class CopiedAgain:
    """What was damaged in the archive, and the object that has its bytes now."""

    kept: ArchivedLog | ArchivedSnapshot
    stored: StoredObject


@dataclass(frozen=True)
class DamagedFile:
    """A file as it was found, for whoever wants to look closer."""

    member: str
    history: str
    name: str
    zxid: int
    positions: tuple[int, ...]
    """The bytes at which something is wrong, as far as they are known."""
    stored: StoredObject


@dataclass(frozen=True)
class MemberReach:
    """How far one member's log is archived: its last record, and where that was seen."""

    history: str
    last: int
    adler: int


def _no_tree() -> Tree | None:
    return None


def _nothing() -> Sequence[ArchivedLog | ArchivedSnapshot]:
    return ()


def _no_names() -> Sequence[str]:
    return ()


def _no_digest(_zxid: int) -> int | None:
    return None


@dataclass(frozen=True)
class Known:
    """What earlier backups hold, for one that continues them. A bundle stands alone and knows nothing."""

    history: str = "1"
    """The history that the newest backup is in."""
    reached: dict[str, MemberReach] = field(default_factory=dict)
    """Per member, in that history."""
    marks: tuple[tuple[int, int], ...] = ()
    """zxids of that history and the checksums of their records, newest first: what a new member is compared with."""
    snapshots: Mapping[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    """Size and sha256 of the snapshots of that history that are kept already, by member and file name."""
    logs: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """First and last of the runs of transactions of that history that are kept already, by member."""
    anything: bool = False
    """Whether there is an earlier backup at all."""
    digest_at: Callable[[int], int | None] = _no_digest
    """What an archived transaction of that history says of the tree after it; None where it says nothing."""
    tree: Callable[[], Tree | None] = _no_tree
    """The tree at the end of that history; None where it cannot be had. A replay: asked when nothing else is left."""
    damaged: Callable[[], Sequence[ArchivedLog | ArchivedSnapshot]] = _nothing
    """What of it a verification has found damaged since: the server may still have it."""
    unreadable: Callable[[], Sequence[str]] = _no_names
    """Objects that `digest_at` and `tree` had to read and could not: until they are mended they prove nothing."""


@dataclass(frozen=True)
class MemberText:
    """What a server said of itself, for people."""

    mntr: str = ""
    stat: str = ""
    conf: str = ""


@dataclass(frozen=True)
class Gathered:
    """Everything that one run brings to its completion. `snapshots` and `logs` are what is new."""

    history: str
    members: Sequence[Member]
    snapshots: Sequence[PlacedSnapshot]
    logs: Sequence[PlacedLog]
    findings: Sequence[Finding] = ()
    gaps: Sequence["LostRange"] = ()
    damaged: Sequence[DamagedFile] = ()
    again: Sequence[CopiedAgain] = ()
    """What earlier backups hold and is damaged there, from the server once more."""
    schemes: Sequence[str] = ()
    """Of authentication, as the ACLs in the snapshots name them."""
    texts: dict[str, MemberText] = field(default_factory=dict)
    config: Sequence[ConfigFile] = ()
    left_out: Sequence[str] = ()
    """Files that were not copied, and why, one line each."""
    rounds: int = 1
    backup_zxid: int = 0


@dataclass(frozen=True)
class LostRange:
    """Transactions of a member that no file of it holds any more, both ends included."""

    member: str
    first: int
    last: int
    reason: str


@dataclass(frozen=True)
class CompletedBackup:
    name: str
    """What people call the backup."""
    findings: tuple[Finding, ...] = ()
    """What was found on the way into it."""


class BackupSink(Protocol):
    @property
    def shelf(self) -> Shelf: ...

    @property
    def known(self) -> Known: ...

    @property
    def url(self) -> str:
        """Where it goes, as stores name it."""

    def start(self) -> None:
        """Called once, when it is certain that there will be something to copy and before anything is."""

    def complete(self, gathered: Gathered) -> "CompletedBackup":
        """Make it a backup. Before this returns nobody sees anything of it.

        Asks the planner of restores first: raises BackupFailed for what nothing could be restored from.
        """
