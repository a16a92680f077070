"""Decides about generations: which topics are due, which catch-ups have ended, what one round copies. Pure.

A generation is a history: all logs of a topic get the same new number at their end, `<topic id>-<number>`. It begins at
the log starts and is copied beside the active one. It becomes active when what is left of it fits into one round.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from logkeep.kafka.backup.assemble import done_ranges
from logkeep.kafka.backup.continuity.history_check import BrokenLog, archive_progress
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.plan import (
    UNIT_BYTES,
    Plan,
    PlannedUnit,
    history_of,
    plan_backup,
    used_numbers,
)
from logkeep.kafka.backup.units import CopyResult
from logkeep.kafka.client.topology import Topic, TopicPartition, is_internal
from logkeep.kafka.record.deletion_times import cleanup_rule
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.kafka.record.history_names import history_name, history_number, topic_id_of
from logkeep.model.segments import LogName
from logkeep.model.time import rfc3339
from logkeep.repository.backups.manifest import KnownGap, LogCut
from logkeep.repository.chain.actions import BegunCatchUp, EndedCatchUp, GenerationStart
from logkeep.repository.chain.fold import CatchUp, Folded

SHARE_BYTES = 1 << 30
Reached = Mapping[TopicPartition, ArchivedReach]


@dataclass(frozen=True)
class GenerationRule:
    """What the user asked for."""

    length: timedelta | None = None
    """A generation that is older is replaced; None: only where the user begins a new one."""
    share_bytes: int = SHARE_BYTES
    """About how much one round copies of catch-ups. As much as it copies of the active generation is added, because a
    catch-up of a topic that grows fast must come nearer to the end."""


@dataclass(frozen=True)
class CaughtUp:
    """How far a catch-up is."""

    catch_up: CatchUp
    results: tuple[CopyResult, ...] = ()
    """The results of units whose objects were read back."""

    @property
    def history(self) -> str:
        return history_name(self.catch_up.topic_id, self.catch_up.number)

    @property
    def units(self) -> frozenset[str]:
        return frozenset(each.unit for each in self.results)

    @property
    def tokens(self) -> frozenset[str]:
        return frozenset(s.token for each in self.results for s in each.segments)


def compacted_now(facts: Facts) -> list[Topic]:
    """Compacted topics, without Kafka's own unless the user named them: those are archived for their history."""
    return [
        t
        for t in facts.topics
        if (t.name in facts.named or not is_internal(t.name, t.internal))
        and cleanup_rule(facts.configs[t.name].own, facts.configs[t.name].inherited).compacts
    ]


def unknown_starts(
    folded: Folded, topics: Iterable[Topic], oldest: Collection[LogName], now: str
) -> list[GenerationStart]:
    """Topics whose copies have no age yet. `oldest`: the logs of the oldest kept backup, which are as old as that."""
    known = {(s.topic, s.topic_id) for s in folded.generation_starts or ()}
    since = {(log.name, topic_id_of(log.history)) for log in oldest}
    first = folded.completed[0].committed if folded.completed else now
    return [
        GenerationStart(t.name, history_of(t), first if (t.name, history_of(t)) in since else now)
        for t in topics
        if (t.name, history_of(t)) not in known
    ]


def due_topics(
    folded: Folded, topics: Iterable[Topic], reached: Reached, length: timedelta, now: datetime
) -> list[str]:
    """Archived topics whose active copy is too old, and that have no catch-up."""
    starts = {(s.topic, s.topic_id): datetime.fromisoformat(s.began) for s in folded.generation_starts or ()}
    open_topics = {c.topic for c in folded.catch_ups or ()}
    archived = {log.topic for log in reached}
    return [
        t.name
        for t in topics
        if t.name not in open_topics
        and t.name in archived
        and (began := starts.get((t.name, history_of(t)))) is not None
        and began + length <= now
    ]


def due_by_age(
    folded: Folded, facts: Facts, oldest: Collection[LogName], reached: Reached, length: timedelta, now: datetime
) -> list[str]:
    """Topics whose new generation a run would begin, with the ages that it would record first."""
    topics = compacted_now(facts)
    starts = unknown_starts(folded, topics, oldest, rfc3339(now))
    known = msgspec.structs.replace(folded, generation_starts=(*(folded.generation_starts or ()), *starts))
    return due_topics(known, topics, reached, length, now)


def next_number(folded: Folded, topic: str, topic_id: str, logs: Iterable[LogName]) -> int:
    """Larger than any that this topic ever had: neither rows nor burials of another copy can apply to the new one."""
    own = (log for log in logs if log.name == topic and topic_id_of(log.history) == topic_id)
    here = [history_number(log.history) for log in own]
    return max([*here, used_numbers(folded).get((topic, topic_id), 0)]) + 1


def new_catch_up(folded: Folded, topic: str, logs: Sequence[LogName], token: str, reason: str) -> BegunCatchUp:
    """`logs`: those of the newest backup."""
    topic_id = next(topic_id_of(log.history) for log in logs if log.name == topic)
    return BegunCatchUp(token, topic, topic_id, next_number(folded, topic, topic_id, logs), reason)


def ended_catch_ups(
    catch_ups: Iterable[CatchUp], facts: Facts, reached: Reached, broken: Iterable[BrokenLog]
) -> list[EndedCatchUp]:
    """The catch-ups that cannot become active any more. A topic that this run does not select keeps its catch-up."""
    lost = {b.log.topic for b in broken}
    found = [(each, _end(each, facts, reached, lost)) for each in catch_ups]
    return [EndedCatchUp(each.token, reason) for each, reason in found if reason]


def _end(each: CatchUp, facts: Facts, reached: Reached, lost: Collection[str]) -> str:
    topic = facts.metadata.topic(each.topic)
    if topic is None:
        return "the topic was deleted"
    if history_of(topic) != each.topic_id:
        return "the topic was deleted and created again"
    if each.topic not in {t.name for t in facts.topics}:
        return ""
    if each.topic in lost:
        return "a log of the topic lost its end, or has another past"
    numbers = [history_number(r.history) for log, r in reached.items() if log.topic == each.topic]
    if not numbers:
        return "the last backup does not have the topic"
    return "the active copy has a later history" if max(numbers) >= each.number else ""


def left_to_copy(caught: CaughtUp, facts: Facts, share_bytes: int) -> Plan:
    """What a catch-up has not copied yet, up to the ends of the logs."""
    (topic,) = (t for t in facts.topics if t.name == caught.catch_up.topic)
    now = archive_progress([topic], facts.bounds, {}, caught.results, {topic.name: caught.history})
    return plan_backup(
        [topic],
        facts.bounds,
        facts.sizes,
        now.reached,
        done_ranges(caught.results),
        now.furthest,
        unit_bytes=min(UNIT_BYTES, max(share_bytes, 1)),
    )


def one_share(plan: Plan, share_bytes: int) -> Plan:
    """The largest units up to about `share_bytes`, and at least one. So a log that is far behind does not wait while
    others grow."""
    taken, total = list[PlannedUnit](), 0
    for unit in sorted(plan.units, key=lambda unit: -unit.size_bytes):
        if taken and total + unit.size_bytes > share_bytes:
            break
        taken.append(unit)
        total += unit.size_bytes
    return replace(plan, units=tuple(taken))


def new_bytes(topic: str, facts: Facts, reached: Reached) -> int:
    """About how much a round copies of the active generation of a topic."""
    topics = [t for t in facts.topics if t.name == topic]
    return plan_backup(topics, facts.bounds, facts.sizes, reached).size_bytes


def planned_bytes(topic: str, plan: Plan) -> int:
    return sum(r.size_bytes for unit in plan.units for r in unit.ranges if r.topic == topic)


def ready_to_switch(left: Sequence[tuple[CaughtUp, int]], share_bytes: int) -> list[CaughtUp]:
    """The catch-ups that become active: in the order in which they began, as long as all that is left of them together
    fits into one share.

    `left`: what is left of each, beyond what the round copies anyway: it copies the end of the new generation in place
    of the end of the active one.
    """
    ready, total = list[CaughtUp](), 0
    for each, size_bytes in left:
        total += size_bytes
        if total > share_bytes:
            break
        ready.append(each)
    return ready


def without_unready(
    results: Iterable[CopyResult], catch_ups: Iterable[CatchUp], ready: Iterable[CaughtUp]
) -> list[CopyResult]:
    """What an interrupted run copied, without what it copied of a generation that does not become active now."""
    switching = {each.catch_up.token for each in ready}
    waiting = {
        (c.topic, history_name(c.topic_id, c.number)) for c in catch_ups if c.token not in switching
    }  # fmt: skip
    return [
        msgspec.structs.replace(
            r,
            ranges=tuple(each for each in r.ranges if (each.log.name, each.log.history) not in waiting),
            segments=tuple(s for s in r.segments if (s.log.name, s.log.history) not in waiting),
        )
        for r in results
    ]


def with_retention(result: CopyResult, retention_ms: int) -> CopyResult:
    """A later run judges by it whether every deletion was read in time."""
    ranges = tuple(msgspec.structs.replace(each, retention_ms=retention_ms) for each in result.ranges)
    return msgspec.structs.replace(result, ranges=ranges)


def gaps_in_cut(gaps: Iterable[KnownGap], cut: Iterable[LogCut], topics: Collection[str]) -> tuple[KnownGap, ...]:
    """The gaps without those of these topics below the log start: between two shares of a catch-up, retention removed
    these offsets from the topic too."""
    starts = {c.log: c.start for c in cut if c.log.name in topics}
    return tuple(gap for gap in gaps if gap.end > starts.get(gap.log, 0))


def covered_by(results: Iterable[CopyResult], one: CopyResult) -> bool:
    """Whether other units have copied all that this one has."""
    done = done_ranges(results)
    return all(
        any(r.start <= each.lo and each.hi <= r.end for r in done.get(each.log, ())) for each in one.ranges
    )  # fmt: skip
