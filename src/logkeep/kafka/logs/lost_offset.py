"""Why a broker does not have the next offset of a log. One table, pure.

A fetch that fails with OFFSET_OUT_OF_RANGE, or for an unknown topic id, says little: retention may have removed the
records, the log may have lost its end in an unclean election, the topic may have been deleted and re-created. Each
needs another reaction, and a wrong guess loses data or mixes two histories. The first row that matches counts:

    topic id now    epoch answer                     offset          verdict
    none            any                              any             DELETED
    another         any                              any             RECREATED
    same            asked, broker never saw it       any             UNKNOWN_EPOCH
    same            asked, ends before our batch     any             TRUNCATED at that end
    same            asked, only an older one known   any             TRUNCATED at that end
    same            fits, or not asked               < log start     RETENTION, gap [offset, log start)
    same            fits, or not asked               > log end       TRUNCATED at the log end
    same            fits, or not asked               within          NONE: a race, ask again

History comes before retention: a log with another history has no "gap", however its offsets compare.
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from logkeep.kafka.client.fetch import DivergingEpoch
from logkeep.model.ranges import Range


class Cause(StrEnum):
    NONE = "none"
    RETENTION = "retention"
    TRUNCATED = "truncated"
    UNKNOWN_EPOCH = "unknown-epoch"
    OTHER_PAST = "other-past"
    RECREATED = "recreated"
    DELETED = "deleted"

    @property
    def new_history(self) -> bool:
        """Whether the same offsets now have other records."""
        return self not in (Cause.NONE, Cause.RETENTION)


@dataclass(frozen=True)
class LogFacts:
    """What the cluster reports of one partition at this moment."""

    topic_id: UUID | None
    """The current id of the topic's name; None: no such topic."""
    log_start: int = -1
    log_end: int = -1
    epoch_end: DivergingEpoch | None = None
    """OffsetForLeaderEpoch's answer for the epoch of our last record; (-1, -1) if the broker never had it."""


@dataclass(frozen=True)
class LogPosition:
    """How far a reader has come in a log."""

    topic_id: UUID
    offset: int
    last_epoch: int = -1
    last_end: int = -1
    """The end of our last batch, which has that epoch; -1 means `offset`. Compaction may have removed what is between
    the two, perhaps of later epochs."""

    @property
    def epoch_end(self) -> int:
        return self.offset if self.last_end < 0 else min(self.last_end, self.offset)


@dataclass(frozen=True)
class OffsetVerdict:
    cause: Cause
    gap: Range | None = None
    """What retention removed."""
    common_end: int = -1
    """The offset up to which the known history and the current one are the same, if it is known."""


def explain(position: LogPosition, facts: LogFacts) -> OffsetVerdict:
    """Why the broker does not have our offset."""
    if facts.topic_id != position.topic_id:
        return OffsetVerdict(Cause.DELETED if facts.topic_id is None else Cause.RECREATED)
    if position.last_epoch >= 0 and facts.epoch_end is not None:
        verdict = _by_epoch(position, facts.epoch_end)
        if verdict is not None:
            return verdict
    return _by_offset(position.offset, facts)


def _by_epoch(position: LogPosition, known: DivergingEpoch) -> OffsetVerdict | None:
    if known.epoch < 0 or known.end_offset < 0:
        return OffsetVerdict(Cause.UNKNOWN_EPOCH)
    if known.epoch < position.last_epoch or known.end_offset < position.epoch_end:
        return OffsetVerdict(Cause.TRUNCATED, common_end=min(known.end_offset, position.epoch_end))
    return None


def _by_offset(offset: int, facts: LogFacts) -> OffsetVerdict:
    if offset < facts.log_start:
        return OffsetVerdict(Cause.RETENTION, gap=Range(offset, facts.log_start))
    if offset > facts.log_end:
        return OffsetVerdict(Cause.TRUNCATED, common_end=facts.log_end)
    return OffsetVerdict(Cause.NONE)
