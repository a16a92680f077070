"""Builds the cluster record of a backup: topics, groups, ACLs, quotas, and one row for each log. Pure."""

from collections.abc import Mapping

from logkeep.kafka.backup.assemble import Assembled
from logkeep.kafka.backup.cut import clamp_commits
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.log_ends import GroupFacts
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.leader_epochs import EpochRun
from logkeep.kafka.logs.log_traits import LogTraits, all_joined
from logkeep.kafka.record.deletion_times import DeletionTimes
from logkeep.kafka.record.documents import (
    AclRecord,
    ArchivedReach,
    CommitRecord,
    GroupRecord,
    PartitionRecord,
    QuotaRecord,
    TopicRecord,
)
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import LogName


def topics_of(facts: Facts) -> tuple[TopicRecord, ...]:
    return tuple(
        TopicRecord(
            name=t.name,
            id=t.id.hex,
            internal=t.internal,
            partitions=len(t.partitions),
            replication_factor=max((len(p.replicas) for p in t.partitions), default=0),
            configs=dict(facts.configs[t.name].own),
            inherited=dict(facts.configs[t.name].inherited),
        )
        for t in facts.topics
    )


def groups_of(facts: Facts) -> tuple[tuple[GroupRecord, ...], list[Finding]]:
    """Groups with their offsets in the topics of the backup, none above the cut; and findings about lowered ones."""
    records, findings = [], list[Finding]()
    for group in facts.groups:
        record, changed = _group(group, facts)
        records.append(record)
        findings += changed
    return tuple(records), findings


def _group(facts_of_group: GroupFacts, facts: Facts) -> tuple[GroupRecord, list[Finding]]:
    group, commits = facts_of_group.group, facts_of_group.commits
    offsets: Mapping[TopicPartition, int] = {log: c.offset for log, c in commits.items()}
    kept, clamped = clamp_commits(group.name, offsets, facts.bounds)
    record = GroupRecord(
        name=group.name,
        kind=group.kind,
        state=group.state,
        protocol_type=group.protocol_type,
        commits=tuple(
            CommitRecord(log.topic, log.partition, kept[log], c.offset, c.leader_epoch, c.metadata)
            for log, c in sorted(commits.items())
        ),
    )
    return record, [
        Finding(
            code="commit-clamped",
            severity=Severity.NOTE,
            where=f"group {c.group}, {c.log}",
            what=f"its offset {c.committed} is beyond the cut and is recorded as {c.recorded}",
        )
        for c in clamped
    ]


def acls_of(facts: Facts) -> tuple[AclRecord, ...] | None:
    if facts.acls is None:
        return None
    return tuple(
        AclRecord(a.resource_type, a.resource_name, a.pattern, a.principal, a.host, a.operation, a.permission)
        for a in facts.acls
    )


def quotas_of(facts: Facts) -> tuple[QuotaRecord, ...]:
    return tuple(QuotaRecord(q.entity, q.limits) for q in facts.quotas)


def logs_of(
    before: Mapping[TopicPartition, ArchivedReach],
    facts: Facts,
    assembled: Assembled,
    deletions: Mapping[LogName, DeletionTimes | None],
    folded_to: Mapping[LogName, int] | None = None,
) -> tuple[PartitionRecord, ...]:
    """One record for each log; a log without new batches keeps the values of the last backup."""
    open_since = {t.log: t.first_offset for t in reversed(facts.open_transactions)}
    records = []
    for cut in assembled.cut:
        log = TopicPartition(cut.log.name, cut.log.partition)
        known = before.get(log)
        same = known is not None and known.history == cut.log.history
        old = known if known is not None and same else ArchivedReach(cut.log.history, -1, -1, traits=LogTraits())
        tip = assembled.tips.get(cut.log, EpochRun(old.last_epoch, -1, old.last_end))
        records.append(
            PartitionRecord(
                topic=log.topic,
                partition=log.partition,
                history=cut.log.history,
                start=cut.start,
                end=cut.end,
                last_stable=open_since.get(log, cut.end),
                last_epoch=tip.epoch,
                last_end=tip.end,
                traits=all_joined((old.traits, assembled.traits.get(cut.log, LogTraits()))),
                last_batch=assembled.last_batches.get(cut.log, old.last_batch),
                deletions=deletions.get(cut.log),
                folded_to=min((folded_to or {}).get(cut.log, 0), cut.end),
            )
        )
    return tuple(records)
