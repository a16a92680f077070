"""Do the logs of the cluster still continue what is archived of them? Pure, but for one question to the leaders.

A log that lost its end in an unclean election may have been filled again to the very same length: offsets alone do not
tell. The leader epoch of the last archived batch does, and it is asked for every log, also where nothing new is to be
copied.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from logkeep.kafka.admin.offsets import EpochEnd as AskedEpochEnd
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.divergence import Cause, LogFacts, Position, explain
from logkeep.kafka.fetch import EpochEnd
from logkeep.kafka.plan import Reached, history_of
from logkeep.kafka.units import CopyResult
from logkeep.kafka.values import Topic, TopicPartition

AskEpochs = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, AskedEpochEnd]]


@dataclass(frozen=True)
class Broken:
    """A log that does not continue what is archived of it."""

    log: TopicPartition
    cause: Cause
    history: str
    """The history that ended."""


def positions(
    reached: Mapping[TopicPartition, Reached], earlier: Iterable[CopyResult]
) -> dict[TopicPartition, Reached]:
    """The furthest that is archived of each log, by the last backup or by an interrupted run since."""
    furthest = dict(reached)
    for result in earlier:
        for each in result.ranges:
            log = TopicPartition(each.log.name, each.log.partition)
            known = furthest.get(log)
            if known is None or known.history != each.log.history or each.hi > known.end:
                last = max(each.epochs, key=lambda e: e.offset, default=None)
                epoch = last.epoch if last else known.last_epoch if known else -1
                furthest[log] = Reached(each.log.history, each.hi, epoch)
    return furthest


def broken_logs(
    topics: Iterable[Topic],
    bounds: Mapping[TopicPartition, LogBounds],
    furthest: Mapping[TopicPartition, Reached],
    ask: AskEpochs,
) -> list[Broken]:
    """Logs of the same topic whose past is another one now. A topic that was made again is not meant: its id tells."""
    same = {
        TopicPartition(t.name, p.index): t
        for t in topics
        for p in t.partitions
        if (known := furthest.get(TopicPartition(t.name, p.index))) and known.history.startswith(history_of(t))
    }
    answers = ask({log: furthest[log].last_epoch for log in same if furthest[log].last_epoch >= 0})
    found = []
    for log, topic in sorted(same.items()):
        known, bound, answer = furthest[log], bounds[log], answers.get(log)
        epoch_end = EpochEnd(answer.leader_epoch, answer.end_offset) if answer else None
        facts = LogFacts(topic.id, bound.start, bound.high_watermark, epoch_end)
        verdict = explain(Position(topic.id, known.end, known.last_epoch), facts)
        if verdict.cause.new_history:
            found.append(Broken(log, verdict.cause, known.history))
    return found
