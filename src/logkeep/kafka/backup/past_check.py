"""Whether a log at its leader and its archive have the same past. Pure.

A broker whose disk was put back, a clone of a cluster, a disk snapshot: each continues under the same cluster id, topic
id and leader epochs, and its epoch borders may be the same as well. So the last archived batch is compared with the
batch that the leader has at the same last offset. The first row that matches counts:

    at the last offset of the archived batch        compacted topic             other topic
    the log starts after it                         REMOVED                     REMOVED
    the log ends before it                          OTHER                       OTHER
    the same header and CRC-32C                     SAME                        SAME
    nothing: the next batch begins after it         UNDECIDED                   OTHER
    other offsets, epoch, producer or kind          OTHER                       OTHER
    the same fields and another CRC-32C             the records decide          OTHER

Compaction keeps the offsets, epoch, producer fields and kind of a batch that it rewrites, and each replica is compacted
independently: either side may have fewer records. Records at one offset that differ prove another past; if one is equal
and none differs, it is the same; if no offset has a record on both sides, nothing is known.

REMOVED: retention took the batch, and leader epochs alone decide. A backup that continues there covers nothing of what
was archived before. UNDECIDED is reported, and the log is continued.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from logkeep.formats.kafka.plain_records import RecordBody
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.backup.claims import join
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.plan import history_of, log_of, same_topic
from logkeep.kafka.backup.units import CopyOutcome, CopyResult, RangeResult
from logkeep.kafka.client.topology import Topic, TopicPartition
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.record.documents import ArchivedReach, ClusterRecord
from logkeep.model.segments import LogName
from logkeep.repository.backups.manifest import KnownGap


def partition_of(log: LogName) -> TopicPartition:
    return TopicPartition(log.name, log.partition)


class PastVerdict(StrEnum):
    SAME = "same"
    OTHER = "other"
    REMOVED = "removed"
    UNDECIDED = "undecided"
    BY_RECORDS = "by-records"
    """The records of both batches have to be compared."""


@dataclass(frozen=True)
class LeaderBatch:
    """What a leader has at an offset: the first batch that ends at it or later."""

    start: int
    """Of its log."""
    end: int
    batch: LastBatch | None
    """None: there is no such batch, or one in a format before Kafka 0.11."""


@dataclass(frozen=True)
class ArchivedBatch:
    """A batch that is archived as a part of a log, to be compared with what the leader has."""

    log: LogName
    batch: LastBatch

    @property
    def partition(self) -> TopicPartition:
        return partition_of(self.log)

    @property
    def topic_id(self) -> UUID:
        return UUID(self.log.history.partition("-")[0])


@dataclass(frozen=True)
class ToCompare:
    """The batches that prove the past of some logs."""

    batches: tuple[ArchivedBatch, ...] = ()
    unreadable: frozenset[LogName] = frozenset()
    """Logs of which such a batch is archived, and its bytes are lost."""

    def judged(self, found: Iterable[tuple[ArchivedBatch, PastVerdict]]) -> "JudgedPasts":
        """One batch of another past is enough."""
        by_verdict: dict[PastVerdict, set[LogName]] = {}
        for each, verdict in found:
            by_verdict.setdefault(verdict, set()).add(each.log)
        others = by_verdict.get(PastVerdict.OTHER, set())
        undecided = (by_verdict.get(PastVerdict.UNDECIDED, set()) | self.unreadable) - others
        return JudgedPasts(tuple(sorted(others)), tuple(sorted(undecided)))


@dataclass(frozen=True)
class JudgedPasts:
    """Logs with another past than their archive, and logs of which that is not known."""

    others: tuple[LogName, ...] = ()
    undecided: tuple[LogName, ...] = ()


Bodies = Mapping[int, RecordBody]
"""Records by offset."""


def compare_headers(archived: LastBatch, found: LeaderBatch, *, compacted: bool) -> PastVerdict:
    if found.start > archived.last_offset:
        return PastVerdict.REMOVED
    batch = found.batch
    if found.end <= archived.last_offset or batch is None:
        return PastVerdict.OTHER
    if batch == archived:
        return PastVerdict.SAME
    if not compacted:
        return PastVerdict.OTHER
    if batch.base_offset > archived.last_offset:
        return PastVerdict.UNDECIDED
    return PastVerdict.BY_RECORDS if batch.kept_by_compaction == archived.kept_by_compaction else PastVerdict.OTHER


def compare_bodies(archived: Bodies | None, found: Bodies | None) -> PastVerdict:
    """None: the records of that side cannot be read."""
    if archived is None or found is None:
        return PastVerdict.UNDECIDED
    common = archived.keys() & found.keys()
    if any(archived[offset] != found[offset] for offset in common):
        return PastVerdict.OTHER
    return PastVerdict.SAME if common else PastVerdict.UNDECIDED


@dataclass(frozen=True)
class SeenLog:
    """A log as the last round of a following run saw it."""

    leader_epoch: int
    end: int


SeenLogs = Mapping[TopicPartition, SeenLog]


def trusted_logs(
    seen: SeenLogs, topics: Iterable[Topic], bounds: Mapping[TopicPartition, LogBounds]
) -> set[TopicPartition]:
    """Logs that need not be compared again: the same leader epoch, and no smaller end."""
    now = {TopicPartition(t.name, p.index): p.leader_epoch for t in topics for p in t.partitions}
    return {
        log
        for log, epoch in now.items()
        if (before := seen.get(log)) and before.leader_epoch == epoch and before.end <= bounds[log].high_watermark
    }


def compacted_topics(facts: Facts, before: ClusterRecord | None) -> set[str]:
    """Topics whose cleanup policy is or was to compact: their batches may have been rewritten."""
    now = {name: {**c.inherited, **c.own} for name, c in facts.configs.items()}
    then = {t.name: {**t.inherited, **t.configs} for t in (before.topics if before else ())}
    return {name for some in (now, then) for name, configs in some.items() if _compacts(configs)}


def _compacts(configs: Mapping[str, str]) -> bool:
    return "compact" in configs.get("cleanup.policy", "")


def compare_before_plan(
    topics: Iterable[Topic],
    bounds: Mapping[TopicPartition, LogBounds],
    newest: Mapping[TopicPartition, ArchivedReach],
    base: Mapping[TopicPartition, ArchivedReach],
    earlier: Iterable[CopyResult],
    trusted: Collection[TopicPartition] = (),
) -> ToCompare:
    """For each log that would be continued: its last batch in the last backup, and that of each resumed range.

    `newest` names the history that counts: an interrupted run may have begun another one. `trusted` logs were compared
    before, and their leaders were not restarted since.
    """
    ranges: dict[LogName, list[RangeResult]] = {}
    for each in (r for result in earlier for r in result.ranges):
        ranges.setdefault(each.log, []).append(each)
    found = list[ToCompare]()
    for topic in topics:
        for partition in topic.partitions:
            log = TopicPartition(topic.name, partition.index)
            known = newest.get(log)
            if known is None or not same_topic(known.history, topic):
                continue
            name = log_of(topic, partition.index, known.history)
            tip = None if log in trusted else base.get(log)
            found.append(_of_log(name, tip, ranges.get(name, ()), bounds[log].start))
    return _joined(found)


def compare_before_commit(
    results: Iterable[CopyResult],
    base: Mapping[TopicPartition, ArchivedReach],
    topics: Iterable[Topic],
    ended: Collection[LogName] = (),
) -> ToCompare:
    """For each log that was copied: the last batch of each range, and that of the last backup.

    Units of one log are read at different times. If all these batches are there at one moment, they are of one past.
    `topics` is the current list: a topic that was deleted or re-created since was copied by its id. `ended` histories
    are copied again anyway.
    """
    ids = {t.name: history_of(t) for t in topics}
    ranges: dict[LogName, list[RangeResult]] = {}
    for each in (r for result in results for r in result.ranges if r.outcome is CopyOutcome.COPIED):
        if each.log.history.partition("-")[0] == ids.get(each.log.name) and each.log not in ended:
            ranges.setdefault(each.log, []).append(each)
    return _joined(
        _of_log(log, base.get(partition_of(log)), copied, max(r.log_start for r in copied))
        for log, copied in ranges.items()
    )


def gap_ends(
    results: Iterable[CopyResult], planned: Iterable[KnownGap], topics: Iterable[Topic], ended: Collection[LogName] = ()
) -> dict[LogName, int]:
    """For each log that was copied, the end of its last gap.

    Retention removes from the start of a log. So a log that begins before that end has another past than the log in
    which the gap was found: its start went back.
    """
    copied, ids = list(results), {t.name: history_of(t) for t in topics}
    logs = {r.log for result in copied for r in result.ranges if r.outcome is CopyOutcome.COPIED} - set(ended)
    found: dict[LogName, int] = {}
    joined = [(one.log, gap.end) for one in join(copied) for gap in one.gaps]
    for log, end in [*joined, *((gap.log, gap.end) for gap in planned)]:
        if log in logs and log.history.partition("-")[0] == ids.get(log.name):
            found[log] = max(found.get(log, end), end)
    return found


def _of_log(log: LogName, tip: ArchivedReach | None, ranges: Iterable[RangeResult], start: int) -> ToCompare:
    """Without batches that retention has removed: nothing is left to compare them with."""
    batches, unreadable = list[ArchivedBatch](), False
    if tip is not None and tip.history == log.history and tip.last_epoch >= 0:
        batches += [ArchivedBatch(log, tip.last_batch)] if tip.last_batch else []
        unreadable = tip.last_batch is None and start < (tip.last_end if tip.last_end >= 0 else tip.end)
    for each in ranges:
        batches += [ArchivedBatch(log, each.last_batch)] if each.last_batch else []
        unreadable |= each.last_batch is None and bool(each.epochs) and start < each.reached
    left = tuple(each for each in batches if each.batch.last_offset >= start)
    return ToCompare(left, frozenset({log} if unreadable else ()))


def _joined(some: Iterable[ToCompare]) -> ToCompare:
    each = list(some)
    return ToCompare(
        tuple(b for one in each for b in one.batches), frozenset().union(*(one.unreadable for one in each))
    )
