"""Whether the cluster's logs still continue what is archived of them, by leader epochs. Pure; `ask` is an argument.

A log that lost its end in an unclean election may have been filled again to the very same length: offsets alone do not
show that. The leader epoch of an archived batch does: two logs with a batch of the same epoch at the same offset are
the same up to there. So leaders are asked for it before the copy, for every log, even if nothing new is to be copied;
and after the copy for every epoch that was copied, since the units of one log are read at different times.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from logkeep.kafka.admin.offsets import EpochEnd, LogBounds
from logkeep.kafka.backup.continuity.past_check import partition_of
from logkeep.kafka.backup.plan import history_of, same_topic
from logkeep.kafka.backup.units import CopyOutcome, CopyResult, RangeResult
from logkeep.kafka.client.fetch import DivergingEpoch
from logkeep.kafka.client.topology import Topic, TopicPartition
from logkeep.kafka.logs.leader_epochs import EpochRun
from logkeep.kafka.logs.lost_offset import Cause, LogFacts, LogPosition, explain
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.kafka.record.history_names import history_number, topic_id_of
from logkeep.model.segments import LogName

AskEpochs = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, EpochEnd]]


@dataclass(frozen=True)
class BrokenLog:
    """A log that does not continue what is archived of it."""

    log: TopicPartition
    cause: Cause
    history: str
    """The history that ended."""


@dataclass(frozen=True)
class ArchiveProgress:
    """How far the newest history of each log is archived."""

    reached: Mapping[TopicPartition, ArchivedReach]
    """How far the last backup archived each log. A history that an interrupted run began since has only its start."""
    furthest: Mapping[TopicPartition, ArchivedReach]
    """How far the last backup and an interrupted run after it archived each log."""


def archive_progress(
    topics: Iterable[Topic],
    bounds: Mapping[TopicPartition, LogBounds],
    reached: Mapping[TopicPartition, ArchivedReach],
    earlier: Iterable[CopyResult],
    begun: Mapping[str, str] | None = None,
) -> ArchiveProgress:
    """Pure: an interrupted run may have copied two histories of a log, one after the other; the later one counts.

    `begun`: by topic, a history that all its logs begin, whether anything of it was copied or not.
    """
    ranges: dict[TopicPartition, list[RangeResult]] = {}
    for each in (r for result in earlier for r in result.ranges):
        ranges.setdefault(partition_of(each.log), []).append(each)
    known, furthest = dict(reached), dict(reached)
    for topic in topics:
        for partition in topic.partitions:
            log = TopicPartition(topic.name, partition.index)
            ours = [r for r in ranges.get(log, ()) if same_topic(r.log.history, topic)]
            some = [*(r.log.history for r in ours), *((begun[topic.name],) if begun and topic.name in begun else ())]
            newest = max(some, key=history_number, default=None)
            before = reached.get(log)
            if newest is None:
                continue
            if (
                before is None
                or not same_topic(before.history, topic)
                or history_number(newest) > history_number(before.history)
            ):
                before = known[log] = ArchivedReach(newest, bounds[log].start, -1)
            furthest[log] = _furthest(before, [r for r in ours if r.log.history == before.history])
    return ArchiveProgress(known, furthest)


def truncated_since(
    base: Mapping[TopicPartition, ArchivedReach], now: ArchiveProgress, begun: Collection[str] = ()
) -> list[BrokenLog]:
    """Logs that lost their end since the last backup, as an interrupted run found. Topics in `begun`, which are copied
    again as a whole, are left out."""
    return [
        BrokenLog(log, Cause.TRUNCATED, before.history)
        for log, before in sorted(base.items())
        if log.topic not in begun
        and history_number(now.reached[log].history) > history_number(before.history)
        and topic_id_of(now.reached[log].history) == topic_id_of(before.history)
    ]


def _furthest(base: ArchivedReach, ranges: Iterable[RangeResult]) -> ArchivedReach:
    """The base, or what an interrupted run has copied after it."""
    tip = base
    for each in ranges:
        if each.hi > tip.end:
            last = max(each.epochs, key=lambda run: run.end, default=EpochRun(tip.last_epoch, -1, tip.last_end))
            tip = ArchivedReach(base.history, each.hi, last.epoch, last.end, base.start)
    return tip


def broken_logs(
    topics: Iterable[Topic],
    bounds: Mapping[TopicPartition, LogBounds],
    furthest: Mapping[TopicPartition, ArchivedReach],
    ask: AskEpochs,
) -> list[BrokenLog]:
    """Logs that do not continue what is archived of the same topic id. Re-created topics are not among them."""
    same = {
        TopicPartition(t.name, p.index): t
        for t in topics
        for p in t.partitions
        if (known := furthest.get(TopicPartition(t.name, p.index))) and same_topic(known.history, t)
    }
    answers = ask({log: furthest[log].last_epoch for log in same if furthest[log].last_epoch >= 0})
    found = []
    for log, topic in sorted(same.items()):
        known, bound, answer = furthest[log], bounds[log], answers.get(log)
        epoch_end = DivergingEpoch(answer.leader_epoch, answer.end_offset) if answer else None
        facts = LogFacts(topic.id, bound.start, bound.high_watermark, epoch_end)
        verdict = explain(LogPosition(topic.id, known.end, known.last_epoch, known.last_end), facts)
        if verdict.cause.new_history:
            found.append(BrokenLog(log, verdict.cause, known.history))
    return found


def changed_meanwhile(
    results: Iterable[CopyResult], base: Mapping[TopicPartition, ArchivedReach], topics: Iterable[Topic], ask: AskEpochs
) -> list[RangeResult]:
    """Ranges of logs that lost their end since a part of them was read: the copy may mix two histories.

    `topics` is the current list. Topics that were deleted or re-created since are left out: they were copied by their
    id, and no broker knows more about them.
    """
    ids = {t.name: history_of(t) for t in topics}
    copied = [r for result in results for r in result.ranges if r.outcome is CopyOutcome.COPIED]
    ends = {
        log: ends for log, ends in _epoch_ends(copied, base).items() if topic_id_of(log.history) == ids.get(log.name)
    }
    lost = {
        log
        for log, asked, answer in _answers(ends, ask)
        if answer.leader_epoch != asked.epoch or answer.end_offset < asked.end
    }
    ended = {"outcome": CopyOutcome.NEW_HISTORY, "cause": Cause.TRUNCATED}
    return [msgspec.structs.replace(r, **ended) for r in copied if r.log in lost]


def of_another_past(results: Iterable[CopyResult], logs: Collection[LogName]) -> list[RangeResult]:
    """The copied ranges of logs that turned out to have another past than their archive, or than another range."""
    ended = {"outcome": CopyOutcome.NEW_HISTORY, "cause": Cause.OTHER_PAST}
    copied = (r for result in results for r in result.ranges if r.outcome is CopyOutcome.COPIED)
    return [msgspec.structs.replace(r, **ended) for r in copied if r.log in logs]


def _epoch_ends(
    ranges: Iterable[RangeResult], base: Mapping[TopicPartition, ArchivedReach]
) -> dict[LogName, dict[int, int]]:
    """By log and epoch, the end of the last batch that is archived or was copied now."""
    found: dict[LogName, dict[int, int]] = {}
    for each in ranges:
        ends = found.setdefault(each.log, {})
        known = base.get(partition_of(each.log))
        runs = list(each.epochs)
        if known is not None and known.history == each.log.history and known.last_end >= 0:
            runs.append(EpochRun(known.last_epoch, -1, known.last_end))
        for run in runs:
            ends[run.epoch] = max(ends.get(run.epoch, -1), run.end)
    return found


def _answers(ends: Mapping[LogName, Mapping[int, int]], ask: AskEpochs) -> Iterator[tuple[LogName, EpochRun, EpochEnd]]:
    """The leaders' answer for each epoch. A request names a log once, so logs with several epochs take several."""
    waiting = {log: sorted(epochs) for log, epochs in ends.items() if any(epoch >= 0 for epoch in epochs)}
    while waiting:
        asked = {log: epochs[-1] for log, epochs in waiting.items()}
        found = ask({partition_of(log): epoch for log, epoch in asked.items()})
        for log, epoch in asked.items():
            if partition_of(log) in found:  # otherwise it was deleted meanwhile
                yield log, EpochRun(epoch, -1, ends[log][epoch]), found[partition_of(log)]
        waiting = {log: rest for log, epochs in waiting.items() if (rest := [e for e in epochs[:-1] if e >= 0])}
