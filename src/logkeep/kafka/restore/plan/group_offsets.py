"""Translates committed offsets of groups to the target. Pure: commits and maps in, positions and reasons out.

A group's commit is the offset it reads next. In the target that is the offset of the first restored record at or after
it, and the log end when there is none: never more, because that would skip records; less only where one target
partition gets records of several source partitions, and then the result says how many records are read again.

Every commit is translated, or left out with a reason.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from logkeep.formats.run_map.runs import RunMap
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import CommitRecord


class Reason(StrEnum):
    """Why a group gets an offset."""

    EXACT = "exact"
    """The record that it would have read next."""
    HOLE = "hole"
    """There is no record at its offset: the next record, which is the one that it would have read next."""
    END = "end"
    """It had read everything: the log end."""
    EXPIRED = "expired"
    """The source had already deleted the record that it would have read next: the first restored record."""
    BEYOND = "beyond"
    """It had read further than what was restored: the log end."""
    SHARED = "shared"
    """The partition holds records of several source partitions: the first record that it has not read."""
    DIFFERENT = "different"
    """The topic is not the archived one, and has another record there."""
    UNPROVEN = "unproven"
    """The topic is not the archived one, and no record there shows whether it holds the same."""


class Omission(StrEnum):
    """Why a commit is left out."""

    TOPIC = "topic-not-restored"
    PARTITION = "partition-not-restored"
    GONE = "not-in-the-target"
    OTHER_TOPIC = "another-topic"
    """Committed for another topic of the same name."""


_SAME = frozenset({Reason.EXACT, Reason.HOLE, Reason.END})


@dataclass(frozen=True)
class MappedLog:
    """Records have the target offsets of a map."""

    target: TopicPartition
    runs: RunMap


@dataclass(frozen=True)
class UnchangedLog:
    """Records have their own offsets, in a log `[start, end)`."""

    target: TopicPartition
    start: int
    end: int


RestoredLog = MappedLog | UnchangedLog
Routes = Mapping[TopicPartition, Sequence[RestoredLog]]
"""Where the records of each source partition are now: several logs when its topic was repartitioned, none when the
target no longer has it."""


_Inputs = list[tuple[TopicPartition, RestoredLog]]
"""All logs that were restored to one partition, with their sources in order."""


@dataclass(frozen=True)
class TranslatedOffset:
    """The offset to commit for one target partition."""

    target: TopicPartition
    offset: int
    metadata: str
    source: TopicPartition
    """The source partition that determined the offset."""
    committed: int
    """What the group had committed there; the log start if it had no commit in a partition that others share."""
    reason: Reason
    again: int = 0
    """The number of records that the group reads a second time."""

    @property
    def exact(self) -> bool:
        """Whether the group reads nothing twice, skips nothing, and continues with the record that was next."""
        return self.reason in _SAME or (self.reason is Reason.SHARED and not self.again)


@dataclass(frozen=True)
class LeftOutOffset:
    source: TopicPartition
    committed: int
    why: Omission


@dataclass(frozen=True)
class GroupOffsets:
    """A group's translated commits."""

    placed: tuple[TranslatedOffset, ...]
    left_out: tuple[LeftOutOffset, ...]

    @property
    def again(self) -> int:
        return sum(p.again for p in self.placed)


class RouteTable:
    """Routes arranged for the commits of many groups: sorted once, and looked up by commit."""

    def __init__(self, routes: Routes) -> None:
        self._routes, self._topics = routes, {log.topic for log in routes}
        inputs: defaultdict[TopicPartition, _Inputs] = defaultdict(list)
        for source, places in sorted(routes.items()):
            for place in places:
                inputs[place.target].append((source, place))
        self._inputs = dict(inputs)

    def translate(self, commits: Iterable[CommitRecord]) -> GroupOffsets:
        """Translate every commit of one group, or give the reason why not."""
        ours = {TopicPartition(c.topic, c.partition): c for c in commits}
        left_out = [
            LeftOutOffset(log, c.committed, _omission(log, self._routes, self._topics))
            for log, c in sorted(ours.items())
            if not self._routes.get(log)
        ]
        targets = sorted({place.target for log in ours for place in self._routes.get(log, ())})
        return GroupOffsets(tuple(_translate(ours, self._inputs[target]) for target in targets), tuple(left_out))


def _omission(log: TopicPartition, routes: Routes, topics: Collection[str]) -> Omission:
    if log in routes:
        return Omission.GONE
    return Omission.PARTITION if log.topic in topics else Omission.TOPIC


def _translate(ours: Mapping[TopicPartition, CommitRecord], inputs: _Inputs) -> TranslatedOffset:
    found = [_translate_one(source, place, ours.get(source)) for source, place in inputs]
    if len(found) == 1:
        return found[0]
    first = min(found, key=lambda each: each.offset)
    read = (_read_from(first.offset, place, ours[source]) for source, place in inputs if source in ours)
    return TranslatedOffset(
        first.target, first.offset, first.metadata, first.source, first.committed, Reason.SHARED, sum(read)
    )


def _translate_one(source: TopicPartition, place: RestoredLog, commit: CommitRecord | None) -> TranslatedOffset:
    """The offset as if the target had this log only. A group without a commit has read nothing of it."""
    start, end = (place.runs.start, place.runs.end) if isinstance(place, MappedLog) else (place.start, place.end)
    offset, committed = (start, start) if commit is None else (commit.offset, commit.committed)
    metadata = "" if commit is None else commit.metadata
    target, on_record = _target_of(place, offset)
    target_end = place.runs.target_end if isinstance(place, MappedLog) else place.end
    reason = _reason(offset, max(offset, committed), start, end, _Landing(target, on_record, target_end))
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


def _target_of(place: RestoredLog, offset: int) -> tuple[int, bool]:
    if isinstance(place, MappedLog):
        return place.runs.translate(offset)
    kept = min(max(offset, place.start), place.end)
    return kept, kept == offset and offset < place.end


def _read_from(position: int, place: RestoredLog, commit: CommitRecord) -> int:
    """How many records at or after a target offset the group has already read."""
    if isinstance(place, UnchangedLog):
        return max(0, min(commit.offset, place.end) - max(position, place.start))
    return max(0, place.runs.records_before(commit.offset) - place.runs.placed_before(position))
