"""Decides what a backup copies, and in which units. Pure; `--dry-run` stops here.

Each log continues where the last backup of the same history ended, or begins at its log start. Large ranges are cut
into units of about `unit_bytes`. Small ranges of one leader share a unit, so that five hundred tiny partitions take a
few tasks and not five hundred.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from logkeep.errors import BackupFailed, UsageError
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.backup.units import CopyRange
from logkeep.kafka.client.topology import Topic, TopicPartition
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.kafka.record.history_names import history_name, history_number, topic_id_of
from logkeep.model.plurals import plural
from logkeep.model.ranges import Range, tile
from logkeep.model.segments import Collection as Kind
from logkeep.model.segments import LogName
from logkeep.repository.backups.manifest import KnownGap, LogCut
from logkeep.repository.chain.fold import Folded

UNIT_BYTES = 512 << 20
BUNDLE_BYTES = 64 << 20
BUNDLE_RANGES = 500
REMOVED_BEFORE = "retention removed it before it was copied"
REMOVED_MEANWHILE = "retention removed it while the backup ran"
_USUAL_RECORD_BYTES = 500
_SMALLEST_PIECE = 1_000
"""In records: smaller pieces cost more time than they save."""
UsedNumbers = Mapping[tuple[str, str], int]
"""By name and id of a topic, the largest number of its histories that something outside the last backup refers to."""


@dataclass(frozen=True)
class PlannedUnit:
    """What one task will copy from one broker."""

    broker: int
    ranges: tuple[CopyRange, ...]

    @property
    def name(self) -> str:
        """The same ranges give the same name: a resumed run recognises what is done."""
        text = ";".join(f"{r.log.collection}/{r.topic}/{r.history}/{r.partition}/{r.lo}-{r.hi}" for r in self.ranges)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def size_bytes(self) -> int:
        return sum(r.size_bytes for r in self.ranges)


@dataclass(frozen=True)
class Plan:
    """Everything that is decided before the first byte is copied."""

    cut: tuple[LogCut, ...]
    units: tuple[PlannedUnit, ...]
    gaps: tuple[KnownGap, ...]
    """What retention removed since the last backup, before it could be copied."""
    new_histories: tuple[LogName, ...]
    """Logs that do not continue the archived ones: their topic was re-created, or they lost their end."""

    @property
    def empty(self) -> bool:
        """Nothing to copy, nothing lost, nothing new."""
        return not (self.units or self.gaps or self.new_histories)

    @property
    def size_bytes(self) -> int:
        return sum(u.size_bytes for u in self.units)

    @property
    def records(self) -> int:
        return sum(r.hi - r.lo for u in self.units for r in u.ranges)


def refuse_no_topics(topics: Collection[Topic], reached: Collection[TopicPartition]) -> None:
    """Raise BackupFailed if there is no topic, but the last backup has some: a mistake, or a revoked permission."""
    if reached and not topics:
        raise BackupFailed(
            "no topic is left to back up, and the last backup has some",
            subject=plural(len(reached), "log"),
            remedy="check whether this user may still describe the topics, and what --exclude says; "
            "a cluster that is meant to be empty needs no more backups",
        )


def refuse_unknown(accepted: Collection[str], topics: Collection[Topic]) -> None:
    """Raise UsageError if deletions are accepted of a topic that is not backed up."""
    unknown = sorted(set(accepted) - {t.name for t in topics})
    if unknown:
        raise UsageError(
            "this backup has no such topic", subject=f"--accept-deletions {unknown[0]}", remedy="check its name"
        )


def history_of(topic: Topic) -> str:
    """The name of a topic's first history: its id."""
    return topic.id.hex


def log_of(topic: Topic, partition: int, history: str) -> LogName:
    return LogName(Kind.TOPICS, topic.name, history, partition)


def plan_backup(
    topics: Iterable[Topic],
    bounds: Mapping[TopicPartition, LogBounds],
    sizes: Mapping[TopicPartition, int],
    reached: Mapping[TopicPartition, ArchivedReach],
    done: Mapping[LogName, Sequence[Range]] | None = None,
    furthest: Mapping[TopicPartition, ArchivedReach] | None = None,
    *,
    used: UsedNumbers | None = None,
    unit_bytes: int = UNIT_BYTES,
) -> Plan:
    """Decide what a backup copies.

    `reached` is the end of the last backup, `done` what an interrupted run has copied since, `furthest` the end of
    both together, whose epoch the next piece must continue. No new history has a number of `used`.
    """
    tips = furthest if furthest is not None else reached
    cut, gaps, fresh, ranges = [], list[KnownGap](), list[LogName](), list[tuple[int, CopyRange]]()
    for topic in topics:
        for partition in topic.partitions:
            log = TopicPartition(topic.name, partition.index)
            known, bound = reached.get(log), bounds[log]
            continues = known is not None and same_topic(known.history, topic) and known.end <= bound.high_watermark
            history = known.history if known is not None and continues else _new_history(known, topic, used or {})
            name = log_of(topic, partition.index, history)
            start = first = bound.start
            if known is not None and continues:
                first = max(first, known.start)  # a new leader may not yet have deleted what the old one had
                lost = Range(known.end, max(known.end, bound.start))
                gaps += [
                    KnownGap(name, hole.start, hole.end, REMOVED_BEFORE)
                    for hole in tile(lost, (done or {}).get(name, ())).gaps
                ]
                start = max(bound.start, known.end)
            elif known is not None:
                fresh.append(name)
            cut.append(LogCut(name, first, max(bound.high_watermark, first)))
            tip = _tip_before(history, known, tips.get(log))
            for left in tile(Range(start, max(start, bound.high_watermark)), (done or {}).get(name, ())).gaps:
                wanted = CopyRange(
                    topic=topic.name,
                    topic_id=topic.id,
                    partition=partition.index,
                    lo=left.start,
                    hi=left.end,
                    history=history,
                    leader_epoch=partition.leader_epoch,
                    last_epoch=tip[left.start].last_epoch if left.start in tip else -1,
                    last_end=tip[left.start].last_end if left.start in tip else -1,
                    first=left.start == bound.start,
                    archived_end=_archived_end(known, bound) if continues and left.start == start else -1,
                    size_bytes=_share(sizes.get(log), bound, left),
                )
                ranges.append((partition.leader, wanted))
    units = [*_large(ranges, unit_bytes), *_bundles(ranges, unit_bytes)]
    return Plan(tuple(cut), tuple(units), tuple(gaps), tuple(fresh))


def expected_bytes(
    sizes: Mapping[TopicPartition, int],
    bounds: Mapping[TopicPartition, LogBounds],
    reached: Mapping[TopicPartition, ArchivedReach],
) -> int:
    """About how much a backup will copy, before it is known which logs continue their history."""
    total = 0
    for log, size_bytes in sizes.items():
        bound, known = bounds[log], reached.get(log)
        continues = known is not None and known.end <= bound.high_watermark
        start = max(bound.start, known.end) if known is not None and continues else bound.start
        total += _share(size_bytes, bound, Range(start, max(start, bound.high_watermark)))
    return total


def same_topic(history: str, topic: Topic) -> bool:
    """Whether it is a history of this topic, and not of an earlier one of the same name."""
    return topic_id_of(history) == history_of(topic)


def used_numbers(folded: Folded) -> dict[tuple[str, str], int]:
    """The numbers of histories with buried or folded offsets, and of catch-ups: none of that may apply to another copy.

    The last backup need not have them: it may have left the topic out, and later backups may be deleted.
    """
    logs = [*(burial.log for burial in folded.buried or ()), *(fold.log for fold in folded.folds or ())]
    used = [((log.name, topic_id_of(log.history)), history_number(log.history)) for log in logs]
    used += [((s.topic, s.topic_id), s.number) for s in folded.generation_starts or () if s.number]
    found: dict[tuple[str, str], int] = {}
    for topic, number in used:
        found[topic] = max(found.get(topic, 0), number)
    return found


def next_history(topic: str, history: str, used: UsedNumbers) -> str:
    """The name of the history of a topic that follows one whose end was lost."""
    topic_id = topic_id_of(history)
    return history_name(topic_id, max(history_number(history), used.get((topic, topic_id), 0)) + 1)


def _new_history(known: ArchivedReach | None, topic: Topic, used: UsedNumbers) -> str:
    """A log shorter than its archive lost its end, and may have been overwritten from any offset on."""
    first = history_of(topic)
    if known is not None and same_topic(known.history, topic):
        return next_history(topic.name, known.history, used)
    return next_history(topic.name, first, used) if (topic.name, first) in used else first


def _archived_end(known: ArchivedReach | None, bound: LogBounds) -> int:
    """The end of the archive, if it is known to be the end of a batch: a log start may be inside one."""
    return known.end if known is not None and (known.last_epoch >= 0 or known.end > bound.start) else -1


def _tip_before(history: str, *known: ArchivedReach | None) -> dict[int, ArchivedReach]:
    """What is archived right before an offset, by offset, where that is known."""
    return {k.end: k for k in reversed(known) if k is not None and k.history == history}


def _share(size_bytes: int | None, bound: LogBounds, part: Range) -> int:
    """About how many bytes a part of a log has, if they are spread evenly.

    A log of unknown size must not count as small: its records are assumed to be of usual size.
    """
    if size_bytes is None:
        return len(part) * _USUAL_RECORD_BYTES
    whole = bound.high_watermark - bound.start
    return size_bytes * len(part) // whole if whole else 0


def _large(ranges: Iterable[tuple[int, CopyRange]], unit_bytes: int) -> Iterator[PlannedUnit]:
    for broker, wanted in ranges:
        if wanted.size_bytes >= BUNDLE_BYTES:
            for piece in split(wanted, unit_bytes):
                yield PlannedUnit(broker, (piece,))


def split(wanted: CopyRange, unit_bytes: int) -> list[CopyRange]:
    """Cut one range into pieces of about equal size; only the first keeps `first` and the last epoch."""
    length = wanted.hi - wanted.lo
    pieces = max(1, min(-(-wanted.size_bytes // unit_bytes), length // _SMALLEST_PIECE))
    edges = [wanted.lo + length * i // pieces for i in range(pieces + 1)]
    return [
        replace(
            wanted,
            lo=lo,
            hi=hi,
            first=wanted.first and lo == wanted.lo,
            last_epoch=wanted.last_epoch if lo == wanted.lo else -1,
            last_end=wanted.last_end if lo == wanted.lo else -1,
            archived_end=wanted.archived_end if lo == wanted.lo else -1,
            size_bytes=wanted.size_bytes // pieces,
        )
        for lo, hi in pairwise(edges)
        if lo < hi
    ]


def _bundles(ranges: Iterable[tuple[int, CopyRange]], unit_bytes: int) -> Iterator[PlannedUnit]:
    """Small ranges of one leader together, as long as the bundle stays small itself."""
    waiting: dict[int, list[CopyRange]] = {}
    small = [(broker, wanted) for broker, wanted in ranges if wanted.size_bytes < BUNDLE_BYTES]
    for broker, wanted in sorted(small, key=lambda each: (each[0], each[1].topic, each[1].partition)):
        bundle = waiting.setdefault(broker, [])
        full = len(bundle) >= BUNDLE_RANGES or sum(r.size_bytes for r in bundle) + wanted.size_bytes > unit_bytes
        if bundle and full:
            yield PlannedUnit(broker, tuple(bundle))
            bundle = waiting[broker] = []
        bundle.append(wanted)
    yield from (PlannedUnit(broker, tuple(bundle)) for broker, bundle in sorted(waiting.items()) if bundle)
