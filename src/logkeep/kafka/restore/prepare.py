"""Prepares a restore: surveys the archive, reads the target, makes the plan, and checks the user's rights.

It changes nothing. A dry run shows exactly what a run starts with.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from logkeep.errors import LogkeepError, TargetUnsafe
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.burials import read_buried
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.record.documents import GroupRecord
from logkeep.kafka.record.scram import ROLE as SCRAM_ROLE
from logkeep.kafka.record.topic_sets import topic_sets, torn_sets
from logkeep.kafka.restore.facts.permissions import (
    RightsWanted,
    find_rights,
    missing_rights_error,
    principal_of,
    rights_findings,
)
from logkeep.kafka.restore.facts.survey_task import LogSurvey, SurveyLog, SurveyResult, survey, survey_units
from logkeep.kafka.restore.facts.target import TargetFacts, gather_target
from logkeep.kafka.restore.facts.units import Offsets, RestoreIsolation
from logkeep.kafka.restore.groups import read_groups
from logkeep.kafka.restore.plan.findings import deleted_later_findings, gap_findings
from logkeep.kafka.restore.plan.folded_points import refuse_folded_points
from logkeep.kafka.restore.plan.group_offsets import RestoredLog, Routes, UnchangedLog
from logkeep.kafka.restore.plan.groups import GroupsPlan, expected_rows, inexact_findings, plan_groups, rows_of
from logkeep.kafka.restore.plan.plan import plan_restore
from logkeep.kafka.restore.plan.refusals import join_names
from logkeep.kafka.restore.plan.selection import RestoreSelection, SelectedLogs, select_logs
from logkeep.kafka.restore.plan.topics import difference_findings
from logkeep.kafka.restore.plan.torn_transactions import TearReport
from logkeep.kafka.restore.plan.values import CheckedPlan, PlanOptions, RestorePlan, with_buried, with_folds
from logkeep.kafka.restore.security import scram_finding
from logkeep.kafka.restore.topics import validate_topics
from logkeep.kafka.restore.transaction_check import compare_transactions
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine, EngineFor
from logkeep.repository.restores import RestoredGroup

TRANSACTIONAL_PREFIX = "logkeep-restore-"
"""The prefix of all transactional ids of restores: one ACL allows them all."""
_MARK_DIGITS = 8
_INDEX_BYTES = 64 << 10
"""About how much of a segment is read to survey it."""


@dataclass(frozen=True)
class KafkaRestoreOptions:
    """Everything that the user asked for."""

    selection: RestoreSelection = field(default_factory=RestoreSelection)
    plan: PlanOptions = field(default_factory=PlanOptions)
    limit_produce: int | None = None
    """Bytes per second over all tasks."""


@dataclass(frozen=True)
class PreparedKafkaRestore:
    """Everything that a run starts with."""

    view: KafkaBackupView
    target: TargetFacts
    checked: CheckedPlan
    groups: GroupsPlan
    """Where records get new offsets, the offsets here are still those of the source; see `group_rows`."""
    findings: tuple[Finding, ...]

    @property
    def plan(self) -> RestorePlan:
        return self.checked.plan

    @property
    def group_rows(self) -> tuple[RestoredGroup, ...]:
        return group_rows(self.groups, self.plan)

    @property
    def refusals(self) -> tuple[LogkeepError, ...]:
        return self.checked.refusals


@dataclass(frozen=True)
class ClockAndTokens:
    """Sources of time and randomness; tests replace them."""

    clock: Clock
    tokens: TokenSource

    @property
    def mark(self) -> int:
        return int(self.tokens()[:_MARK_DIGITS], 16)

    @property
    def now_ms(self) -> int:
        return int(self.clock().timestamp() * 1000)


def prepare(
    view: KafkaBackupView,
    options: KafkaRestoreOptions,
    settings: ClientSettings,
    engine_for: EngineFor,
    source: ClockAndTokens,
    *,
    presence: bool = True,
) -> PreparedKafkaRestore:
    """Everything that a run starts with. Raises what makes a plan impossible; what only forbids to carry it out is
    among the refusals.

    Without `presence` lost objects are not checked in advance: the tasks will find them.
    """
    chosen = select_logs(view.record, view.manifest.cut, options.selection)
    refuse_folded_points(view, {log.log: Range(log.start, log.end) for log in chosen.logs}, options.plan.until_ms)
    surveys, engine = survey_logs(
        view, chosen, options.plan.until_ms, engine_for, by_record=options.plan.by_record, presence=presence
    )
    tears, not_compared = _tears(view, chosen, surveys, engine, options.plan)
    with Cluster(settings) as cluster:
        target = gather_target(cluster, [name for _, name in chosen.topics], view.record.cluster_id)
        tasks = engine.at_once(max(len(chosen.logs), 1))
        checked = plan_restore(
            view.record, chosen, surveys, target, options.plan, tasks, source.mark, source.now_ms, tears
        )
        checked = replace(checked, plan=with_folds(with_buried(checked.plan, view.burials), view.folds))
        groups, live = _plan_groups(cluster, view, checked.plan)
        checked = replace(checked, refusals=(*checked.refusals, *live))
        findings = [*checked.findings, *not_compared, *_left_out(chosen, groups), *_credentials(view, checked.plan)]
        findings += inexact_findings(group_rows(groups, checked.plan))
        sets = topic_sets(view.record.topics, view.record.groups)
        findings += torn_sets(sets, [topic.name for topic, _ in chosen.topics], [g.name for g in groups.groups])
        if not checked.refusals:
            known = set(difference_findings(checked.plan.topics))
            checked, more = _check_target(cluster, checked, groups, settings, source.tokens())
            new = [f for f in difference_findings(checked.plan.topics) if f not in known]
            findings += [*new, *more]
    ranges = {log.log: Range(log.start, log.end) for log in checked.plan.logs}
    findings += [*gap_findings(view.gaps(ranges)), *view.unproven_deletions(ranges), *view.trim_findings(ranges)]
    cuts = {cut.log: cut.end for cut in view.manifest.cut}
    findings += deleted_later_findings(checked.plan, view.burials, cuts, options.plan.until_ms)
    return PreparedKafkaRestore(view, target, checked, groups, tuple(findings))


def _tears(
    view: KafkaBackupView,
    chosen: SelectedLogs,
    surveys: Mapping[LogName, LogSurvey],
    engine: Engine,
    options: PlanOptions,
) -> tuple[TearReport, list[Finding]]:
    """The transactions that the point in time tears. A damaged log is refused later."""
    if "data" not in options.parts or any(each.damage for each in surveys.values()):
        return TearReport(), []
    return compare_transactions(
        view,
        chosen,
        {log: each.end for log, each in surveys.items()},
        engine,
        before_ms=options.until_ms if options.by_record else None,
        unsettled=options.isolation is RestoreIsolation.ALL,
    )


def survey_logs(
    view: KafkaBackupView,
    chosen: SelectedLogs,
    until_ms: int | None,
    engine_for: EngineFor,
    *,
    by_record: bool = False,
    presence: bool = True,
) -> tuple[dict[LogName, LogSurvey], Engine]:
    """What each selected log holds, and the engine that surveyed it."""
    ranges = {log.log: Range(log.start, log.end) for log in chosen.logs}
    segments = view.segments(ranges)
    logs = [
        SurveyLog(
            log=log.log,
            start=log.start,
            end=log.end,
            segments=segments[log.log],
            until_ms=until_ms,
            by_record=by_record,
            presence=presence,
        )
        for log in chosen.logs
    ]
    engine = engine_for(sum(len(s) for s in segments.values()) * _INDEX_BYTES)
    units = survey_units(view.place, logs)
    # Indexes are read, not logs: a rate in bytes would be misleading.
    found = engine.map(survey, units, SurveyResult, label="survey", weight=lambda _: 0)
    return {each.log: _with_buried(view, each) for result in found for each in result.logs}, engine


def _with_buried(view: KafkaBackupView, survey: LogSurvey) -> LogSurvey:
    """Buried records are holes too."""
    buried = read_buried(view.place, [b.object for b in view.burials.get(survey.log, ())])
    if buried is None:
        return survey
    left_out = buried.within(survey.start, survey.end)
    return msgspec.structs.replace(survey, missing=survey.missing + left_out.count, holes=survey.holes + left_out.runs)


def _plan_groups(
    cluster: Cluster, view: KafkaBackupView, plan: RestorePlan
) -> tuple[GroupsPlan, tuple[TargetUnsafe, ...]]:
    """The groups to restore; and the refusal, when some of them have active members."""
    if "groups" not in plan.parts:
        return GroupsPlan(()), ()
    current = read_groups(cluster, [g.name for g in view.record.groups])
    try:
        return plan_groups(restorable_groups(view.record.groups), kept_routes(plan), plan.groups, current), ()
    except TargetUnsafe as refused:
        return GroupsPlan(()), (refused,)


def restorable_groups(groups: tuple[GroupRecord, ...]) -> list[GroupRecord]:
    """The groups as they can be restored: of groups of the streams protocol, only the offsets."""
    return [msgspec.structs.replace(g, kind="classic") if g.kind == "streams" else g for g in groups]


def group_rows(groups: GroupsPlan, plan: RestorePlan) -> tuple[RestoredGroup, ...]:
    """What is known of the groups before the restore."""
    if plan.offsets is Offsets.PRESERVE:
        return rows_of(groups)
    return expected_rows(groups, {log.topic for log in plan.logs if log.spread_over})


def kept_routes(plan: RestorePlan) -> Routes:
    """The targets of source partitions, at their own offsets."""
    routes: dict[TopicPartition, list[RestoredLog]] = {}
    for log in plan.logs:
        source = TopicPartition(log.log.name, log.log.partition)
        routes.setdefault(source, []).append(UnchangedLog(log.target, log.start, log.end))
    return routes


def _check_target(
    cluster: Cluster, checked: CheckedPlan, groups: GroupsPlan, settings: ClientSettings, token: str
) -> tuple[CheckedPlan, list[Finding]]:
    """Ask the target what it would refuse: topics, configs, and operations of this user."""
    topics, refused = validate_topics(cluster, checked.plan.topics)
    plan = msgspec.structs.replace(checked.plan, topics=tuple(topics))
    rights = find_rights(cluster, _needed_rights(plan, groups, token))
    principal = principal_of(settings)
    missing = missing_rights_error(rights, principal)
    refusals = (*refused, *([missing] if missing else []))
    return replace(checked, plan=plan, refusals=refusals), rights_findings(rights, principal)


def _needed_rights(plan: RestorePlan, groups: GroupsPlan, token: str) -> RightsWanted:
    preserve = plan.offsets is Offsets.PRESERVE
    return RightsWanted(
        new_topics=tuple(t.name for t in plan.topics if not t.existing),
        existing_topics=tuple(t.name for t in plan.topics if t.existing),
        shortened=frozenset(log.topic for log in plan.logs if preserve and log.start > 0),
        groups=tuple(g.name for g in groups.groups),
        # A random id, for which no right can have been granted by name.
        transactional_ids=(f"{TRANSACTIONAL_PREFIX}{token}",) if preserve and plan.logs else (),
        acls="acls" in plan.parts,
        quotas="quotas" in plan.parts,
    )


def _credentials(view: KafkaBackupView, plan: RestorePlan) -> list[Finding]:
    stored = any(a.role == SCRAM_ROLE for a in view.manifest.attachments)
    return scram_finding(archived=stored and "acls" in plan.parts)


def _left_out(chosen: SelectedLogs, groups: GroupsPlan) -> list[Finding]:
    internal = [
        Finding(
            code="internal-topic",
            severity=Severity.NOTE,
            where=name,
            what="it is never written to; groups are restored through their coordinators",
        )
        for name in chosen.internal
    ]
    without = [
        Finding(
            code="groups-untouched",
            severity=Severity.NOTE,
            where=join_names([f"group {name}" for name in groups.untouched]),
            what="they have no offset in anything that is restored, and are left unchanged",
        )
    ]
    return [*internal, *(without if groups.untouched else [])]
