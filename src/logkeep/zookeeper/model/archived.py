"""What a backup of ZooKeeper keeps, as values, and the one way to read it: nothing else knows where it lies.

A *member* is one server of an ensemble; a lone server is a member too. Coverage is per member and history: one server's
disk is not the ensemble's past, and after a restore the same zxids hold other transactions.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Protocol, runtime_checkable

from logkeep.model.segments import Proof


class LogFileEnding(StrEnum):
    """How the file that a log was taken from ended."""

    CLEAN = "clean"
    """Padding, or nothing, behind a whole record."""
    ACTIVE_TAIL = "active-tail"
    """A record was being written: it was left out, and nothing is lost."""
    TORN = "torn"
    """A closed log that ends within a record."""
    DAMAGED = "damaged"
    """Something is wrong before its end."""


class FileOrigin(StrEnum):
    """Where the bytes come from."""

    DISK = "disk"
    """A server's own file."""
    ADMIN = "admin"
    """An AdminServer, over HTTP: there are no logs to make it exact."""
    REPAIRED = "repaired"
    """Written by a repair: `Provenance` tells of what."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """How something that no server wrote as it is came about."""

    source_sha256: str = ""
    """Of what it was made of."""
    cut_at: int | None = None
    """The byte of the source behind which nothing was taken."""
    lost: tuple[tuple[int, int], ...] = ()
    """Transactions that the source should have had, first and last of each run."""
    donor: str = ""
    """The member, or the backup, that records were taken from."""


@dataclass(frozen=True, kw_only=True)
class ArchivedSnapshot:
    """A snapshot file as it was on disk. Packed ones stay packed: `name` tells how."""

    member: str
    history: str
    name: str
    zxid: int
    """The last transaction applied when it was begun."""
    fuzzy_end: int | None
    """The last transaction that may be in it in part, as the file itself says; None before 3.6."""
    bound: int | None
    """Where the file says nothing: a zxid that the member had surely not passed when the snapshot was whole."""
    digest: int | None
    digest_zxid: int
    nodes: int
    size_bytes: int
    sha256: str
    origin: FileOrigin = FileOrigin.DISK
    provenance: Provenance | None = None


@dataclass(frozen=True, kw_only=True)
class ArchivedLog:
    """A run of whole records of one log file, behind the usual 16 bytes: transactions `first` to `last`, both there."""

    member: str
    history: str
    name: str
    """Of the file it was taken from."""
    first: int
    last: int
    records: int
    min_time_ms: int
    max_time_ms: int
    last_adler: int
    """Checksum of the last record: whether a later look at the log is at the same history."""
    ending: LogFileEnding
    proof: Proof
    """`PROVEN`: known to be committed; `BOUNDED`: agreed by a majority; `UNPROVEN`: no server could be asked."""
    size_bytes: int
    sha256: str
    borders: tuple[tuple[int, int], ...] = ()
    """Ends of epochs: the last transaction of one and the first of the next, as they lay one right behind the other on
    the member's disk, in this log or from the whole and closed log file before it to this one's first."""
    digests: bool | None = None
    """Whether the server wrote digests of its tree (3.6 and later); None where nobody looked."""
    origin: FileOrigin = FileOrigin.DISK
    provenance: Provenance | None = None


@dataclass(frozen=True, kw_only=True)
class Member:
    """What is known of a server besides its files."""

    name: str
    version: str = ""
    host: str = ""
    data_dir: str = ""
    log_dir: str = ""
    role: str = ""
    """`standalone`, `leader`, `follower` or `observer`; empty when it could not be asked."""
    zxid: int | None = None
    """What it said it had processed, before the last round of copying."""
    current_epoch: int | None = None
    accepted_epoch: int | None = None
    voters: int | None = None
    """How many servers of its ensemble vote, as its configuration says; 1 for a lone server, None: not known."""


class BackupView(Protocol):
    """A backup to verify, to restore, to look into. Bundles and repositories have one each."""

    @property
    def name(self) -> str:
        """Its id, for people."""

    @property
    def members(self) -> Sequence[Member]: ...

    @property
    def snapshots(self) -> Sequence[ArchivedSnapshot]: ...

    @property
    def logs(self) -> Sequence[ArchivedLog]:
        """By member, history and first zxid; pieces of one history of one member do not overlap."""

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        """The bytes that `sha256` is of: a snapshot file, or a log with its header. The caller closes it."""

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        """What can be read of the object that a log lies in, for who checks every record: damage is not told, and the
        object may hold more than the log. Of one that is whole, and holds nothing else, the same as `open`."""

    def unsealed(self, kept: ArchivedSnapshot | ArchivedLog) -> bool:
        """Whether the bytes it is stored in, all of which are read, are others than were written: also where `open`
        does not look, as in the head of a packed file. False where `open` gives every stored byte. Of several in one
        object the last one tells."""


@runtime_checkable
class Narrowing(Protocol):
    """A view that knows of much more than one task needs."""

    def only(self, objects: Collection[ArchivedSnapshot | ArchivedLog]) -> BackupView: ...


def narrowed(view: BackupView, objects: Collection[ArchivedSnapshot | ArchivedLog]) -> BackupView:
    """Of these alone, where it can be had: small enough to travel with each of many tasks."""
    return view.only(objects) if isinstance(view, Narrowing) else view
