"""Archived snapshots, logs and members as values, and `BackupView`, the interface to read a backup.

A *member* is one server of an ensemble; a standalone server is a member too. Coverage is per member and history: one
server's disk does not hold the history of the whole ensemble, and after a restore zxids are used again.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Annotated, BinaryIO, Protocol, runtime_checkable

import msgspec

from logkeep.model.segments import Position, Proof, Sha256

OptionalToken = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{16})?$")]
OptionalSha256 = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?$")]


class LogFileEnding(StrEnum):
    """How the server's log file ended."""

    CLEAN = "clean"
    """Padding, or nothing, after a whole record."""
    ACTIVE_TAIL = "active-tail"
    """The server was writing a record: it was left out, and nothing is lost."""
    TORN = "torn"
    """A closed log that ends within a record."""
    DAMAGED = "damaged"
    """There is damage before its end."""


class FileOrigin(StrEnum):
    """Where the bytes come from."""

    DISK = "disk"
    """A server's own file."""
    ADMIN = "admin"
    """A snapshot from an AdminServer over HTTP: there are no logs to make it exact."""
    REPAIRED = "repaired"
    """Written by a repair."""


class ArchivedSnapshot(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"size_bytes": "size", "digest_hex": "digest"},
):
    """A snapshot file as it was on disk. A file that the server compressed stays compressed: `name` shows it.

    The record of a backup in a repository stores it as it is: names, order and defaults of the fields are its format.
    """

    token: OptionalToken = ""
    """Of the repository object that holds it; empty outside a repository."""
    member: str
    history: str
    name: str
    zxid: Position
    """The last transaction applied when the server began to write the snapshot."""
    fuzzy_end: Position | None = None
    """The last transaction that may be in it in part, as the file itself says; None before 3.6."""
    bound: Position | None = None
    """For a file that does not say it: a zxid that the member had not passed when the snapshot was complete."""
    digest_hex: str = ""
    """Digest of the tree in hexadecimal: not every reader of JSON can hold 64 bits. Empty: none. See `digest`."""
    digest_zxid: Position = 0
    nodes: Position = 0
    size_bytes: Position
    sha256: Sha256
    origin: FileOrigin = FileOrigin.DISK

    @property
    def digest(self) -> int | None:
        return int(self.digest_hex, 16) if self.digest_hex else None


class ArchivedLog(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"size_bytes": "size"},
):
    """A run of whole records of one log file after the usual 16 header bytes: transactions `first` to `last`.

    The record of a backup in a repository stores it as it is, except for `proof`: names, order and defaults of the
    fields are its format.
    """

    token: OptionalToken = ""
    """Of the repository object that it was stored in; empty outside a repository."""
    member: str
    history: str
    name: str
    """Of the server's file."""
    first: Position
    last: Position
    last_adler: Position
    """Checksum of the last record: shows whether a later read of the log is of the same history."""
    max_time_ms: int
    ending: LogFileEnding = LogFileEnding.CLEAN
    borders: tuple[tuple[Position, Position], ...] = ()
    """Ends of epochs: the last transaction of one and the first of the next, where they were adjacent on the member's
    disk, in this log or from the complete and closed log file before it to this one's first transaction."""
    digests: bool | None = None
    """Whether the server wrote digests of its tree (3.6 and later); None: not checked."""
    apart: str = ""
    """In a repository, the history that its object is stored under where no server confirmed the transactions as
    committed: the next backup does not continue it."""
    size_bytes: Position = 0
    """Records of the first release lack this and what follows: the row of the object has it."""
    sha256: OptionalSha256 = ""
    records: Position = 0
    min_time_ms: int = 0
    proof: Proof = Proof.UNPROVEN
    """`PROVEN`: known to be committed; `BOUNDED`: agreed by a majority; `UNPROVEN`: no server could be asked. A record
    in a repository never stores it: the row of the object has it."""


ArchivedFile = ArchivedSnapshot | ArchivedLog


def digest_hex(digest: int | None) -> str:
    """The digest of a tree as `ArchivedSnapshot` stores it."""
    return "" if digest is None else f"{digest:016x}"


class Member(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known of a server besides its files. The record of a backup in a repository extends it."""

    name: str
    version: str = ""
    host: str = ""
    data_dir: str = ""
    log_dir: str = ""
    role: str = ""
    """`standalone`, `leader`, `follower` or `observer`; empty when the server could not be asked."""
    zxid: Position | None = None
    """The last transaction that it reported as processed, before the last round of copying."""
    current_epoch: int | None = None
    accepted_epoch: int | None = None
    voters: int | None = None
    """Number of voting servers in its ensemble, by its configuration; 1 for a standalone server, None: not known."""


class BackupView(Protocol):
    """A backup to verify, restore or inspect. Bundles, repositories and server directories implement it."""

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

    def open(self, kept: ArchivedFile) -> BinaryIO:
        """The bytes that `sha256` is of: a snapshot file, or a log with its header. The caller closes it."""

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        """What can be read of the object that holds a log, for a caller that checks every record. Damage is not
        reported, and the object may hold more than the log. For an undamaged object that holds nothing else, the same
        as `open`."""

    def unsealed(self, kept: ArchivedFile) -> bool:
        """Whether the stored bytes, all of which are read, differ from those that were written. This includes bytes
        that `open` skips, as in the head of a compressed file. False where `open` reads every stored byte. Of several
        logs in one object, only the last one answers for the object."""


@runtime_checkable
class Narrowing(Protocol):
    """A view that knows of much more than one task needs."""

    def only(self, objects: Collection[ArchivedFile]) -> BackupView: ...


def narrowed(view: BackupView, objects: Collection[ArchivedFile]) -> BackupView:
    """A view of these alone if the view supports it: small enough to send with each of many tasks."""
    return view.only(objects) if isinstance(view, Narrowing) else view
