"""Before a restore: what the archive holds, what the target is, what would be done, and whether this user may.

Reads and asks, changes nothing. What a dry run shows is exactly what a run would begin with.
"""

from dataclasses import dataclass, field, replace

import msgspec

from logkeep.errors import LogkeepError, TargetUnsafe
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import GroupRecord
from logkeep.kafka.record.scram import ROLE as SCRAM_ROLE
from logkeep.kafka.restore.facts.backup_view import KafkaBackupView
from logkeep.kafka.restore.facts.permissions import RightsWanted, denied, find_rights, principal_of, rights_findings
from logkeep.kafka.restore.facts.survey_task import LogSurvey, SurveyLog, SurveyResult, survey, survey_units
from logkeep.kafka.restore.facts.target import TargetFacts, gather_target
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.groups import standing_of
from logkeep.kafka.restore.plan.group_offsets import Kept, Moved, Routes
from logkeep.kafka.restore.plan.groups import GroupsPlan, inexact_findings, plan_groups, rows_foreseen, rows_of
from logkeep.kafka.restore.plan.plan import CheckedPlan, RestorePlan, Wishes, gap_findings, plan_restore
from logkeep.kafka.restore.plan.refusals import named
from logkeep.kafka.restore.plan.selection import RestoreSelection, SelectedLogs, choose
from logkeep.kafka.restore.plan.topics import difference_findings
from logkeep.kafka.restore.security import scram_finding
from logkeep.kafka.restore.topics import tried
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine, EngineFor
from logkeep.repository.restores import RestoredGroup

TRANSACTIONAL_PREFIX = "logkeep-restore-"
"""All transactional ids of restores begin like this: one rule of an authorizer allows them."""
_MARK_DIGITS = 8
_INDEX_BYTES = 64 << 10
"""About what is read of a segment to survey it."""


@dataclass(frozen=True)
class KafkaRestoreOptions:
    """All that the user asked for."""

    choice: RestoreSelection = field(default_factory=RestoreSelection)
    wishes: Wishes = field(default_factory=Wishes)
    limit_produce: int | None = None
    """Bytes per second over all tasks."""


@dataclass(frozen=True)
class PreparedKafkaRestore:
    """What a run would begin with."""

    view: KafkaBackupView
    target: TargetFacts
    foreseen: CheckedPlan
    groups: GroupsPlan
    """Where offsets change, positions are those of the source still: which groups, not where. `group_rows` knows."""
    findings: tuple[Finding, ...]

    @property
    def plan(self) -> RestorePlan:
        return self.foreseen.plan

    @property
    def group_rows(self) -> tuple[RestoredGroup, ...]:
        return group_rows(self.groups, self.plan)

    @property
    def refusals(self) -> tuple[LogkeepError, ...]:
        return self.foreseen.refusals


@dataclass(frozen=True)
class Chance:
    """Time and randomness, handed in."""

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
    wish: KafkaRestoreOptions,
    settings: ClientSettings,
    engine_for: EngineFor,
    chance: Chance,
    *,
    presence: bool = True,
) -> PreparedKafkaRestore:
    """Raises what makes a plan impossible; what only forbids to carry it out is among the refusals.

    Without `presence` an object that is lost makes no difference to the plan: the tasks will find out.
    """
    chosen = choose(view.record, view.manifest.cut, wish.choice)
    wishes = wish.wishes
    surveys, engine = survey_logs(
        view, chosen, wishes.until_ms, engine_for, by_record=wishes.by_record, presence=presence
    )
    with Cluster(settings) as cluster:
        target = gather_target(cluster, [name for _, name in chosen.topics], view.record.cluster_id)
        tasks = engine.at_once(max(len(chosen.logs), 1))
        foreseen = plan_restore(view.record, chosen, surveys, target, wishes, tasks, chance.mark, chance.now_ms)
        groups, live = _groups(cluster, view, foreseen.plan)
        foreseen = replace(foreseen, refusals=(*foreseen.refusals, *live))
        findings = [*foreseen.findings, *_left_out(chosen, groups), *_credentials(view, foreseen.plan)]
        findings += inexact_findings(group_rows(groups, foreseen.plan))
        if not foreseen.refusals:
            known = set(difference_findings(foreseen.plan.topics))
            foreseen, more = _asked(cluster, foreseen, groups, settings, chance.tokens())
            new = [f for f in difference_findings(foreseen.plan.topics) if f not in known]
            findings += [*new, *more]
    ranges = {log.log: Range(log.start, log.end) for log in foreseen.plan.logs}
    return PreparedKafkaRestore(view, target, foreseen, groups, (*findings, *gap_findings(view.gaps(ranges))))


def survey_logs(
    view: KafkaBackupView,
    chosen: SelectedLogs,
    until_ms: int | None,
    engine_for: EngineFor,
    *,
    by_record: bool = False,
    presence: bool = True,
) -> tuple[dict[LogName, LogSurvey], Engine]:
    """What each chosen log holds, and the engine that looked."""
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
    # Indexes are read, not logs: bytes would promise a speed that no restore has.
    found = engine.map(survey, units, SurveyResult, label="survey", weight=lambda _: 0)
    return {each.log: each for result in found for each in result.logs}, engine


def _groups(cluster: Cluster, view: KafkaBackupView, plan: RestorePlan) -> tuple[GroupsPlan, tuple[TargetUnsafe, ...]]:
    """Groups that come back; and why they must not, when some of them are being read by."""
    if "groups" not in plan.parts:
        return GroupsPlan(()), ()
    standing = standing_of(cluster, [g.name for g in view.record.groups])
    try:
        return plan_groups(restorable(view.record.groups), kept_routes(plan), plan.groups, standing), ()
    except TargetUnsafe as refused:
        return GroupsPlan(()), (refused,)


def restorable(groups: tuple[GroupRecord, ...]) -> list[GroupRecord]:
    """Groups of the streams protocol keep more than positions: they come back as positions all the same."""
    return [msgspec.structs.replace(g, kind="classic") if g.kind == "streams" else g for g in groups]


def group_rows(groups: GroupsPlan, plan: RestorePlan) -> tuple[RestoredGroup, ...]:
    """What can be said of groups beforehand."""
    if plan.offsets is Offsets.PRESERVE:
        return rows_of(groups)
    return rows_foreseen(groups, {log.topic for log in plan.logs if log.spread_over})


def kept_routes(plan: RestorePlan) -> Routes:
    """Where source partitions go, at their own offsets."""
    routes: dict[TopicPartition, list[Moved | Kept]] = {}
    for log in plan.logs:
        source = TopicPartition(log.log.name, log.log.partition)
        routes.setdefault(source, []).append(Kept(log.target, log.start, log.end))
    return routes


def _asked(
    cluster: Cluster, foreseen: CheckedPlan, groups: GroupsPlan, settings: ClientSettings, token: str
) -> tuple[CheckedPlan, list[Finding]]:
    """Let the target say what it would refuse: topics and configs, and what this user may not."""
    topics, refused = tried(cluster, foreseen.plan.topics)
    plan = msgspec.structs.replace(foreseen.plan, topics=tuple(topics))
    rights = find_rights(cluster, _rights(plan, groups, token))
    principal = principal_of(settings)
    missing = denied(rights, principal)
    refusals = (*refused, *([missing] if missing else []))
    return replace(foreseen, plan=plan, refusals=refusals), rights_findings(rights, principal)


def _rights(plan: RestorePlan, groups: GroupsPlan, token: str) -> RightsWanted:
    preserve = plan.offsets is Offsets.PRESERVE
    return RightsWanted(
        new_topics=tuple(t.name for t in plan.topics if not t.existing),
        existing_topics=tuple(t.name for t in plan.topics if t.existing),
        shortened=frozenset(log.topic for log in plan.logs if preserve and log.start > 0),
        groups=tuple(g.name for g in groups.groups),
        # One that nobody can have been granted by its name.
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
            what="it is never written to; what it says of groups comes back through their coordinators",
        )
        for name in chosen.internal
    ]
    without = [
        Finding(
            code="groups-untouched",
            severity=Severity.NOTE,
            where=named([f"group {name}" for name in groups.untouched]),
            what="no position in anything that comes back: they are left alone",
        )
    ]
    return [*internal, *(without if groups.untouched else [])]
