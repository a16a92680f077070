"""Decides which archived segments of a topic are trimmed from older backups, with a reason for each topic. Pure.

A segment is trimmed when everything before it in its log is, and

- its largest record time is older than the rule's TIME, or the log has SIZE bytes after it. The time is a running
  maximum; where records have none, the commit of the first backup that reached them counts. A time in the future keeps
  what follows until then;
- it ends at or below the log start of the newest good backup, in any history of the same topic: an earlier generation,
  or the log before it lost its end, has the same offsets or earlier records at them;
- no held backup, reader or kept tag needs it;
- TIME and SIZE are not below the guarantee of the topic that is in force (`guarantee`), unless the user said so.

A topic that is not in the newest good backup is not trimmed, nor one whose cleanup policy is without `delete`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from logkeep.kafka.record.history_names import topic_id_of
from logkeep.kafka.retention.guarantee import Guarantee, GuaranteeInForce, SeenGuarantee, TopicId, in_force
from logkeep.kafka.retention.log_trim import (
    BY_LOG_START,
    ArchivedRow,
    TrimFacts,
    TrimLimits,
    TrimmedLog,
    trim_log,
)
from logkeep.kafka.retention.rules import NO_LIMIT, SourceRetention, TopicRetention, rule_for, size_text, time_text
from logkeep.model.plurals import plural
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.model.time import rfc3339

PartitionId = tuple[str, str, int]
"""Name and id of a topic, and the partition: all its histories together."""


def partition_id(log: LogName) -> PartitionId:
    return log.name, topic_id_of(log.history), log.partition


@dataclass(frozen=True)
class BackupFacts:
    """One completed backup."""

    id: int
    committed: datetime
    cuts: Mapping[LogName, Range]
    guarantees: Mapping[TopicId, Guarantee] | None
    """None: its record cannot be read."""
    kept_by: str = ""
    """The hold, reader or tag that keeps it as it is."""


@dataclass(frozen=True)
class ArchiveFacts:
    """What the archive holds, oldest backup first."""

    backups: Sequence[BackupFacts]
    newest: BackupFacts
    """The newest good one."""
    rows: Mapping[LogName, Sequence[ArchivedRow]]
    newer_bytes: Mapping[LogName, int] = field(default_factory=dict)

    @property
    def older(self) -> list[BackupFacts]:
        return [each for each in self.backups if each.id < self.newest.id]

    @cached_property
    def newest_logs(self) -> dict[PartitionId, LogName]:
        """The history of each partition in the newest good backup."""
        return {partition_id(log): log for log in self.newest.cuts}

    def log(self, log: LogName) -> TrimFacts:
        now = self.newest_logs[partition_id(log)]
        ends = ((b.cuts[log].end, int(b.committed.timestamp() * 1000)) for b in self.backups if log in b.cuts)
        kept = ((b.cuts[log], b.kept_by) for b in self.older if b.kept_by and log in b.cuts)
        return TrimFacts(
            self.rows.get(log, ()),
            self.newest.cuts[now].start,
            self.newer_bytes.get(now, 0),
            tuple(ends),
            tuple((span, why) for span, why in kept if len(span)),
        )


@dataclass(frozen=True)
class TopicTrim:
    """The verdict on one topic."""

    topic: str
    topic_id: str
    rule: str
    """As the user wrote it; empty: none matches."""
    trimmed: bool
    reason: str
    partitions: int = 0
    """How many of its partitions begin later."""
    segments: int = 0
    plain_bytes: int = 0


@dataclass(frozen=True)
class TrimPlan:
    """The plan of a trim: backups before `before` begin at `floors` in these logs."""

    before: int
    floors: Mapping[LogName, int]
    topics: tuple[TopicTrim, ...]


def plan_trim(facts: ArchiveFacts, wanted: SourceRetention, now: datetime) -> TrimPlan:
    """One verdict for each archived topic, by name."""
    floors, topics = dict[LogName, int](), list[TopicTrim]()
    for topic, logs in sorted(_logs_by_topic(facts.backups).items()):
        found, verdict = _judge(facts, topic, logs, wanted, now)
        floors |= found
        topics.append(verdict)
    return TrimPlan(facts.newest.id, floors, tuple(topics))


def _logs_by_topic(backups: Iterable[BackupFacts]) -> dict[TopicId, set[LogName]]:
    found: dict[TopicId, set[LogName]] = {}
    for backup in backups:
        for log in backup.cuts:
            found.setdefault((log.name, topic_id_of(log.history)), set()).add(log)
    return found


def _judge(
    facts: ArchiveFacts, topic: TopicId, logs: Iterable[LogName], wanted: SourceRetention, now: datetime
) -> tuple[dict[LogName, int], TopicTrim]:
    rule = rule_for(wanted.rules, topic[0])
    if rule is None:
        return {}, TopicTrim(*topic, "", False, "no rule names it")
    if reason := _why_kept(facts.newest, topic):
        return {}, TopicTrim(*topic, rule.text, False, reason)
    newer = sum(backup.id >= facts.newest.id for backup in facts.backups if _recorded(backup, topic))
    force = in_force(_seen_guarantees(facts, topic), now, wanted.grace, newer)
    limits = _limits(rule, force.guarantee)
    if reason := _why_not_by_rule(limits, force, wanted):
        return {}, TopicTrim(*topic, rule.text, False, reason)
    now_ms = int(now.timestamp() * 1000)
    there = [log for log in sorted(logs) if partition_id(log) in facts.newest_logs]
    trimmed = {log: trim_log(facts.log(log), limits, now_ms) for log in there}
    floors = {log: one.floor for log, one in trimmed.items() if one.floor}
    return floors, _verdict(topic, rule, limits, facts.newest.id, force, trimmed)


def _why_kept(newest: BackupFacts, topic: TopicId) -> str:
    """Why a topic is not trimmed, whatever its limits are; empty if it may be."""
    if newest.guarantees is None:
        return f"the record of backup {newest.id}, the newest good one, cannot be read"
    if topic not in newest.guarantees:
        again = any(topic[0] == name for name, _ in newest.guarantees)
        gone = "an earlier topic of this name" if again else "the topic was deleted, or not chosen"
        return f"{gone}: it is not in backup {newest.id}, the newest good one"
    if not newest.guarantees[topic].deletes:
        return "its cleanup.policy is without delete: it is never cut by time or size"
    return ""


def _seen_guarantees(facts: ArchiveFacts, topic: TopicId) -> list[SeenGuarantee]:
    """What each backup says of a topic, oldest first. Damaged ones count too: they may have seen a higher guarantee."""
    found = ((backup, _recorded(backup, topic)) for backup in facts.backups)
    return [SeenGuarantee(backup.committed, one) for backup, one in found if one is not None]


def _recorded(backup: BackupFacts, topic: TopicId) -> Guarantee | None:
    """The guarantee that a backup recorded; None: it does not have the topic. A backup that cannot be read may have had
    it, without a limit."""
    return Guarantee() if backup.guarantees is None else backup.guarantees.get(topic)


def _limits(rule: TopicRetention, guarantee: Guarantee) -> TrimLimits:
    return TrimLimits(
        guarantee.time_ms if rule.time_ms == "source" else rule.time_ms,
        guarantee.size_bytes if rule.size_bytes == "source" else rule.size_bytes,
    )


def _why_not_by_rule(limits: TrimLimits, force: GuaranteeInForce, wanted: SourceRetention) -> str:
    """Why limits trim nothing; empty if they may."""
    least = force.guarantee
    unlimited = limits.time_ms >= NO_LIMIT and limits.size_bytes >= NO_LIMIT
    below = limits.time_ms < least.time_ms or limits.size_bytes < least.size_bytes
    if force.known_since is not None and (unlimited or (below and not wanted.less_than_source)):
        grace = time_text(int(wanted.grace.total_seconds() * 1000))
        return f"its retention is known since {rfc3339(force.known_since)} only, and counts {grace} later (--grace)"
    if below and not wanted.less_than_source:
        asked, guaranteed = _limits_text(limits), _limits_text(TrimLimits(least.time_ms, least.size_bytes))
        return f"{asked} is less than the topic guarantees, {guaranteed}; pass --less-than-source to trim it"
    if unlimited:
        return _lowered(force) or "kept forever"
    return ""


def _lowered(force: GuaranteeInForce) -> str:
    if force.until is None:
        return ""
    since = rfc3339(force.until)
    return f"its retention was lowered, or is not known before; the new one counts from {since} on (--grace)"


def _limits_text(limits: TrimLimits) -> str:
    """`7d`, `7d or 1GiB`, `forever`."""
    times = [] if limits.time_ms >= NO_LIMIT else [time_text(limits.time_ms)]
    sizes = [] if limits.size_bytes >= NO_LIMIT else [f"{size_text(limits.size_bytes)} per partition"]
    return " or ".join([*times, *sizes]) or "forever"


def _verdict(
    topic: TopicId,
    rule: TopicRetention,
    limits: TrimLimits,
    newest: int,
    force: GuaranteeInForce,
    logs: Mapping[LogName, TrimmedLog],
) -> TopicTrim:
    begun = [one for one in logs.values() if one.floor]
    partitions = len({log.partition for log, one in logs.items() if one.floor})
    beyond = f"beyond {_limits_text(limits)} and below the log start of backup {newest}"
    stops = sorted({one.stopped_by for one in logs.values()} - {"", BY_LOG_START})
    reason = f"{plural(partitions, 'partition')}: {beyond}" if begun else f"nothing is {beyond}"
    reason += f"; stopped by: {', '.join(stops)}" if stops else ""
    reason += f"; {lowered}" if (lowered := _lowered(force)) else ""
    return TopicTrim(
        *topic,
        rule.text,
        bool(begun),
        reason,
        partitions,
        sum(one.segments for one in begun),
        sum(one.plain_bytes for one in begun),
    )
