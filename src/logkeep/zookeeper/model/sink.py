"""Interfaces for storing a backup: implemented by bundles and repositories.

`NewObjects` are sent to tasks, which open objects under unique names and return what they stored. A `BackupSink` stays
with the driver: it knows what earlier backups contain, and commits what the tasks stored as one backup, or nothing.
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
        """Append plain bytes; the caller may reuse the buffer at once."""

    def close(self) -> StoredObject:
        """Complete the object and make it durable."""

    def abort(self) -> None:
        """Discard the object. Does nothing after `close` or a second time."""


class NewObjects(Protocol):
    """Opens new objects. Picklable, so that a task in another process can use it."""

    def open_snapshot(self, member: str, history: str, name: str, zxid: int, *, packed: bool) -> PieceWriter:
        """For the snapshot file of this name. `packed`: the server has already compressed it."""

    def open_log(self, member: str, history: str, first: int, *, tail: bool = False) -> PieceWriter:
        """For a run of records from this zxid on. `tail`: the server may rewrite it, so no backup continues it."""

    def open_damaged(self, member: str, history: str, name: str, zxid: int) -> PieceWriter:
        """For an unchanged copy of a damaged file, in addition to what could be read of it."""


@dataclass(frozen=True)
class PlacedSnapshot:
    kept: ArchivedSnapshot
    stored: StoredObject


@dataclass(frozen=True)
class PlacedLog:
    kept: ArchivedLog
    stored: StoredObject
    tail: bool = False
    """No server confirmed it as committed: the next backup copies it again."""


@dataclass(frozen=True)
class CopiedAgain:
    """A file that is damaged in the archive, and the new object with its bytes."""

    kept: ArchivedLog | ArchivedSnapshot
    stored: StoredObject


@dataclass(frozen=True)
class DamagedFile:
    """A damaged file of the server, stored unchanged for inspection."""

    member: str
    history: str
    name: str
    zxid: int
    positions: tuple[int, ...]
    """The bytes at which damage begins, as far as they are known."""
    stored: StoredObject


@dataclass(frozen=True)
class MemberReach:
    """How far one member's log is archived: its last record and the history it is in."""

    history: str
    last: int
    adler: int


@dataclass(frozen=True)
class Known:
    """What earlier backups contain, for one that continues them. Empty for a bundle, which continues nothing."""

    history: str = "1"
    """History of the newest backup."""
    reached: dict[str, MemberReach] = field(default_factory=dict)
    """Per member, in that history."""
    marks: tuple[tuple[int, int], ...] = ()
    """zxids of that history and the checksums of their records, newest first; new members are compared with them."""
    snapshots: Mapping[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    """Size and sha256 of the archived snapshots of that history, by member and file name."""
    logs: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """First and last of the archived runs of transactions of that history, by member."""
    anything: bool = False
    """Whether there is an earlier backup at all."""
    digest_at: Callable[[int], int | None] = field(default=lambda _zxid: None)
    """Digest of the tree after an archived transaction of that history; None if the record has none."""
    tree: Callable[[], Tree | None] = field(default=lambda: None)
    """The tree at the end of that history; None if it cannot be replayed. Expensive: called as the last resort."""
    damaged: Callable[[], Sequence[ArchivedLog | ArchivedSnapshot]] = field(default=lambda: ())
    """Archived files that a verification has since found damaged: the server may still have them."""
    unreadable: Callable[[], Sequence[str]] = field(default=lambda: ())
    """Objects that `digest_at` and `tree` could not read: they prove nothing until they are repaired."""


@dataclass(frozen=True)
class MemberText:
    """Answers of a server to four-letter words, stored for users."""

    mntr: str = ""
    stat: str = ""
    conf: str = ""


@dataclass(frozen=True)
class Gathered:
    """The result of one run, to be committed. `snapshots` and `logs` are the new ones."""

    history: str
    members: Sequence[Member]
    snapshots: Sequence[PlacedSnapshot]
    logs: Sequence[PlacedLog]
    findings: Sequence[Finding] = ()
    gaps: Sequence["LostRange"] = ()
    damaged: Sequence[DamagedFile] = ()
    again: Sequence[CopiedAgain] = ()
    """Files that are damaged in earlier backups and were copied again from the server."""
    schemes: Sequence[str] = ()
    """Authentication schemes that the ACLs in the snapshots use."""
    texts: dict[str, MemberText] = field(default_factory=dict)
    config: Sequence[ConfigFile] = ()
    left_out: Sequence[str] = ()
    """Files that were not copied, and why, one line each."""
    rounds: int = 1
    backup_zxid: int = 0


@dataclass(frozen=True)
class LostRange:
    """Transactions of a member that none of its files contains any more, both ends included."""

    member: str
    first: int
    last: int
    reason: str


@dataclass(frozen=True)
class CompletedBackup:
    name: str
    """The name of the backup as users see it."""
    findings: tuple[Finding, ...] = ()
    """Found while it was committed."""


class BackupSink(Protocol):
    @property
    def new_objects(self) -> NewObjects: ...

    @property
    def known(self) -> Known: ...

    @property
    def url(self) -> str:
        """URL of the store."""

    def start(self) -> None:
        """Called once, before the first file is copied, when it is certain that there is something to copy."""

    def complete(self, gathered: Gathered) -> "CompletedBackup":
        """Commit the backup. It is not visible before this returns.

        Asks the restore planner first: raises BackupFailed if nothing could be restored from it.
        """
