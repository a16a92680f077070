"""What a restore will do: decided from values alone, stored before anything is changed. Pure.

A `RestorePlan` and the archive say everything about the bytes that are sent. A restore that is resumed reads it back
and decides nothing anew.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import msgspec

from logkeep.errors import LogkeepError, UsageError
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.batch_traits import LogTraits, all_joined
from logkeep.kafka.record.documents import ClusterRecord, TopicRecord
from logkeep.kafka.restore.facts.survey_task import Cut, LogSurvey
from logkeep.kafka.restore.facts.target import TargetFacts
from logkeep.kafka.restore.facts.units import Offsets, RestoreIsolation
from logkeep.kafka.restore.plan.duration import bound, choose_offsets, preserve_s, restore_s, said, together_s
from logkeep.kafka.restore.plan.refusals import refuse_damage, refuse_nothing_before, refused_names, refused_targets
from logkeep.kafka.restore.plan.repartition import (
    LARGEST_MADE_BYTES,
    encoded_anew,
    reading_s,
    refused_repartitions,
    repartition_findings,
    share,
)
from logkeep.kafka.restore.plan.selection import ChosenLog, SelectedLogs
from logkeep.kafka.restore.plan.topics import TopicPlan, TopicWishes, difference_findings, plan_topic
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import LogName
from logkeep.model.time import rfc3339
from logkeep.repository.backups.manifest import KnownGap

PARTS = ("data", "configs", "groups", "acls", "quotas")
DEFAULT_PARTS = ("data", "configs", "groups")


@dataclass(frozen=True)
class Wishes:
    """What the user asked for besides which logs."""

    offsets: Offsets | None = None
    """None: whatever is cheap enough."""
    isolation: RestoreIsolation = RestoreIsolation.COMMITTED
    parts: tuple[str, ...] = DEFAULT_PARTS
    groups: tuple[str, ...] = ()
    into_existing: bool = False
    replication_factor: int | None = None
    prove: bool = True
    until_ms: int | None = None
    by_record: bool = False
    """Leave out every record from that time on, in place of ending each log before the first."""
    keep_all: bool = False
    """Leave retention off in the end."""


class PlannedLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One log and its place in the target."""

    log: LogName
    start: int
    end: int
    transactional: bool
    topic: str
    partition: int
    base: int
    records: int
    """At most so many: those of aborted transactions are counted. Where they are spread, an equal part of them."""
    bytes: int
    before_ms: int | None = None
    """Records with this or a later time are left out, wherever they stand."""
    spread_over: int = 0
    """Over so many partitions records of the log are spread by their keys, and this one gets a share; 0: all."""

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class RestorePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stored as the body of the restore's plan document."""

    cluster_id: str
    """Of the target."""
    offsets: Offsets
    why: str
    """Why offsets are kept or not."""
    isolation: RestoreIsolation
    prove: bool
    parts: tuple[str, ...]
    groups: tuple[str, ...]
    """Patterns; empty: all."""
    names: dict[str, str]
    """Source topic to target topic."""
    topics: tuple[TopicPlan, ...]
    logs: tuple[PlannedLog, ...]
    """Of a topic that is repartitioned, one for each pair of an archived log and a partition; those of one partition
    are in the order in which their records will stand there."""

    @property
    def targets(self) -> tuple[TopicPartition, ...]:
        """Every partition that is written to, once."""
        return tuple(dict.fromkeys(log.target for log in self.logs))

    @property
    def records(self) -> int:
        return sum(log.records for log in self.logs)

    @property
    def bytes(self) -> int:
        return sum(log.bytes for log in self.logs)


@dataclass(frozen=True)
class CheckedPlan:
    """A plan and what has to be said about it."""

    plan: RestorePlan
    seconds: float
    """About how long it will take."""
    findings: tuple[Finding, ...]
    refusals: tuple[LogkeepError, ...]
    """Why it must not begin; empty when it may."""


def plan_restore(
    record: ClusterRecord,
    chosen: SelectedLogs,
    surveys: Mapping[LogName, LogSurvey],
    target: TargetFacts,
    wishes: Wishes,
    at_once: int,
    mark: int,
    now_ms: int,
) -> CheckedPlan:
    """Decide everything. Raises Damaged when a chosen log cannot be read, UsageError for a time before the archive.

    `mark` is random: topics that this restore makes are recognised by it, as long as their ids are not stored yet.
    """
    looked = [surveys[log.log] for log in chosen.logs]
    refuse_damage(looked)
    if wishes.until_ms is not None:
        refuse_nothing_before(looked)
    _refuse_kept(chosen, wishes)
    there = [name for _, name in chosen.topics if name in target.topics]
    fresh = all(target.topics[name].untouched for name in there)
    new = not there or (wishes.into_existing and fresh)
    auto = choose_offsets(looked, new_topics=new, at_once=at_once, empty=bool(there))
    offsets, why = auto.offsets, auto.reason
    if wishes.offsets is not None:
        offsets, why = wishes.offsets, "as asked for"
    elif chosen.repartitioned:
        offsets, why = Offsets.TRANSLATE, "records get new offsets: a topic gets another number of partitions"
    preserve = offsets is Offsets.PRESERVE
    data = "data" in wishes.parts
    touched = chosen.topics if data or "configs" in wishes.parts else ()
    topics = _topics(record, replace(chosen, topics=touched), surveys, target, wishes, preserve=preserve)
    topics = [_marked(_kept(t) if wishes.keep_all else t, mark) for t in topics]
    needed = {plan.name: chosen.partitions(_topic(record, plan.source)) for plan in topics}
    refusals = [
        *refused_names([t for t, _ in touched], chosen.names, target.names - set(there)),
        *refused_targets(
            target, needed, into_existing=wishes.into_existing, append=wishes.into_existing, preserve=preserve
        ),
        *refused_repartitions(chosen, surveys, target, into_existing=wishes.into_existing),
    ]
    plan = RestorePlan(
        cluster_id=target.cluster_id,
        offsets=offsets,
        why=why,
        isolation=wishes.isolation,
        prove=wishes.prove,
        parts=wishes.parts,
        groups=wishes.groups,
        names=dict(chosen.names),
        topics=tuple(topics),
        logs=tuple(_logs(chosen, surveys, target, wishes, preserve=preserve)) if data else (),
    )
    seconds = restore_s([encoded_anew(s, chosen) for s in looked], offsets, proof=wishes.prove, at_once=at_once)
    seconds += together_s([reading_s(s, chosen, proof=wishes.prove) for s in looked], at_once)
    findings = (
        *_point_in_time(looked, wishes),
        *_appended(target, touched),
        *difference_findings(topics),
        *_cost(looked, offsets, at_once),
        *_short_lived(plan, surveys, target, now_ms),
        *repartition_findings(chosen, surveys),
    )
    return CheckedPlan(plan, seconds, findings, tuple(refusals))


def _refuse_kept(chosen: SelectedLogs, wishes: Wishes) -> None:
    if chosen.repartitioned and wishes.offsets is Offsets.PRESERVE:
        raise UsageError(
            "a topic that gets another number of partitions cannot keep the offsets of its records",
            subject=", ".join(f"--repartition {name}={n}" for name, n in chosen.repartitioned.items()),
            remedy="use --offsets translate, or restore this topic by itself",
        )


def _topics(
    record: ClusterRecord,
    chosen: SelectedLogs,
    surveys: Mapping[LogName, LogSurvey],
    target: TargetFacts,
    wishes: Wishes,
    *,
    preserve: bool,
) -> list[TopicPlan]:
    traits = {(log.topic, log.partition): log.traits for log in record.logs}
    asked = TopicWishes(
        preserve=preserve, configs="configs" in wishes.parts, replication_factor=wishes.replication_factor
    )
    plans = []
    for topic, name in chosen.topics:
        logs = [log for log in chosen.logs if log.log.name == topic.name]
        known = all_joined(traits.get((log.log.name, log.log.partition)) for log in logs)
        made = LARGEST_MADE_BYTES if topic.name in chosen.repartitioned else 0
        largest = max((surveys[log.log].largest_batch_bytes for log in logs), default=0)
        seen = LogTraits(largest_batch_bytes=max(largest, made))
        plans.append(
            plan_topic(
                topic,
                target,
                asked,
                name=name,
                partitions=chosen.partitions(topic),
                traits=(known or LogTraits()).joined(seen),
            )
        )
    return plans


_MARKED = "message.timestamp.after.max.ms"
_FOR_EVER = 2**63 - 1
_RETENTION = {"retention.ms": "-1", "retention.bytes": "-1"}


def _marked(plan: TopicPlan, mark: int) -> TopicPlan:
    """A config that means "no limit" has room for a mark that nobody else sets."""
    if plan.existing or _MARKED not in plan.while_restoring:
        return plan
    return msgspec.structs.replace(plan, while_restoring={**plan.while_restoring, _MARKED: str(_FOR_EVER - mark)})


def _kept(plan: TopicPlan) -> TopicPlan:
    return plan if plan.existing else msgspec.structs.replace(plan, final={**plan.final, **_RETENTION})


def _short_lived(
    plan: RestorePlan, surveys: Mapping[LogName, LogSurvey], target: TargetFacts, now_ms: int
) -> list[Finding]:
    """Topics whose retention will delete records as soon as it is in force again."""
    found = []
    for topic in plan.topics:
        logs = [surveys[log] for log in dict.fromkeys(log.log for log in plan.logs if log.topic == topic.name)]
        configs = {**target.defaults, **topic.final}
        gone = [why for log in logs if (why := _deleted(log, configs, now_ms))]
        if gone and "delete" in configs.get("cleanup.policy", "delete"):
            found.append(
                Finding(
                    code="retention-deletes",
                    severity=Severity.WARNING,
                    where=topic.name,
                    what=f"brokers will delete records of {len(gone)} partitions minutes after the restore: {gone[0]}",
                    remedy="leave retention off with --keep-all, and set it when the records are not needed any more",
                )
            )
    return found


def _deleted(log: LogSurvey, configs: Mapping[str, str], now_ms: int) -> str:
    """Why retention takes records of a log; nothing when it does not."""
    age_ms, size = int(configs.get("retention.ms") or -1), int(configs.get("retention.bytes") or -1)
    if 0 <= age_ms < now_ms - log.first_time_ms and log.first_time_ms >= 0:
        return f"there are some older than retention.ms={age_ms}"
    return f"there is more than retention.bytes={size}" if 0 <= size < log.bytes else ""


def _topic(record: ClusterRecord, name: str) -> TopicRecord:
    return next(t for t in record.topics if t.name == name)


def _logs(
    chosen: SelectedLogs, surveys: Mapping[LogName, LogSurvey], target: TargetFacts, wishes: Wishes, *, preserve: bool
) -> Iterator[PlannedLog]:
    """Every log, or of one that is spread a part for every partition."""
    for log in chosen.logs:
        partitions, survey = chosen.repartitioned.get(log.log.name, 0), surveys[log.log]
        if not partitions:
            yield _log(log, survey, target, wishes, preserve=preserve)
        for partition in range(partitions):
            there = replace(log, target=TopicPartition(log.target.topic, partition))
            whole = _log(there, survey, target, wishes, preserve=preserve)
            records, size = (share(n, partitions, partition) for n in (whole.records, whole.bytes))
            yield msgspec.structs.replace(whole, records=records, bytes=size, spread_over=partitions)


def _log(log: ChosenLog, survey: LogSurvey, target: TargetFacts, wishes: Wishes, *, preserve: bool) -> PlannedLog:
    there = target.topics.get(log.target.topic)
    within = there is not None and log.target.partition < there.partitions
    end = there.bounds[log.target.partition].high_watermark if there is not None and within else 0
    return PlannedLog(
        log=log.log,
        start=log.start,
        end=survey.end,
        transactional=survey.transactional,
        topic=log.target.topic,
        partition=log.target.partition,
        base=0 if preserve else end,
        records=survey.records,
        bytes=survey.bytes,
        before_ms=wishes.until_ms if wishes.by_record else None,
    )


def _point_in_time(surveys: Sequence[LogSurvey], wishes: Wishes) -> list[Finding]:
    """What a time means for these logs, and as which moment it was understood."""
    if wishes.until_ms is None:
        return []
    moment = rfc3339(datetime.fromtimestamp(wishes.until_ms / 1000, UTC))
    if wishes.by_record:
        what = f"every record with a time from {moment} on is left out, wherever it stands"
    else:
        cut, before = (sum(s.cut is each for s in surveys) for each in (Cut.MADE, Cut.BEFORE))
        what = (
            f"up to {moment}: {cut} of {len(surveys)} partitions end before their first record from then on, {before} "
            f"have nothing older, {len(surveys) - cut - before} end earlier anyway. Older records behind the first "
            "later one do not come back"
        )
    remedy = (
        "" if wishes.by_record else "where producers set times out of order, --by-record leaves out record by record"
    )
    return [Finding(code="until-time", severity=Severity.NOTE, where="--until-time", what=what, remedy=remedy)]


def _appended(target: TargetFacts, topics: Sequence[tuple[TopicRecord, str]]) -> list[Finding]:
    return [
        Finding(
            code="appended",
            severity=Severity.NOTE,
            where=name,
            what=f"it holds up to {target.topics[name].records:,} records already: what comes back is put behind them",
        )
        for _, name in topics
        if name in target.topics and target.topics[name].records
    ]


def _cost(surveys: Sequence[LogSurvey], offsets: Offsets, at_once: int) -> list[Finding]:
    """Keeping offsets at any price was asked for: the price is told."""
    seconds = together_s([preserve_s(s) for s in surveys], at_once)
    if offsets is not Offsets.PRESERVE or seconds < 60:
        return []
    return [
        Finding(
            code="offsets-cost",
            severity=Severity.NOTE,
            where="--offsets preserve",
            what=f"filling holes and what lies before the first offsets takes {bound(surveys)} {said(seconds)}",
            remedy="--offsets translate needs none of it, and groups are set to match",
        )
    ]


def gap_findings(gaps: Sequence[KnownGap]) -> list[Finding]:
    """What the archive never had does not come back; that is said before and after."""
    return [
        Finding(
            code="gap",
            severity=Severity.WARNING,
            where=f"{gap.log.name}/{gap.log.partition}",
            what=f"offsets [{gap.start}, {gap.end}) are not in the backup and do not come back: {gap.reason}",
        )
        for gap in gaps
    ]
