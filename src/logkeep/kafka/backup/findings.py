"""What the look at a cluster found that its user should know. Pure."""

from collections.abc import Iterable, Sequence

from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import OpenTransaction
from logkeep.model.findings import Finding, Severity


def notices(facts: Facts) -> list[Finding]:
    """Everything that keeps the backup from being as sound or as complete as it might be."""
    cluster = facts.metadata.cluster_id
    return [
        *_nothing_seen(facts),
        *map(_restless_group, facts.look.restless_groups),
        *map(_restless_producer, facts.look.restless_producers),
        *map(_undecided, facts.look.undecided),
        *(Finding(code="not-asked", severity=Severity.WARNING, where=cluster, what=note) for note in facts.notes),
        *facts.findings,
    ]


def _nothing_seen(facts: Facts) -> list[Finding]:
    if facts.topics:
        return []
    what = "no topic was seen: the cluster is empty, another one than you mean, or hides its topics from this user"
    return [Finding(code="no-topics", severity=Severity.WARNING, where=facts.metadata.cluster_id, what=what)]


def _restless_group(name: str) -> Finding:
    return Finding(
        code="group-restless",
        severity=Severity.WARNING,
        where=f"group {name}",
        what="it committed faster than it could be read: its position may lie before the output that is archived",
    )


def _restless_producer(producer: int) -> Finding:
    return Finding(
        code="transaction-torn",
        severity=Severity.WARNING,
        where=f"producer {producer}",
        what="it committed faster than the ends of its logs could be read: one of its transactions may be below the "
        "cut in one partition and behind it in another",
        remedy="take another backup when it is less busy; the next run archives the rest of that transaction",
    )


def _undecided(found: OpenTransaction) -> Finding:
    return Finding(
        code="transaction-undecided",
        severity=Severity.WARNING,
        where=f"{found.topic}/{found.partition} from offset {found.first_offset}",
        what=f"a transaction of producer {found.producer_id} has no marker, and no coordinator calls it ongoing; "
        "it is recorded as open, which a restore counts as aborted",
        remedy="see whether it hangs with kafka-transactions.sh find-hanging, or let this user describe "
        "transactional ids",
    )


def on_damage(objects: Sequence[str]) -> list[Finding]:
    """A new backup takes over what earlier ones archived, damage included."""
    if not objects:
        return []
    more = f" and {len(objects) - 1} more" if len(objects) > 1 else ""
    return [
        Finding(
            code="rests-on-damage",
            severity=Severity.WARNING,
            where=objects[0],
            what=f"this backup needs it{more}, and it is known to be damaged: `list` shows the backup as damaged",
            remedy="bring the object back, or copy all of it anew under another --source name while the cluster has it",
        )
    ]


def gone_topics(reached: Iterable[TopicPartition], facts: Facts) -> list[Finding]:
    """Topics of the last backup that this one does not have."""
    there, chosen = {t.name for t in facts.metadata.topics}, {t.name for t in facts.topics}
    before = {log.topic for log in reached}
    return [
        Finding(
            code="topic-gone",
            severity=Severity.WARNING,
            where=name,
            what="it was in the last backup, and is not seen any more: deleted, or hidden from this user; should it "
            "come back it is copied from its beginning, and what retention removed in between is not known",
        )
        for name in sorted(before - there)
    ] + [
        Finding(
            code="topic-left-out",
            severity=Severity.WARNING,
            where=name,
            what="it was in the last backup and is not chosen now; a backup that chooses it again copies it from its "
            "beginning, and does not know what retention removed in between",
            remedy="keep sources with different choices of topics apart, with a --source name for each",
        )
        for name in sorted((before & there) - chosen)
    ]
