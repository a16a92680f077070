"""After the records: final configs, groups, rules and limits; then the receipt that says all of it.

Nothing of this is done when a partition did not come back or a proof failed: a topic that keeps its temporary configs
loses nothing, and a group that was not moved can still be moved.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.formats.run_map_bytes import Route, bundle, decode
from logkeep.kafka.admin.security import list_acls, list_quotas
from logkeep.kafka.cluster import Cluster
from logkeep.kafka.restore.acls import apply_acls, plan_acls
from logkeep.kafka.restore.backup_view import BackupView
from logkeep.kafka.restore.groups import GroupsPlan, plan_groups, rows_of
from logkeep.kafka.restore.offsets import Kept, Moved, Routes
from logkeep.kafka.restore.plan import RestorePlan
from logkeep.kafka.restore.preparing import restorable
from logkeep.kafka.restore.quotas import apply_quotas, plan_quotas
from logkeep.kafka.restore.set_groups import set_groups, standing_of
from logkeep.kafka.restore.topics import finish_topics
from logkeep.kafka.restore.units import LogResult, Offsets, Outcome
from logkeep.kafka.restore.writing_logs import Written
from logkeep.kafka.settings import ClientSettings
from logkeep.kafka.values import TopicPartition
from logkeep.model.findings import Finding, Severity
from logkeep.repository.restores import RestoredGroup, RestoredPartition


@dataclass(frozen=True)
class Finished:
    """What came after the records."""

    groups: tuple[RestoredGroup, ...] = ()
    findings: tuple[Finding, ...] = ()


def whole(results: Sequence[LogResult], *, prove: bool) -> bool:
    """Whether every log came back and, if that was asked for, was proven."""
    return all(r.outcome is Outcome.DONE and (not prove or (r.proof is not None and r.proof.good)) for r in results)


Remember = Callable[[tuple[RestoredGroup, ...]], tuple[RestoredGroup, ...]]
"""Stores where groups stand before they are moved, and gives the rows that tell where they stood first."""


def finish(
    view: BackupView, plan: RestorePlan, written: Written, settings: ClientSettings, remember: Remember
) -> Finished:
    """Carry out the rest of the plan. May be repeated: each step leads to the same end."""
    with Cluster(settings) as cluster:
        findings = finish_topics(cluster, plan.topics, written.topic_ids)
        groups: tuple[RestoredGroup, ...] = ()
        if "groups" in plan.parts:
            planned = plan_restored_groups(cluster, view, plan, written.results)
            groups = remember(rows_of(planned))
            set_groups(cluster, planned)
        if "acls" in plan.parts:
            there = list_acls(cluster)
            acls = plan_acls(view.record.acls, there, plan.names, only_topics=plan.names.keys())
            findings += [*acls.findings, *apply_acls(cluster, acls)]
        if "quotas" in plan.parts:
            quotas = plan_quotas(view.record.quotas, list_quotas(cluster))
            findings += [*quotas.findings, *apply_quotas(cluster, quotas)]
    return Finished(groups, (*findings, *_read_again(groups)))


def plan_restored_groups(
    cluster: Cluster, view: BackupView, plan: RestorePlan, results: Sequence[LogResult]
) -> GroupsPlan:
    """Where groups go on, now that it is known where every record stands."""
    standing = standing_of(cluster, [g.name for g in view.record.groups])
    return plan_groups(restorable(view.record.groups), routes_of(plan, results), plan.groups, standing)


def routes_of(plan: RestorePlan, results: Sequence[LogResult]) -> Routes:
    """Where the records of each source partition are now."""
    return {
        TopicPartition(log.log.name, log.log.partition): [_route(plan.offsets, log.start, log.end, result)]
        for log, result in zip(plan.logs, results, strict=True)
    }


def _route(offsets: Offsets, start: int, end: int, result: LogResult) -> Moved | Kept:
    target = TopicPartition(result.topic, result.partition)
    return Kept(target, start, end) if offsets is Offsets.PRESERVE else Moved(target, decode(result.runs))


def map_of(results: Sequence[LogResult]) -> bytes:
    """The maps of all partitions as one object."""
    return bundle({Route(r.log.name, r.log.partition, r.topic, r.partition): r.runs for r in results if r.runs})


def partition_rows(plan: RestorePlan, results: Sequence[LogResult]) -> tuple[RestoredPartition, ...]:
    """As a receipt keeps them."""
    return tuple(
        RestoredPartition(
            source_topic=r.log.name,
            source_partition=r.log.partition,
            topic=r.topic,
            partition=r.partition,
            mode=plan.offsets,
            records=r.records,
            bytes=r.proof.bytes if r.proof else r.sent_bytes,
            end=r.end,
            archive_digest=r.proof.archive_digest if r.proof else "",
            target_digest=r.proof.target_digest if r.proof else "",
            outcome="proof-failed" if r.proof and not r.proof.good else r.outcome,
            detail=r.detail or (r.proof.detail if r.proof else ""),
        )
        for r in results
    )


def result_findings(results: Sequence[LogResult]) -> list[Finding]:
    """What went wrong, partition by partition."""
    return [f for r in results for f in _troubles(r)]


_REMEDIES = {
    Outcome.FOREIGN: "stop whoever writes there; then `kafka restore abort` and restore again",
    Outcome.MISPLACED: "delete the topic and restore it again",
    Outcome.FORGOTTEN: "`kafka restore abort` this one and begin a new restore: the broker cannot tell what it had",
    Outcome.REFUSED: "the broker's words say why; mend it and go on with --resume",
    Outcome.DENIED: "grant the permission and go on with --resume",
    Outcome.DAMAGED: "`logkeep verify` shows what is damaged; restore an earlier backup, or leave this topic out",
    Outcome.GONE: "somebody deleted the topic; begin a new restore",
}


def _troubles(result: LogResult) -> list[Finding]:
    where = f"{result.topic}/{result.partition}"
    if result.outcome is not Outcome.DONE:
        return [
            Finding(
                code=str(result.outcome),
                severity=Severity.DAMAGE,
                where=where,
                what=result.detail or str(result.outcome),
                remedy=_REMEDIES[result.outcome],
            )
        ]
    if result.proof is None or result.proof.good:
        return []
    at = f" at offset {result.proof.first_difference}" if result.proof.first_difference >= 0 else ""
    return [
        Finding(
            code="proof-failed",
            severity=Severity.DAMAGE,
            where=where,
            what=f"what is there is not what is archived{at}: {result.proof.detail or 'digests differ'}",
            remedy="find out who else writes to the topic; `kafka restore abort`, then restore again",
        )
    ]


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
