"""Whether a log at its leader and its archive have the same past. Pure.

A log gets another past when a broker's disk is replaced by an earlier copy of it (a disk snapshot), or when a cluster
is cloned. Cluster id, topic id and leader epochs are then the same, and the borders of epochs may be the same too. So
the last archived batch is compared with the batch that the leader has at the same last offset. The first row that
matches counts:

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
was archived before. If retention takes it after it was copied in this run, it is UNDECIDED if the leader changed
meanwhile: a broker that starts with an earlier disk gets a new leader epoch. UNDECIDED is reported, and the log is
continued.

Log starts never go back. So a log that begins before the end of an archived gap, or before the start that it had when
it was archived without a batch, has another past: there is no batch to compare.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from uuid import UUID

from logkeep.formats.kafka.plain_records import RecordBody
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.backup.claims import join_claims
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.plan import REMOVED_BEFORE, REMOVED_MEANWHILE, history_of, log_of, same_topic
from logkeep.kafka.backup.units import CopyOutcome, CopyResult, RangeResult
from logkeep.kafka.client.topology import Topic, TopicPartition
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.record.documents import ArchivedReach, ClusterRecord
from logkeep.kafka.record.history_names import topic_id_of
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
    """The log start."""
    end: int
    """The log end."""
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
        return UUID(topic_id_of(self.log.history))


@dataclass(frozen=True)
class ToCompare:
    """The batches that prove the past of some logs."""

    batches: tuple[ArchivedBatch, ...] = ()
    unproven: frozenset[LogName] = frozenset()
    """Logs without such a batch: its bytes are lost, none is archived, or retention took it while they were copied."""
    led_anew: frozenset[LogName] = frozenset()
    """Logs that got another leader epoch while they were copied."""
    went_back: frozenset[LogName] = frozenset()
    """Logs that begin before offsets that retention had removed, or with a leader epoch after a larger one."""

    def judged(self, found: Iterable[tuple[ArchivedBatch, PastVerdict]]) -> "JudgedPasts":
        """One batch of another past is enough."""
        by_verdict: dict[PastVerdict, list[ArchivedBatch]] = {}
        for each, verdict in found:
            by_verdict.setdefault(verdict, []).append(each)
        logs = {verdict: {each.log for each in some} for verdict, some in by_verdict.items()}
        others = logs.get(PastVerdict.OTHER, set()) | self.went_back
        gone = logs.get(PastVerdict.REMOVED, set()) & self.led_anew
        undecided = logs.get(PastVerdict.UNDECIDED, set()) | self.unproven | gone
        removed = tuple(by_verdict.get(PastVerdict.REMOVED, ()))
        return JudgedPasts(tuple(sorted(others)), tuple(sorted(undecided - others)), removed)


@dataclass(frozen=True)
class JudgedPasts:
    """Logs with another past than their archive, and logs of which that is not known."""

    others: tuple[LogName, ...] = ()
    undecided: tuple[LogName, ...] = ()
    removed: tuple[ArchivedBatch, ...] = ()
    """Batches that retention removed before they could be compared."""

    def bounds_after(self, bounds: Mapping[TopicPartition, LogBounds]) -> dict[TopicPartition, LogBounds]:
        """The logs without the batches that are gone: their starts moved on since they were read."""
        moved = dict(bounds)
        for each in self.removed:
            bound = moved[each.partition]
            moved[each.partition] = replace(bound, start=max(bound.start, each.batch.end))
        return moved


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
    """Compare the records of two batches. None: the records of that side cannot be read."""
    if archived is None or found is None:
        return PastVerdict.UNDECIDED
    common = archived.keys() & found.keys()
    if any(archived[offset] != found[offset] for offset in common):
        return PastVerdict.OTHER
    return PastVerdict.SAME if common else PastVerdict.UNDECIDED


@dataclass(frozen=True)
class SeenLog:
    """Leader epoch and end of a log in the last round of a run with --follow."""

    leader_epoch: int
    end: int


SeenLogs = Mapping[TopicPartition, SeenLog]


def trusted_logs(
    seen: SeenLogs, topics: Iterable[Topic], bounds: Mapping[TopicPartition, LogBounds]
) -> set[TopicPartition]:
    """Logs that need not be compared again: their leader epoch is the same, and their end is not smaller."""
    return {
        log
        for log, epoch in _leader_epochs(topics).items()
        if (before := seen.get(log)) and before.leader_epoch == epoch and before.end <= bounds[log].high_watermark
    }


def compacted_topics(facts: Facts, before: ClusterRecord | None) -> set[str]:
    """Topics whose cleanup policy is or was to compact: their batches may have been rewritten."""
    now = {name: {**c.inherited, **c.own} for name, c in facts.configs.items()}
    then = {t.name: {**t.inherited, **t.configs} for t in (before.topics if before else ())}
    policies = [(name, configs.get("cleanup.policy", "")) for some in (now, then) for name, configs in some.items()]
    return {name for name, policy in policies if "compact" in policy}


def compare_before_plan(
    topics: Iterable[Topic],
    bounds: Mapping[TopicPartition, LogBounds],
    newest: Mapping[TopicPartition, ArchivedReach],
    base: Mapping[TopicPartition, ArchivedReach],
    earlier: Iterable[CopyResult],
    trusted: Collection[TopicPartition] = (),
    gaps: Iterable[KnownGap] = (),
) -> ToCompare:
    """For each log that would be continued: its last batch in the last backup, and that of each resumed range.

    `newest` names the history that counts: an interrupted run may have begun another one. `trusted` logs were compared
    before, and their leaders were not restarted since. `gaps`: those of the last backup.
    """
    ranges: dict[LogName, list[RangeResult]] = {}
    for each in (r for result in earlier for r in result.ranges):
        ranges.setdefault(each.log, []).append(each)
    found, ends = list[ToCompare](), _ends_of(gaps)
    for topic in topics:
        for partition in topic.partitions:
            log = TopicPartition(topic.name, partition.index)
            known = newest.get(log)
            if known is None or not same_topic(known.history, topic):
                continue
            name = log_of(topic, partition.index, known.history)
            tip = None if log in trusted else base.get(log)
            found.append(_of_log(name, tip, ranges.get(name, ()), bounds[log].start))
            if tip is not None and tip.history == known.history:
                was = tip.start if tip.last_epoch < 0 and tip.last_batch is None else -1
                back = bounds[log].start < max(was, ends.get(name, -1))
                found.append(ToCompare(went_back=frozenset({name} if back else ())))
    return _joined(found)


def _ends_of(gaps: Iterable[KnownGap]) -> dict[LogName, int]:
    """The end of the last gap of each log that retention made."""
    made = (gap for gap in gaps if gap.reason in (REMOVED_BEFORE, REMOVED_MEANWHILE))
    return {gap.log: gap.end for gap in sorted(made, key=lambda gap: gap.end)}


def compare_before_commit(
    results: Iterable[CopyResult],
    base: Mapping[TopicPartition, ArchivedReach],
    topics: Iterable[Topic],
    ended: Collection[LogName] = (),
    before: Facts | None = None,
) -> ToCompare:
    """For each log that was copied: the last batch of each range, and that of the last backup.

    Units of one log are read at different times. If all these batches are there at one moment, they are of one past.
    `topics` is the current list: a topic that was deleted or re-created since was copied by its id. `ended` histories
    are copied again anyway. `before`: the facts of the plan.
    """
    now, ranges = list(topics), dict[LogName, list[RangeResult]]()
    ids = {t.name: history_of(t) for t in now}
    for each in (r for result in results for r in result.ranges if r.outcome is CopyOutcome.COPIED):
        if topic_id_of(each.log.history) == ids.get(each.log.name) and each.log not in ended:
            ranges.setdefault(each.log, []).append(each)
    epochs, then = _leader_epochs(now), _leader_epochs(before.topics if before else ())
    found = list[ToCompare]()
    for log, copied in ranges.items():
        where, start = partition_of(log), max(r.log_start for r in copied)
        found.append(_of_log(log, base.get(where), copied, start))
        if before is not None and epochs.get(where) != then.get(where):
            found.append(_led_anew(log, _of_log(log, base.get(where), copied, before.bounds[where].start), start))
    return _joined(found)


def _leader_epochs(topics: Iterable[Topic]) -> dict[TopicPartition, int]:
    return {TopicPartition(t.name, p.index): p.leader_epoch for t in topics for p in t.partitions}


def _led_anew(log: LogName, planned: ToCompare, start: int) -> ToCompare:
    """A log whose leader changed. It is unproven if a batch is gone that was there when the run was planned."""
    gone = any(each.batch.last_offset < start for each in planned.batches)
    return ToCompare(unproven=frozenset({log} if gone else ()), led_anew=frozenset({log}))


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
    joined = [(one.log, gap.end) for one in join_claims(copied) for gap in one.gaps]
    for log, end in [*joined, *((gap.log, gap.end) for gap in planned)]:
        if log in logs and topic_id_of(log.history) == ids.get(log.name):
            found[log] = max(found.get(log, end), end)
    return found


def _of_log(log: LogName, tip: ArchivedReach | None, ranges: Collection[RangeResult], start: int) -> ToCompare:
    """The batches of one log that are compared. Those that retention has removed are left out: the leader has nothing
    there."""
    batches, unreadable = list[ArchivedBatch](), False
    if tip is not None and tip.history == log.history and tip.last_epoch >= 0:
        batches += [ArchivedBatch(log, tip.last_batch)] if tip.last_batch else []
        unreadable = tip.last_batch is None and start < (tip.last_end if tip.last_end >= 0 else tip.end)
    for each in ranges:
        batches += [ArchivedBatch(log, each.last_batch)] if each.last_batch else []
        unreadable |= each.last_batch is None and bool(each.epochs) and start < each.reached
    left = tuple(each for each in batches if each.batch.last_offset >= start)
    back = any(start < each.hi <= each.log_start and not each.epochs for each in ranges) or _epochs_decrease(ranges)
    return ToCompare(left, frozenset({log} if unreadable else ()), went_back=frozenset({log} if back else ()))


def _epochs_decrease(ranges: Iterable[RangeResult]) -> bool:
    """Whether a batch follows one with a larger leader epoch. No single log has that: the ranges are of two pasts."""
    runs = sorted((run.offset, run.epoch) for each in ranges for run in each.epochs if run.epoch >= 0)
    return any(later < earlier for (_, earlier), (_, later) in pairwise(runs))


def _joined(some: Iterable[ToCompare]) -> ToCompare:
    each = list(some)
    return ToCompare(
        tuple(b for one in each for b in one.batches),
        frozenset().union(*(one.unproven for one in each)),
        frozenset().union(*(one.led_anew for one in each)),
        frozenset().union(*(one.went_back for one in each)),
    )
