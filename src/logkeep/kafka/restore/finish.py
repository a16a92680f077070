"""The steps after the records: final configs of topics, group offsets, ACLs and quotas.

They are skipped when a partition was not restored or a proof failed: a topic with temporary configs loses nothing, and
groups can be set later. All steps may be repeated with the same result. They rely on the receipt that says that all
records are restored, not on task results of this run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from logkeep.formats.run_map.file_format import Route
from logkeep.formats.run_map.runs import RunMap
from logkeep.kafka.admin.security import list_acls, list_quotas
from logkeep.kafka.client.cluster import Cluster, long_retry_cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.groups import read_groups, set_groups
from logkeep.kafka.restore.plan.group_offsets import MappedLog, RestoredLog, Routes, UnchangedLog
from logkeep.kafka.restore.plan.groups import GroupsPlan, inexact_findings, plan_groups, rows_of
from logkeep.kafka.restore.plan.values import PlannedLog, RestorePlan
from logkeep.kafka.restore.prepare import restorable_groups
from logkeep.kafka.restore.security import apply_acls, apply_quotas, plan_acls, plan_quotas
from logkeep.kafka.restore.topics import finish_topics
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.repository.restores import RestoredGroup

Remember = Callable[[tuple[RestoredGroup, ...]], tuple[RestoredGroup, ...]]
"""Stores the rows before groups are changed; returns them with the offsets before the first attempt."""


@dataclass(frozen=True)
class RestoredRecords:
    """Restored records: the topic ids, and maps from source to target offsets."""

    topic_ids: dict[str, str]
    maps: dict[Route, RunMap] = field(default_factory=dict)


@dataclass(frozen=True)
class FinishResult:
    """The result of the steps after the records."""

    groups: tuple[RestoredGroup, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def damaged(self) -> bool:
        return any(f.severity is Severity.DAMAGE for f in self.findings)


def finish(
    view: KafkaBackupView, plan: RestorePlan, there: RestoredRecords, settings: ClientSettings, remember: Remember
) -> FinishResult:
    """Carry out the rest of the plan. Raises TargetUnsafe for groups with active members, before any change."""
    with long_retry_cluster(settings) as cluster:
        planned = _plan_groups(cluster, view, plan, there)
        findings = list(finish_topics(cluster, plan.topics, there.topic_ids))
        if any(f.severity is Severity.DAMAGE for f in findings):
            return FinishResult((), tuple(findings))
        groups: tuple[RestoredGroup, ...] = ()
        if planned is not None:
            groups = remember(rows_of(planned))
            set_groups(cluster, planned)
        if "acls" in plan.parts:
            acls = plan_acls(view.record.acls, list_acls(cluster), plan.names, only_topics=plan.names.keys())
            findings += [*acls.findings, *apply_acls(cluster, acls)]
        if "quotas" in plan.parts:
            quotas = plan_quotas(view.record.quotas, list_quotas(cluster))
            findings += [*quotas.findings, *apply_quotas(cluster, quotas)]
    return FinishResult(groups, (*findings, *inexact_findings(groups), *_read_again(groups)))


def _plan_groups(
    cluster: Cluster, view: KafkaBackupView, plan: RestorePlan, there: RestoredRecords
) -> GroupsPlan | None:
    """The offsets of groups, now that the target offsets of all records are known."""
    if "groups" not in plan.parts:
        return None
    current = read_groups(cluster, [g.name for g in view.record.groups])
    return plan_groups(restorable_groups(view.record.groups), routes_of(plan, there), plan.groups, current)


def routes_of(plan: RestorePlan, there: RestoredRecords) -> Routes:
    """Where the records of each source partition are in the target."""
    routes: dict[TopicPartition, list[RestoredLog]] = {}
    for log in plan.logs:
        routes.setdefault(TopicPartition(log.log.name, log.log.partition), []).append(_route(plan, log, there))
    return routes


def _route(plan: RestorePlan, log: PlannedLog, there: RestoredRecords) -> RestoredLog:
    if plan.offsets is Offsets.PRESERVE:
        return UnchangedLog(log.target, log.start, log.end)
    return MappedLog(log.target, there.maps[Route(log.log.name, log.log.partition, log.topic, log.partition)])


def with_first_offsets(
    rows: Sequence[RestoredGroup], earlier: Sequence[Sequence[RestoredGroup]]
) -> tuple[RestoredGroup, ...]:
    """The rows with the offsets before the first attempt; a later attempt reads what the first has set."""
    first: dict[tuple[str, str, int], RestoredGroup] = {}
    for some in earlier:
        for row in some:
            first.setdefault((row.group, row.topic, row.partition), row)
    known = [(row, first.get((row.group, row.topic, row.partition), row)) for row in rows]
    return tuple(
        msgspec.structs.replace(row, previous_offset=before.previous_offset, previous_metadata=before.previous_metadata)
        for row, before in known
    )


def _read_again(groups: Sequence[RestoredGroup]) -> list[Finding]:
    found: dict[str, int] = {}
    for row in groups:
        found[row.group] = found.get(row.group, 0) + row.reread
    return [
        Finding(
            code="group-rereads",
            severity=Severity.NOTE,
            where=f"group {name}",
            what=f"{plural(count, 'record')} will be read again",
        )
        for name, count in sorted(found.items())
        if count
    ]
