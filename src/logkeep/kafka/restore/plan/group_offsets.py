"""Where groups go on in the target. Pure: commits and maps in, positions and reasons out.

A group's commit is the offset it reads next. In the target that is the place of the smallest restored offset at or
after it, and the end of the log when there is none: never more, because that would lose records; less only where one
target partition takes records of several source partitions, and then it is told how many are read again.

Nothing is dropped in silence: every commit is placed, or left out with a reason.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from logkeep.formats.run_map.runs import RunMap
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import CommitRecord


class Reason(StrEnum):
    """Why a group stands where it is put."""

    EXACT = "exact"
    """On the very record that it would have read next."""
    HOLE = "hole"
    """There is no record at its offset: on the next one, which is what it would have read next."""
    END = "end"
    """It had read everything: at the end."""
    EXPIRED = "expired"
    """What it would have read next was gone from the source already: on the first record that came back."""
    BEYOND = "beyond"
    """It had read further than what came back: at the end."""
    SHARED = "shared"
    """Records of several source partitions stand in this one: on the first that it has not read."""


class Omission(StrEnum):
    """Why a commit is left out."""

    TOPIC = "topic-not-restored"
    PARTITION = "partition-not-restored"
    GONE = "not-in-the-target"


_SAME = frozenset({Reason.EXACT, Reason.HOLE, Reason.END})


@dataclass(frozen=True)
class Moved:
    """Records went where a map says."""

    target: TopicPartition
    runs: RunMap


@dataclass(frozen=True)
class Kept:
    """Records stand at their own offsets, in a log `[start, end)`."""

    target: TopicPartition
    start: int
    end: int


Routes = Mapping[TopicPartition, Sequence[Moved | Kept]]
"""Where the records of each source partition are now: several places when its topic was repartitioned, none when the
target does not have it any more."""


@dataclass(frozen=True)
class TranslatedOffset:
    """What is to be committed for one target partition."""

    target: TopicPartition
    offset: int
    metadata: str
    source: TopicPartition
    """The partition that decided."""
    committed: int
    """What the group had committed there; where it had nothing and others decide with it, the begin."""
    reason: Reason
    again: int = 0
    """How many records the group reads a second time."""

    @property
    def exact(self) -> bool:
        """Whether the group reads nothing twice, misses nothing, and goes on with the record that was next."""
        return self.reason in _SAME or (self.reason is Reason.SHARED and not self.again)


@dataclass(frozen=True)
class LeftOutOffset:
    source: TopicPartition
    committed: int
    why: Omission


@dataclass(frozen=True)
class GroupOffsets:
    """A group's commits, carried over."""

    placed: tuple[TranslatedOffset, ...]
    left_out: tuple[LeftOutOffset, ...]

    @property
    def again(self) -> int:
        return sum(p.again for p in self.placed)


def carried_over(commits: Iterable[CommitRecord], routes: Routes) -> GroupOffsets:
    """Place every commit of one group, or say why not."""
    ours = {TopicPartition(c.topic, c.partition): c for c in commits}
    topics = {log.topic for log in routes}
    left_out = [
        LeftOutOffset(log, c.committed, _omission(log, routes, topics))
        for log, c in sorted(ours.items())
        if not routes.get(log)
    ]
    inward = _inward(routes, ours)
    return GroupOffsets(tuple(_placed(ours, inward[target]) for target in sorted(inward)), tuple(left_out))


def _omission(log: TopicPartition, routes: Routes, topics: Collection[str]) -> Omission:
    if log in routes:
        return Omission.GONE
    return Omission.PARTITION if log.topic in topics else Omission.TOPIC


_Inward = list[tuple[TopicPartition, Moved | Kept]]


def _inward(routes: Routes, ours: Mapping[TopicPartition, CommitRecord]) -> dict[TopicPartition, _Inward]:
    """For each target that the group has a commit for: everything that came into it."""
    inward: defaultdict[TopicPartition, _Inward] = defaultdict(list)
    for source, places in sorted(routes.items()):
        for place in places:
            inward[place.target].append((source, place))
    return {target: each for target, each in inward.items() if any(source in ours for source, _ in each)}


def _placed(ours: Mapping[TopicPartition, CommitRecord], inward: _Inward) -> TranslatedOffset:
    found = [_alone(source, place, ours.get(source)) for source, place in inward]
    if len(found) == 1:
        return found[0]
    first = min(found, key=lambda each: each.offset)
    read = (_read_behind(first.offset, place, ours[source]) for source, place in inward if source in ours)
    return TranslatedOffset(
        first.target, first.offset, first.metadata, first.source, first.committed, Reason.SHARED, sum(read)
    )


def _alone(source: TopicPartition, place: Moved | Kept, commit: CommitRecord | None) -> TranslatedOffset:
    """As if nothing else went into this target. Without a commit nothing was read: then all of it is still to come."""
    start, end = (place.runs.start, place.runs.end) if isinstance(place, Moved) else (place.start, place.end)
    offset, committed = (start, start) if commit is None else (commit.offset, commit.committed)
    metadata = "" if commit is None else commit.metadata
    target, on_record = _target_of(place, offset)
    reason = _reason(offset, max(offset, committed), start, end, _Landing(target, on_record, _end_of(place)))
    return TranslatedOffset(place.target, target, metadata, source, committed, reason)


@dataclass(frozen=True)
class _Landing:
    offset: int
    on_record: bool
    end: int


def _reason(offset: int, committed: int, start: int, end: int, landing: _Landing) -> Reason:
    if committed > end:
        return Reason.BEYOND
    if offset < start:
        return Reason.EXPIRED
    if landing.on_record:
        return Reason.EXACT
    return Reason.END if landing.offset == landing.end else Reason.HOLE


def _target_of(place: Moved | Kept, offset: int) -> tuple[int, bool]:
    if isinstance(place, Moved):
        return place.runs.translate(offset)
    kept = min(max(offset, place.start), place.end)
    return kept, kept == offset and offset < place.end


def _end_of(place: Moved | Kept) -> int:
    return place.runs.target_end if isinstance(place, Moved) else place.end


def _read_behind(position: int, place: Moved | Kept, commit: CommitRecord) -> int:
    """How many records that the group has read stand at or behind a position."""
    if isinstance(place, Kept):
        return max(0, min(commit.offset, place.end) - max(position, place.start))
    return max(0, place.runs.records_before(commit.offset) - place.runs.placed_before(position))
