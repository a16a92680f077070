"""Converts what was found on the disks to the facts of a running cluster, so that both backups write the same record.

Logs of the last backup that are on none of these disks are carried over as archived. Pure.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import msgspec

from logkeep.kafka.admin.groups import CommittedOffset, Group
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.admin.security import AclBinding, Quota, acl_of
from logkeep.kafka.admin.topics import TopicConfigs
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.log_ends import GroupFacts, LogEnds
from logkeep.kafka.backup.record_builder import topics_of
from logkeep.kafka.client.topology import ClusterMetadata, Partition, Topic, TopicPartition, is_internal
from logkeep.kafka.disks.metadata_image import ClusterImage
from logkeep.kafka.record.documents import ClusterRecord, GroupRecord, OpenTransaction, PartitionRecord, TopicRecord
from logkeep.kafka.record.history_names import topic_id_of
from logkeep.kafka.salvage.decide import LogDecision
from logkeep.kafka.salvage.groups_task import FoundGroup


@dataclass(frozen=True)
class CarriedOver:
    """The parts of the last backup that are not on these disks and stay in the new one."""

    logs: tuple[PartitionRecord, ...] = ()
    topics: tuple[TopicRecord, ...] = ()
    groups: tuple[GroupRecord, ...] = ()


def carried_over(
    last: ClusterRecord | None, here: Iterable[Topic], image: ClusterImage | None, *, groups_known: bool
) -> CarriedOver:
    """Logs of topics that still exist with the same id, as far as the disks show."""
    if last is None:
        return CarriedOver()
    ids = {t.name: t.id.hex for t in here} | {n: i.hex for n, i in (image.topics if image else {}).items()}
    found = {TopicPartition(t.name, p.index) for t in here for p in t.partitions}

    def alive(name: str, topic_id: str) -> bool:
        return ids.get(name, topic_id if image is None else None) == topic_id

    logs = tuple(r for r in last.logs if (r.topic, r.partition) not in found and alive(r.topic, topic_id_of(r.history)))
    names = {r.topic for r in logs}
    return CarriedOver(logs, tuple(t for t in last.topics if t.name in names), () if groups_known else last.groups)


def carried_topics(carried: CarriedOver) -> list[Topic]:
    """The carried logs as topics to select from."""
    partitions: dict[str, list[Partition]] = {}
    for record in carried.logs:
        partitions.setdefault(record.topic, []).append(Partition(record.partition, 0, -1, ()))
    return [
        Topic(t.name, UUID(t.id), is_internal(t.name, t.internal), tuple(partitions[t.name])) for t in carried.topics
    ]


def facts_of(
    cluster_id: str,
    topics: Sequence[Topic],
    decided: Iterable[LogDecision],
    groups: Iterable[FoundGroup],
    image: ClusterImage | None,
    last: ClusterRecord | None,
    carried: CarriedOver,
) -> Facts:
    """The facts of the cluster."""
    here = list(decided)
    bounds = {d.found.log: d.bounds for d in here}
    bounds |= {TopicPartition(r.topic, r.partition): LogBounds(r.start, r.last_stable, r.end, -1) for r in carried.logs}
    old = {TopicPartition(r.topic, r.partition) for r in carried.logs} | {d.found.log for d in here if d.ahead}
    still_open = [t for t in (last.open_transactions if last else ()) if (t.topic, t.partition) in old]
    return Facts(
        metadata=ClusterMetadata(cluster_id, (), tuple(topics)),
        topics=tuple(topics),
        log_ends=LogEnds(
            groups=tuple(_group(g, {t.name for t in topics}) for g in groups),
            bounds=bounds,
            open_transactions=tuple(sorted([*still_open, *_open(here)])),
        ),
        sizes={d.found.log: sum(s.size_bytes for s in d.found.scans) for d in here},
        configs=_configs(topics, image, last),
        acls=_acls(image, last),
        quotas=_quotas(image, last),
        notes=(),
    )


def _open(decided: Iterable[LogDecision]) -> list[OpenTransaction]:
    return [
        OpenTransaction(d.found.log.topic, d.found.log.partition, o.producer_id, o.first_offset)
        for d in decided
        if not d.ahead
        for o in d.found.taken.open_since
        if d.bounds.start <= o.first_offset < d.bounds.high_watermark
    ]


def _group(found: FoundGroup, topics: Collection[str]) -> GroupFacts:
    commits = {
        TopicPartition(p.topic, p.partition): CommittedOffset(p.offset, p.leader_epoch, p.metadata)
        for p in found.positions
        if p.topic in topics
    }
    return GroupFacts(Group(found.name, found.kind, found.state, found.protocol_type), commits)


def _configs(
    topics: Iterable[Topic], image: ClusterImage | None, last: ClusterRecord | None
) -> dict[str, TopicConfigs]:
    """Topic configs from the disks or the last backup; configs of brokers are only in the last backup."""
    before = {t.name: t for t in last.topics} if last is not None else {}
    found = {}
    for topic in topics:
        old = before.get(topic.name)
        own = image.configs.get(topic.name, {}) if image is not None else old.configs if old else {}
        found[topic.name] = TopicConfigs(own, old.inherited if old else {})
    return found


def _acls(image: ClusterImage | None, last: ClusterRecord | None) -> tuple[AclBinding, ...] | None:
    if image is None:
        rules = last.acls if last is not None else None
        return None if rules is None else tuple(AclBinding(*msgspec.structs.astuple(r)) for r in rules)
    return tuple(sorted(acl_of(a) for a in image.acls.values())) or None


def _quotas(image: ClusterImage | None, last: ClusterRecord | None) -> tuple[Quota, ...]:
    if image is None:
        return tuple(Quota(q.entity, q.limits) for q in last.quotas) if last is not None else ()
    found = [Quota(entity, tuple(sorted(limits.items()))) for entity, limits in image.quotas.items() if limits]
    return tuple(sorted(found, key=repr))


def topic_records(facts: Facts, image: ClusterImage | None, carried: CarriedOver) -> tuple[TopicRecord, ...]:
    """Topic records with the topic's number of partitions, not only those that were found."""
    old = {t.name: t for t in carried.topics}
    highest = {t.name: max((p.index for p in t.partitions), default=-1) for t in facts.topics}
    found = []
    for record in topics_of(facts):
        known = image.replicas.get(UUID(record.id), {}) if image is not None else {}
        before = old.get(record.name)
        count = max([highest[record.name] + 1, len(known), before.partitions if before else 0])
        factor = max([record.replication_factor, before.replication_factor if before else 0])
        found.append(msgspec.structs.replace(record, partitions=count, replication_factor=factor))
    return tuple(found)


def merge_topics(topics: Sequence[Topic], carried: Sequence[Topic]) -> list[Topic]:
    """Topics with their found and their carried partitions."""
    found = {t.name: t for t in topics}
    for topic in carried:
        here = found.get(topic.name)
        partitions = sorted([*(here.partitions if here else ()), *topic.partitions], key=lambda p: p.index)
        found[topic.name] = replace(here or topic, partitions=tuple(partitions))
    return [found[name] for name in sorted(found)]
