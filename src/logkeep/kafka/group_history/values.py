"""Units and results of the tasks that read archived logs of `__consumer_offsets` and the topics beside it."""

from dataclasses import dataclass
from typing import Any

import msgspec

from logkeep.model.segments import LogName, Segment
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef

MOST_ROWS = 100_000
"""The largest number of rows in an answer that lists records."""
SHOWN_NAMES = 5


@dataclass(frozen=True)
class GroupLogUnit:
    """One archived log, `[start, end)`, and what is wanted of it."""

    place: SourceRef
    log: LogName
    start: int
    end: int
    segments: tuple[Segment, ...]
    transactional: bool
    buried: tuple[ObjectRef, ...] = ()
    groups: tuple[str, ...] = ()
    """Patterns of whole names; empty: all."""
    at_ms: int | None = None
    since_ms: int = -1
    most_rows: int = MOST_ROWS

    @property
    def size_bytes(self) -> int:
        return sum(s.stored_bytes for s in self.segments)


class HoleSpan(msgspec.Struct, frozen=True):
    """Offsets between the first and the last one without a record in a stretch of the log."""

    start: int
    end: int
    since_ms: int
    """The time of the last record before them; -1: there is none."""


class LogShape(msgspec.Struct, frozen=True, kw_only=True):
    """Which offsets of the log are archived, and where a time is in it."""

    end: int
    """The end of the last batch with the time in question or an earlier one: what follows is later."""
    first_ms: int
    last_ms: int
    """The smallest and the largest time; -1: the log has no records with times."""
    holes: tuple[HoleSpan, ...] = ()
    """In order. A hole with parts on both sides of `end` is divided there."""


class ArchivedPosition(msgspec.Struct, frozen=True, kw_only=True):
    """The last offset of a group in one partition."""

    group: str
    topic: str
    """Empty for a share group: its records name only the topic's id."""
    partition: int
    topic_id: str
    """In hexadecimal; empty: not known."""
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    record_offset: int
    share: bool = False
    erased_ms: int | None = None
    """When a tombstone erased it; None: it was not erased."""


class LogPositions(msgspec.Struct, frozen=True, kw_only=True):
    shape: LogShape
    positions: tuple[ArchivedPosition, ...] = ()
    kinds: dict[str, str] = {}
    """The kinds of groups that existed, by name."""
    topics: dict[str, str] = {}
    """Names of topics by their ids in hexadecimal, as share groups recorded them."""
    unknown: dict[str, int] = {}
    """Records of unknown types and versions."""
    seen: bool = False
    """Whether a record belonged to a selected group."""
    names: tuple[str, ...] = ()
    """The names of some groups of the log, for an error."""


class ArchivedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of a group, and how it ended. Times in ms since 1970."""

    group: str
    topic: str
    partition: int
    topic_id: str
    """In hexadecimal; empty: not known."""
    offset: int | None
    """Null: the record has a version that this release does not know."""
    leader_epoch: int
    metadata: str
    committed_ms: int
    """As the group's coordinator recorded it."""
    written_ms: int
    """The time of the record."""
    record_offset: int
    transactional: bool
    share: bool
    effective_ms: int | None
    """When it became the group's offset: a transactional commit does when its transaction is committed. Null: never."""
    ending: str
    """`current`, `replaced`, `erased`, `aborted`, `pending`, or `overtaken`: a later record came before its marker."""
    ended_ms: int | None
    unknown: str = ""


class LogHistory(msgspec.Struct, frozen=True, kw_only=True):
    shape: LogShape
    commits: tuple[ArchivedCommit, ...] = ()
    """Empty if there are more than the unit wants."""
    total: int = 0
    topics: dict[str, str] = {}
    unknown: dict[str, int] = {}
    seen: bool = False
    names: tuple[str, ...] = ()


class RawRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One archived record of Kafka's own topics, with the names that Kafka's message definitions use."""

    topic: str
    partition: int
    offset: int
    time_ms: int
    type: int
    name: str
    version: int | None
    """Null if there is no value: the record erases its key."""
    key: dict[str, Any]
    value: dict[str, Any] | None
    unknown: str = ""
    """Why key or value are not decoded."""
    key_hex: str | None = None
    value_hex: str | None = None
    """The bytes of what is not decoded."""


class LogRecords(msgspec.Struct, frozen=True, kw_only=True):
    shape: LogShape
    records: tuple[RawRecord, ...] = ()
    """Empty if there are more than the unit wants."""
    total: int = 0
    unknown: dict[str, int] = {}
    seen: bool = False
    names: tuple[str, ...] = ()
