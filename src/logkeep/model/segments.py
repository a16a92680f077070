"""Logs and their archived segments, as values.

A `LogName` identifies a log; a `Segment` is one immutable archived object with the positions it holds. Neither has an
object name: `repository.chain.layout` builds names from these checked fields, so nothing that is read from a store is
used as a path.
"""

import hashlib
import re
from enum import StrEnum
from typing import Annotated

import msgspec

from logkeep.errors import Damaged

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_HISTORY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_TOKEN = re.compile(r"[0-9a-f]{16}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA256_OF_NOTHING = hashlib.sha256().hexdigest()

Token = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}$")]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
Position = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Collection(StrEnum):
    """The directory of a source for a kind of log."""

    TOPICS = "topics"
    TXNLOGS = "txnlogs"
    SNAPSHOTS = "snapshots"


class Codec(StrEnum):
    """How the stored bytes are packed. A closed list: no stored value names a program."""

    NONE = "none"
    ZSTD = "zstd"
    GZIP = "gzip"

    @property
    def suffix(self) -> str:
        """What the names of such objects and files end with."""
        return {Codec.NONE: "", Codec.ZSTD: ".zst", Codec.GZIP: ".gz"}[self]


class Proof(StrEnum):
    """Whether it is known that the source had committed these bytes."""

    PROVEN = "proven"
    BOUNDED = "bounded"
    UNPROVEN = "unproven"


class LogName(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """One history of one log: a topic's partition under its topic id, a ZooKeeper member's transaction log."""

    collection: Collection
    name: str
    history: str
    partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name in {".", ".."}:
            raise Damaged("not a legal log name", subject=repr(self.name[:100]))
        if not _HISTORY.fullmatch(self.history):
            raise Damaged("not a legal history name", subject=repr(self.history[:100]))

    def __str__(self) -> str:
        return f"{self.name}/{self.partition}"


class Segment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One archived object and the positions `[start, end)` of its log that it covers.

    The segments of a log cover its cut exactly: a hole that compaction left belongs to the segment around it, and a
    range without any record to a row without an object. A snapshot is a segment of the collection `snapshots` whose
    range is its one position, `[p, p + 1)`.
    """

    log: LogName
    start: Position
    end: Position
    first: Position
    """The position in the object's name: its first record, chosen before ranges are joined."""
    token: str
    """16 random hex digits: part of the object's name, with log and first position."""
    has_object: bool = True
    proof: Proof = Proof.PROVEN
    records: Position
    stored_bytes: Position
    plain_bytes: Position
    base_time_ms: int
    """Smallest and largest record time, from batch headers; -1 if unknown."""
    max_time_ms: int
    sha256: str
    """Of the stored bytes."""
    plain_sha256: str
    codec: Codec = Codec.NONE
    digest: str = ""
    """Of the decoded records, if a verification has computed it."""

    @classmethod
    def without_object(
        cls, log: LogName, start: Position, end: Position, token: str, proof: Proof = Proof.PROVEN
    ) -> "Segment":
        """For positions without records."""
        return cls(
            log=log,
            start=start,
            end=end,
            first=start,
            token=token,
            has_object=False,
            proof=proof,
            records=0,
            stored_bytes=0,
            plain_bytes=0,
            base_time_ms=-1,
            max_time_ms=-1,
            sha256=_SHA256_OF_NOTHING,
            plain_sha256=_SHA256_OF_NOTHING,
        )

    def __post_init__(self) -> None:
        if self.start > self.end:
            raise Damaged(f"segment range [{self.start}, {self.end}) runs backwards", subject=str(self.log))
        if not _TOKEN.fullmatch(self.token):
            raise Damaged("not a legal object token", subject=f"{self.log} at {self.start}")
        if not (_SHA256.fullmatch(self.sha256) and _SHA256.fullmatch(self.plain_sha256)):
            raise Damaged("not a sha256", subject=f"{self.log} at {self.start}")
