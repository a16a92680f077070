"""The plan of a restore: decided from values alone, and stored before anything is changed. Pure.

A `RestorePlan` and the archive determine all bytes that are sent. A resumed restore reads the stored plan and decides
nothing again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

import msgspec

from logkeep.errors import LogkeepError, UsageError
from logkeep.formats.kafka.merge_batches import BatchMergeRule
from logkeep.formats.kafka.transactions import AbortedRange
from logkeep.kafka.admin.topics import config_number
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.log_traits import LogTraits, all_joined
from logkeep.kafka.record.documents import ClusterRecord, TopicRecord
from logkeep.kafka.restore.facts.survey_task import Cut, LogSurvey
from logkeep.kafka.restore.facts.target import TargetFacts
from logkeep.kafka.restore.facts.units import Offsets, RestoreIsolation
from logkeep.kafka.restore.plan.duration import bound, choose_offsets, duration_text, preserve_s, restore_s, together_s
from logkeep.kafka.restore.plan.refusals import refuse_damage, refuse_nothing_before, refused_names, refused_targets
from logkeep.kafka.restore.plan.repartition import (
    LARGEST_MADE_BYTES,
    reading_s,
    refused_repartitions,
    repartition_findings,
    share,
    with_reencoding,
)
from logkeep.kafka.restore.plan.selection import ChosenLog, SelectedLogs
from logkeep.kafka.restore.plan.topics import TopicOptions, TopicPlan, difference_findings, plan_topic
from logkeep.kafka.restore.plan.torn_transactions import TearReport, TornTransactions, torn_findings
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.segments import LogName
from logkeep.model.time import rfc3339
from logkeep.repository.backups.manifest import KnownGap
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.fold import Burial, FoldedLog

PARTS = ("data", "configs", "groups", "acls", "quotas")
DEFAULT_PARTS = ("data", "configs", "groups")
_SMALL_BYTES = 16 << 10
"""Batches of this size and more are sent without a copy: at a few thousand per second they are fast enough."""
_MERGED_BYTES = 64 << 10
_MOST_MERGED_BYTES = 1 << 20
"""Larger ones would only cost memory."""


@dataclass(frozen=True)
class PlanOptions:
    """What the user asked for, apart from the selection of logs."""

    offsets: Offsets | None = None
    """None: keep offsets if that is fast enough."""
    isolation: RestoreIsolation = RestoreIsolation.COMMITTED
    parts: tuple[str, ...] = DEFAULT_PARTS
    groups: tuple[str, ...] = ()
    into_existing: bool = False
    replication_factor: int | None = None
    prove: bool = True
    until_ms: int | None = None
    by_record: bool = False
    """Leave out every record from that time on, instead of ending each log before the first one."""
    keep_all: bool = False
    """Leave retention off after the restore."""
    whole_transactions: bool = False
    """Leave out what is restored of a transaction that the cut tears, or possibly tears."""


class PlannedLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One archived log and its target partition."""

    log: LogName
    start: int
    end: int
    transactional: bool
    topic: str
    partition: int
    base: int
    records: int
    """Upper bound: aborted transactions are counted. Where records are spread, an equal part."""
    bytes: int
    before_ms: int | None = None
    """Records with this time or a later one are left out, at any offset."""
    spread_over: int = 0
    """The number of partitions over which records are spread by their keys; this one gets a share. 0: no spread."""
    left_out: tuple[AbortedRange, ...] | msgspec.UnsetType = msgspec.UNSET
    """Parts of transactions that are not restored, because the cut tears them. Absent: none."""
    buried: tuple[ObjectRef, ...] | msgspec.UnsetType = msgspec.UNSET
    """Objects with offsets that are not restored, because their keys were deleted at the source. Absent: none."""
    merge: BatchMergeRule | msgspec.UnsetType = msgspec.UNSET
    """How small batches are merged; absent in plans of earlier releases, which sent every batch by itself."""
    fold: int | msgspec.UnsetType = msgspec.UNSET
    """The generation of the chain that folded it last. Absent: it was not folded."""

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class RestorePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Stored as the body of the restore's plan document."""

    cluster_id: str
    """The target's cluster id."""
    offsets: Offsets
    why: str
    """The reason why offsets are kept or not."""
    isolation: RestoreIsolation
    prove: bool
    parts: tuple[str, ...]
    groups: tuple[str, ...]
    """Patterns; empty: all."""
    names: dict[str, str]
    """Source topic to target topic."""
    topics: tuple[TopicPlan, ...]
    logs: tuple[PlannedLog, ...]
    """For a repartitioned topic, one for each pair of an archived log and a partition; those of one partition are in
    the order of their records in it."""
    torn: tuple[TornTransactions, ...] | msgspec.UnsetType = msgspec.UNSET
    """Transactions that the cut tears. Absent: none, or there is no point in time."""
    whole_transactions: bool | msgspec.UnsetType = msgspec.UNSET
    """Present, and true: these transactions are left out everywhere."""

    @property
    def targets(self) -> tuple[TopicPartition, ...]:
        """All partitions that are written to, without duplicates."""
        return tuple(dict.fromkeys(log.target for log in self.logs))

    @cached_property
    def _limits(self) -> dict[str, int]:
        """`max.message.bytes` of each target topic while it is restored; 0: not known."""
        return {topic.name: max(config_number(topic.while_restoring, "max.message.bytes"), 0) for topic in self.topics}

    def merge_rule(self, log: PlannedLog) -> BatchMergeRule | None:
        """How small batches of a log are merged: never to more than its topic takes."""
        limit = self._limits.get(log.topic, 0)
        if not log.merge or not limit:
            return None
        return msgspec.structs.replace(log.merge, most_bytes=min(log.merge.most_bytes, limit))

    @property
    def merges(self) -> bool:
        """Whether an earlier release would send other batches."""
        return any(log.merge for log in self.logs)

    @property
    def buries(self) -> bool:
        """Whether an earlier release would bring deleted keys back."""
        return any(log.buried for log in self.logs)

    @property
    def records(self) -> int:
        return sum(log.records for log in self.logs)

    @property
    def bytes(self) -> int:
        return sum(log.bytes for log in self.logs)


@dataclass(frozen=True)
class CheckedPlan:
    """A plan with its findings and refusals."""

    plan: RestorePlan
    seconds: float
    """Expected duration."""
    findings: tuple[Finding, ...]
    refusals: tuple[LogkeepError, ...]
    """Why it must not start; empty if it may."""


def plan_restore(
    record: ClusterRecord,
    chosen: SelectedLogs,
    surveys: Mapping[LogName, LogSurvey],
    target: TargetFacts,
    options: PlanOptions,
    at_once: int,
    mark: int,
    now_ms: int,
    tears: TearReport | None = None,
) -> CheckedPlan:
    """Decide everything. Raises Damaged when a selected log cannot be read, UsageError for a time before the archive.

    `mark` is random: it identifies topics that this restore creates until their ids are stored.
    """
    selected = [surveys[log.log] for log in chosen.logs]
    refuse_damage(selected)
    if options.until_ms is not None:
        refuse_nothing_before(selected)
    _refuse_preserve(chosen, options)
    there = [name for _, name in chosen.topics if name in target.topics]
    fresh = all(target.topics[name].untouched for name in there)
    new = not there or (options.into_existing and fresh)
    auto = choose_offsets(selected, new_topics=new, at_once=at_once, empty=bool(there))
    offsets, why = auto.offsets, auto.reason
    if options.offsets is not None:
        offsets, why = options.offsets, "as requested"
    elif chosen.repartitioned:
        offsets, why = Offsets.TRANSLATE, "records get new offsets: a topic gets another number of partitions"
    preserve = offsets is Offsets.PRESERVE
    data = "data" in options.parts
    touched = chosen.topics if data or "configs" in options.parts else ()
    topics = _topics(record, replace(chosen, topics=touched), surveys, target, options, preserve=preserve)
    topics = [_marked(_without_retention(t) if options.keep_all else t, mark) for t in topics]
    records = {topic.name: topic for topic in record.topics}
    needed = {plan.name: chosen.partitions(records[plan.source]) for plan in topics}
    refusals = [
        *refused_names([t for t, _ in touched], chosen.names, target.names - set(there)),
        *refused_targets(
            target, needed, into_existing=options.into_existing, append=options.into_existing, preserve=preserve
        ),
        *refused_repartitions(chosen, surveys, target, into_existing=options.into_existing),
    ]
    plan = RestorePlan(
        cluster_id=target.cluster_id,
        offsets=offsets,
        why=why,
        isolation=options.isolation,
        prove=options.prove,
        parts=options.parts,
        groups=options.groups,
        names=dict(chosen.names),
        topics=tuple(topics),
        logs=tuple(_logs(chosen, surveys, target, options, preserve=preserve)) if data else (),
    )
    plan = with_tears(plan, tears or TearReport(), whole=options.whole_transactions)
    seconds = restore_s([with_reencoding(s, chosen) for s in selected], offsets, proof=options.prove, at_once=at_once)
    seconds += together_s([reading_s(s, chosen, proof=options.prove) for s in selected], at_once)
    findings = (
        *_point_in_time(selected, options),
        *tear_findings(plan),
        *_appended(target, touched),
        *difference_findings(topics),
        *_cost(selected, offsets, at_once),
        *_short_lived(plan, surveys, target, now_ms),
        *repartition_findings(chosen, surveys),
    )
    return CheckedPlan(plan, seconds, findings, tuple(refusals))


def with_tears(plan: RestorePlan, tears: TearReport, *, whole: bool) -> RestorePlan:
    """The plan with the transactions that it tears. With `whole`, nothing of them is restored."""
    if not tears.torn or not plan.logs:
        return plan
    if not whole:
        return msgspec.structs.replace(plan, torn=tears.torn)
    logs = [
        msgspec.structs.replace(log, left_out=tears.ranges[log.log]) if log.log in tears.ranges else log
        for log in plan.logs
    ]
    return msgspec.structs.replace(plan, torn=tears.torn, whole_transactions=True, logs=tuple(logs))


def with_buried(plan: RestorePlan, burials: Mapping[LogName, Sequence[Burial]]) -> RestorePlan:
    """The plan without records that the chain buries in this backup."""
    logs = [
        msgspec.structs.replace(log, buried=tuple(b.object for b in burials[log.log])) if log.log in burials else log
        for log in plan.logs
    ]
    return msgspec.structs.replace(plan, logs=tuple(logs)) if burials else plan


def with_folds(plan: RestorePlan, folds: Mapping[LogName, FoldedLog]) -> RestorePlan:
    """The plan with the fold of each log that it restores: after another one, it cannot be resumed."""
    logs = [
        msgspec.structs.replace(log, fold=folds[log.log].generation) if log.log in folds else log for log in plan.logs
    ]
    return msgspec.structs.replace(plan, logs=tuple(logs)) if folds else plan


def deleted_later_findings(
    plan: RestorePlan, burials: Mapping[LogName, Sequence[Burial]], cuts: Mapping[LogName, int], until_ms: int | None
) -> list[Finding]:
    """Logs that end earlier than the backup: keys that were deleted after that point are left out all the same."""
    early = [log for log in plan.logs if log.log in burials and (until_ms is not None or log.end < cuts[log.log])]
    return [_deleted_later(log.log, burials[log.log]) for log in early]


def _deleted_later(log: LogName, burials: Sequence[Burial]) -> Finding:
    first = min(b.first for b in burials)
    return Finding(
        code="deleted-later",
        severity=Severity.WARNING,
        where=str(log),
        what=f"records of keys that were deleted before backup {first} are left out, although some of these keys may "
        "have existed at the chosen point",
        remedy=f"restore a backup before {first} to get them",
    )


def tear_findings(plan: RestorePlan) -> list[Finding]:
    return torn_findings(plan.torn or (), left_out=bool(plan.whole_transactions))


def _refuse_preserve(chosen: SelectedLogs, options: PlanOptions) -> None:
    if chosen.repartitioned and options.offsets is Offsets.PRESERVE:
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
    options: PlanOptions,
    *,
    preserve: bool,
) -> list[TopicPlan]:
    traits = {(log.topic, log.partition): log.traits for log in record.logs}
    topic_options = TopicOptions(
        preserve=preserve, configs="configs" in options.parts, replication_factor=options.replication_factor
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
                topic_options,
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
    """Put the mark into a config that means "no limit", with a value that no other client sets."""
    if plan.existing or _MARKED not in plan.while_restoring:
        return plan
    return msgspec.structs.replace(plan, while_restoring={**plan.while_restoring, _MARKED: str(_FOR_EVER - mark)})


def _without_retention(plan: TopicPlan) -> TopicPlan:
    return plan if plan.existing else msgspec.structs.replace(plan, final={**plan.final, **_RETENTION})


def _short_lived(
    plan: RestorePlan, surveys: Mapping[LogName, LogSurvey], target: TargetFacts, now_ms: int
) -> list[Finding]:
    """Topics whose retention will delete records as soon as it applies again."""
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
                    what=f"brokers will delete records of {plural(len(gone), 'partition')} minutes after the restore: "
                    f"{gone[0]}",
                    remedy="leave retention off with --keep-all, and set it when the records are no longer needed",
                )
            )
    return found


def _deleted(log: LogSurvey, configs: Mapping[str, str], now_ms: int) -> str:
    """Why retention deletes records of a log; empty if it does not."""
    age_ms, size = config_number(configs, "retention.ms"), config_number(configs, "retention.bytes")
    if 0 <= age_ms < now_ms - log.first_time_ms and log.first_time_ms >= 0:
        return f"some are older than retention.ms={age_ms}"
    return f"a partition is larger than retention.bytes={size}" if 0 <= size < log.bytes else ""


def _logs(
    chosen: SelectedLogs,
    surveys: Mapping[LogName, LogSurvey],
    target: TargetFacts,
    options: PlanOptions,
    *,
    preserve: bool,
) -> Iterator[PlannedLog]:
    """One entry for each log; for a log that is spread, one for each partition."""
    for log in chosen.logs:
        partitions, survey = chosen.repartitioned.get(log.log.name, 0), surveys[log.log]
        if not partitions:
            yield _log(log, survey, target, options, preserve=preserve)
        for partition in range(partitions):
            there = replace(log, target=TopicPartition(log.target.topic, partition))
            whole = _log(there, survey, target, options, preserve=preserve)
            records, size = (share(n, partitions, partition) for n in (whole.records, whole.bytes))
            yield msgspec.structs.replace(
                whole, records=records, bytes=size, spread_over=partitions, merge=msgspec.UNSET
            )


def _log(log: ChosenLog, survey: LogSurvey, target: TargetFacts, options: PlanOptions, *, preserve: bool) -> PlannedLog:
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
        before_ms=options.until_ms if options.by_record else None,
        merge=merge_rule_for(survey.largest_batch_bytes),
    )


def merge_rule_for(largest_batch_bytes: int) -> BatchMergeRule:
    """Merged batches are not larger than the largest archived one, or than 64 KiB where all are smaller."""
    most = min(max(_MERGED_BYTES, largest_batch_bytes), _MOST_MERGED_BYTES)
    return BatchMergeRule(small_bytes=_SMALL_BYTES, most_bytes=most)


def _point_in_time(surveys: Sequence[LogSurvey], options: PlanOptions) -> list[Finding]:
    """How the requested time applies to these logs, and the time as it was parsed."""
    if options.until_ms is None:
        return []
    moment = rfc3339(datetime.fromtimestamp(options.until_ms / 1000, UTC))
    if options.by_record:
        what = f"every record with a time from {moment} on is left out, at any offset"
    else:
        cut, before = (sum(s.cut is each for s in surveys) for each in (Cut.MADE, Cut.BEFORE))
        what = (
            f"up to {moment}: {cut} of {plural(len(surveys), 'partition ends', 'partitions end')} before the first "
            f"record from then on, {plural(before, 'has', 'have')} nothing older, "
            f"{plural(len(surveys) - cut - before, 'ends', 'end')} earlier anyway. Older records after the first "
            "later one are not restored"
        )
    remedy = "" if options.by_record else "if producers set times out of order, --by-record leaves out single records"
    return [Finding(code="until-time", severity=Severity.NOTE, where="--until-time", what=what, remedy=remedy)]


def _appended(target: TargetFacts, topics: Sequence[tuple[TopicRecord, str]]) -> list[Finding]:
    return [
        Finding(
            code="appended",
            severity=Severity.NOTE,
            where=name,
            what=f"it holds up to {plural(target.topics[name].records, 'record')} already: restored ones are appended",
        )
        for _, name in topics
        if name in target.topics and target.topics[name].records
    ]


def _cost(surveys: Sequence[LogSurvey], offsets: Offsets, at_once: int) -> list[Finding]:
    """How long it takes to keep offsets."""
    seconds = together_s([preserve_s(s) for s in surveys], at_once)
    if offsets is not Offsets.PRESERVE or seconds < 60:
        return []
    return [
        Finding(
            code="offsets-cost",
            severity=Severity.NOTE,
            where="--offsets preserve",
            what=f"filling holes and the offsets before the first takes {bound(surveys)} {duration_text(seconds)}",
            remedy="--offsets translate avoids it, and adjusts the offsets of groups",
        )
    ]


def gap_findings(gaps: Sequence[KnownGap]) -> list[Finding]:
    """Ranges that the archive lacks; reported before and after the restore."""
    return [
        Finding(
            code="gap",
            severity=Severity.WARNING,
            where=f"{gap.log.name}/{gap.log.partition}",
            what=f"offsets [{gap.start}, {gap.end}) are not in the backup and cannot be restored: {gap.reason}",
        )
        for gap in gaps
    ]
