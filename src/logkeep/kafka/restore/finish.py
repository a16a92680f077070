"""After the records: groups looked at, final configs, groups set, rules and limits.

Nothing of this is done when a partition did not come back or a proof failed: a topic that keeps its temporary configs
loses nothing, and a group that was not moved can still be moved. All of it may be repeated: each step leads to the
same end. It rests on the receipt that says that the records are there, not on what the tasks said in this very run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from logkeep.formats.run_map.runs import RunMap
from logkeep.formats.run_map.stored import Route
from logkeep.kafka.admin.security import list_acls, list_quotas
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.backup_view import KafkaBackupView
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.groups import set_groups, standing_of
from logkeep.kafka.restore.plan.group_offsets import Kept, Moved, Routes
from logkeep.kafka.restore.plan.groups import GroupsPlan, inexact_findings, plan_groups, rows_of
from logkeep.kafka.restore.plan.plan import PlannedLog, RestorePlan
from logkeep.kafka.restore.prepare import restorable
from logkeep.kafka.restore.security import apply_acls, apply_quotas, plan_acls, plan_quotas
from logkeep.kafka.restore.topics import finish_topics
from logkeep.model.findings import Finding, Severity
from logkeep.repository.restores import RestoredGroup

Remember = Callable[[tuple[RestoredGroup, ...]], tuple[RestoredGroup, ...]]
"""Stores where groups stand before they are moved, and gives the rows that tell where they stood first."""


@dataclass(frozen=True)
class There:
    """Records that are in the target: under which topics, and which of them stands where."""

    topic_ids: dict[str, str]
    maps: dict[Route, RunMap] = field(default_factory=dict)


@dataclass(frozen=True)
class Finished:
    """What came after the records."""

    groups: tuple[RestoredGroup, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def damaged(self) -> bool:
        return any(f.severity is Severity.DAMAGE for f in self.findings)


def finish(
    view: KafkaBackupView, plan: RestorePlan, there: There, settings: ClientSettings, remember: Remember
) -> Finished:
    """Carry out the rest of the plan. Raises TargetUnsafe for groups that are being read by, before any change."""
    with Cluster(settings) as cluster:
        planned = _groups(cluster, view, plan, there)
        findings = list(finish_topics(cluster, plan.topics, there.topic_ids))
        if any(f.severity is Severity.DAMAGE for f in findings):
            return Finished((), tuple(findings))
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
    return Finished(groups, (*findings, *inexact_findings(groups), *_read_again(groups)))


def _groups(cluster: Cluster, view: KafkaBackupView, plan: RestorePlan, there: There) -> GroupsPlan | None:
    """Where groups go on, now that it is known where every record stands."""
    if "groups" not in plan.parts:
        return None
    standing = standing_of(cluster, [g.name for g in view.record.groups])
    return plan_groups(restorable(view.record.groups), routes_of(plan, there), plan.groups, standing)


def routes_of(plan: RestorePlan, there: There) -> Routes:
    """Where the records of each source partition are now."""
    routes: dict[TopicPartition, list[Moved | Kept]] = {}
    for log in plan.logs:
        routes.setdefault(TopicPartition(log.log.name, log.log.partition), []).append(_route(plan, log, there))
    return routes


def _route(plan: RestorePlan, log: PlannedLog, there: There) -> Moved | Kept:
    target = TopicPartition(log.topic, log.partition)
    if plan.offsets is Offsets.PRESERVE:
        return Kept(target, log.start, log.end)
    return Moved(target, there.maps[Route(log.log.name, log.log.partition, log.topic, log.partition)])


def as_first_found(
    rows: Sequence[RestoredGroup], earlier: Sequence[Sequence[RestoredGroup]]
) -> tuple[RestoredGroup, ...]:
    """The rows with what stood there before the first attempt: a later one finds what the first has set."""
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
            what=f"{count:,} records will be read again",
        )
        for name, count in sorted(found.items())
        if count
    ]
