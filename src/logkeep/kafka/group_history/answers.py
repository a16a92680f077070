"""Questions about archived groups and their answers, as values."""

from collections.abc import Mapping
from dataclasses import dataclass

from logkeep.kafka.group_history.completeness import BEGINNING, TimeSpan
from logkeep.kafka.group_history.values import ArchivedCommit, ArchivedPosition, RawRecord


@dataclass(frozen=True)
class GroupQuestion:
    groups: tuple[str, ...] = ()
    """Patterns of whole names of groups; empty: all groups."""
    at_ms: int | None = None
    """The time in question; None: the end of the backup."""
    since_ms: int = -1


@dataclass(frozen=True)
class SurePosition:
    position: ArchivedPosition
    sure: bool
    """Whether no record is missing that could have changed it before the time."""


@dataclass(frozen=True)
class CompleteTimes:
    """The times for which an answer is complete, both ends included. `span` is None if the answer is not complete for
    the time in question."""

    span: TimeSpan | None
    nearest: tuple[int, ...] = ()
    """The nearest complete times before and after."""
    until_ms: int = -1
    """The archive ends here."""

    @property
    def from_ms(self) -> int | None:
        """The first complete time; None: complete from the beginning of the log, or no time is."""
        return None if self.span is None or self.span.start_ms == BEGINNING else self.span.start_ms

    @property
    def to_ms(self) -> int | None:
        return None if self.span is None else self.span.end_ms


@dataclass(frozen=True)
class GroupsAt:
    at_ms: int
    positions: tuple[SurePosition, ...]
    """Positions at that time, with those that were erased before, each with the time when it was erased."""
    kinds: Mapping[str, str]
    complete: CompleteTimes
    unknown: Mapping[str, int]


@dataclass(frozen=True)
class CommitHistory:
    commits: tuple[ArchivedCommit, ...]
    complete: CompleteTimes
    unknown: Mapping[str, int]


@dataclass(frozen=True)
class RawRecords:
    records: tuple[RawRecord, ...]
    complete: CompleteTimes
    unknown: Mapping[str, int]
