"""Findings of a backup about the cluster: what makes the backup incomplete or less consistent. Pure."""

from collections.abc import Iterable, Sequence

from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.client.topology import TopicPartition, is_internal
from logkeep.kafka.record.documents import OpenTransaction
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import LogName


def cluster_findings(facts: Facts) -> list[Finding]:
    """Everything that makes the backup less consistent or less complete."""
    cluster = facts.metadata.cluster_id
    return [
        *no_topics(facts),
        *map(_unstable_group, facts.log_ends.unstable_groups),
        *map(_unstable_producer, facts.log_ends.unstable_producers),
        *map(_undecided, facts.log_ends.undecided),
        *(Finding(code="not-asked", severity=Severity.WARNING, where=cluster, what=note) for note in facts.notes),
        *facts.findings,
    ]


def no_topics(facts: Facts) -> list[Finding]:
    if facts.topics:
        return []
    what = "no topic was found: the cluster is empty, or not the one you mean, or this user may not see its topics"
    return [Finding(code="no-topics", severity=Severity.WARNING, where=facts.metadata.cluster_id, what=what)]


def _unstable_group(name: str) -> Finding:
    return Finding(
        code="group-restless",
        severity=Severity.WARNING,
        where=f"group {name}",
        what="it committed faster than it could be read: its offset may be older than the output that is archived",
    )


def _unstable_producer(producer: int) -> Finding:
    return Finding(
        code="transaction-torn",
        severity=Severity.WARNING,
        where=f"producer {producer}",
        what="it committed faster than the ends of its logs could be read: one of its transactions may be below the "
        "cut in one partition and above it in another",
        remedy="take another backup when it is less busy; the next run archives the rest of that transaction",
    )


def _undecided(found: OpenTransaction) -> Finding:
    return Finding(
        code="transaction-undecided",
        severity=Severity.WARNING,
        where=f"{found.topic}/{found.partition} from offset {found.first_offset}",
        what=f"a transaction of producer {found.producer_id} has no marker, and no coordinator reports it as ongoing; "
        "it is recorded as open, which a restore treats as aborted",
        remedy="check with kafka-transactions.sh find-hanging whether it hangs, or allow this user to describe "
        "transactional ids",
    )


def undecided_past(log: LogName) -> Finding:
    return Finding(
        code="past-undecided",
        severity=Severity.WARNING,
        where=str(log),
        what="compaction removed the records that would show whether the log still has the past that is archived of "
        "it, or retention did while its leader changed, or the last archived batch cannot be read; leader epochs fit, "
        "and the log is continued",
        remedy="nothing, unless a broker's disk was replaced by an earlier copy or the cluster was cloned since the "
        "last backup: then back it up under another --source name",
    )


def damage_findings(objects: Sequence[str]) -> list[Finding]:
    """A new backup includes what earlier ones archived, and so their damage."""
    if not objects:
        return []
    more = f" and {len(objects) - 1} more" if len(objects) > 1 else ""
    return [
        Finding(
            code="rests-on-damage",
            severity=Severity.WARNING,
            where=objects[0],
            what=f"this backup needs it{more}, and it is known to be damaged: `list` shows the backup as damaged",
            remedy="restore the object from a copy, or back up everything again under another --source name while the "
            "cluster still has it",
        )
    ]


def gone_topics(reached: Iterable[TopicPartition], facts: Facts) -> list[Finding]:
    """Topics of the last backup that this one does not have."""
    there, chosen = {t.name for t in facts.metadata.topics}, {t.name for t in facts.topics}
    before = {log.topic for log in reached}
    own = {name for name in before - chosen if is_internal(name, False)}
    return (
        [
            Finding(
                code="topic-gone",
                severity=Severity.WARNING,
                where=name,
                what="it was in the last backup and is not found now: deleted, or hidden from this user; if it comes "
                "back it is copied from its beginning, and what retention removed in between is not known",
            )
            for name in sorted(before - there - own)
        ]
        + [
            Finding(
                code="topic-left-out",
                severity=Severity.WARNING,
                where=name,
                what="it was in the last backup and is not selected now; a backup that selects it again copies it from "
                "its beginning, and does not know what retention removed in between",
                remedy="use one --source name for each selection of topics",
            )
            for name in sorted((before & there) - chosen - own)
        ]
        + [
            Finding(
                code="topic-left-out",
                severity=Severity.NOTE,
                where=name,
                what="it was in the last backup, and is Kafka's own: it is archived only with --internal, and never "
                "restored; earlier backups keep what they have of it",
            )
            for name in sorted(own)
        ]
    )
