"""Decides a restore from values alone: offsets, topics, logs, refusals. Pure; `--dry-run` stops here."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import msgspec

from logkeep.errors import UsageError
from logkeep.formats.kafka.restore.merge_batches import BatchMergeRule
from logkeep.kafka.admin.topics import config_number
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.log_traits import LogTraits, all_joined
from logkeep.kafka.record.documents import ClusterRecord
from logkeep.kafka.restore.facts.survey_task import LogSurvey
from logkeep.kafka.restore.facts.target import TargetFacts
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.plan.duration import choose_offsets, restore_s, together_s
from logkeep.kafka.restore.plan.findings import appended_findings, cost_findings, point_in_time_findings, tear_findings
from logkeep.kafka.restore.plan.refusals import refuse_damage, refuse_nothing_before, refused_names, refused_targets
from logkeep.kafka.restore.plan.repartition import (
    LARGEST_MADE_BYTES,
    equal_share,
    reading_s,
    refused_repartitions,
    repartition_findings,
    with_reencoding,
)
from logkeep.kafka.restore.plan.selection import ChosenLog, SelectedLogs
from logkeep.kafka.restore.plan.topics import TopicOptions, TopicPlan, difference_findings, plan_topic
from logkeep.kafka.restore.plan.torn_transactions import TearReport
from logkeep.kafka.restore.plan.values import CheckedPlan, PlannedLog, PlanOptions, RestorePlan, with_tears
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.segments import LogName

_SMALL_BYTES = 16 << 10
"""Batches of this size and more are sent without a copy: at a few thousand per second they are fast enough."""
_MERGED_BYTES = 64 << 10
_MOST_MERGED_BYTES = 1 << 20
"""Larger ones would only cost memory."""


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
    offsets, why = _offsets(chosen, selected, target, there, options, at_once)
    preserve = offsets is Offsets.PRESERVE
    data = "data" in options.parts
    touched = chosen.topics if data or "configs" in options.parts else ()
    topics = _topics(record, replace(chosen, topics=touched), surveys, target, options, preserve=preserve)
    topics = [_marked(_without_retention(t) if options.keep_all else t, mark) for t in topics]
    records = {topic.name: topic for topic in record.topics}
    needed = {plan.name: chosen.partitions(records[plan.source]) for plan in topics}
    into_existing = options.into_existing
    refusals = [
        *refused_names([t for t, _ in touched], chosen.names, target.names - set(there)),
        *refused_targets(target, needed, into_existing=into_existing, append=into_existing, preserve=preserve),
        *refused_repartitions(chosen, surveys, target, into_existing=into_existing),
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
        *point_in_time_findings(selected, options),
        *tear_findings(plan),
        *appended_findings(target, touched),
        *difference_findings(topics),
        *cost_findings(selected, offsets, at_once),
        *_short_lived(plan, surveys, target, now_ms),
        *repartition_findings(chosen, surveys),
    )
    return CheckedPlan(plan, seconds, findings, tuple(refusals))


def _offsets(
    chosen: SelectedLogs,
    selected: list[LogSurvey],
    target: TargetFacts,
    there: list[str],
    options: PlanOptions,
    at_once: int,
) -> tuple[Offsets, str]:
    """Whether records keep their offsets, and the reason. `there`: restored topics that the target has already."""
    if options.offsets is not None:
        return options.offsets, "as requested"
    if chosen.repartitioned:
        return Offsets.TRANSLATE, "records get new offsets: a topic gets another number of partitions"
    new = not there or (options.into_existing and all(target.topics[name].untouched for name in there))
    auto = choose_offsets(selected, new_topics=new, at_once=at_once, empty=bool(there))
    return auto.offsets, auto.reason


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
            records, size = (equal_share(n, partitions, partition) for n in (whole.records, whole.bytes))
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
        settled_to=log.settled_to if log.settled_to > survey.end else msgspec.UNSET,
    )


def merge_rule_for(largest_batch_bytes: int) -> BatchMergeRule:
    """Merged batches are not larger than the largest archived one, or than 64 KiB where all are smaller."""
    most = min(max(_MERGED_BYTES, largest_batch_bytes), _MOST_MERGED_BYTES)
    return BatchMergeRule(small_bytes=_SMALL_BYTES, most_bytes=most)
