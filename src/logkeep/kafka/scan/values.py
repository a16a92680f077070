"""What a scan reads of one archived log, as a value that crosses process borders."""

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from logkeep.model.segments import LogName, Segment
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef


class ScanIsolation(StrEnum):
    """Which records are visible, as in a restore."""

    COMMITTED = "committed"
    """What a read-committed consumer would have read of a log that ends at the cut."""
    ALL = "all"
    """Records of aborted and open transactions too."""


class ScanRange(msgspec.Struct, frozen=True, kw_only=True):
    """Visible records of `[start, end)` of one log, with times of `[since_ms, until_ms)`."""

    place: SourceRef
    log: LogName
    start: int
    end: int
    segments: tuple[Segment, ...]
    """In order, with those after `end` that may say how a transaction of the range ended: all, or the next ones."""
    backup: int | None = None
    """If `segments` may end before the cut: the backup that has the others."""
    settled_to: int
    """The cut of the log: a transaction without a marker before it is open, and not committed."""
    transactional: bool = True
    """Whether the log may hold transactions."""
    isolation: ScanIsolation = ScanIsolation.COMMITTED
    buried: tuple[ObjectRef, ...] = ()
    """Objects with offsets that are not visible, because their keys were deleted at the source."""
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def own_segments(self) -> tuple[Segment, ...]:
        """The segments with objects that overlap the range."""
        return tuple(s for s in self.segments if s.has_object and s.end > self.start and s.start < self.end)

    @property
    def size_bytes(self) -> int:
        """Stored bytes of the segments that overlap the range: an upper bound of what is read."""
        return sum(s.stored_bytes for s in self.own_segments)


@dataclass
class ScanCounters:
    """What a scan has read. One object may count several scans of one thread."""

    requests: int = 0
    stored_bytes: int = 0
    """Everything that came from the store: batches, indexes, markers and buried offsets."""
    batches: int = 0
    """Batches whose records were decoded."""
    records: int = 0
    """Records that were returned."""
