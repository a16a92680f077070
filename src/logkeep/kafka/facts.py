"""What a backup has to know of a cluster before it decides anything: where its logs end, and all that is not a log."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from logkeep.errors import NotAuthorised, TopicMissing
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.admin.security import Acl, Quota, list_acls, list_quotas
from logkeep.kafka.admin.topics import TopicConfigs, replica_sizes, topic_configs
from logkeep.kafka.cluster import Cluster
from logkeep.kafka.cut import OpenTransaction, Pause
from logkeep.kafka.look import GroupFacts, Look, steady_look
from logkeep.kafka.selection import choose_topics
from logkeep.kafka.values import ClusterMetadata, Topic, TopicPartition

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class Facts:
    """One cluster at one moment."""

    metadata: ClusterMetadata
    topics: tuple[Topic, ...]
    """Those that were chosen."""
    look: Look
    """Positions and ends of the chosen partitions."""
    sizes: Mapping[TopicPartition, int]
    configs: Mapping[str, TopicConfigs]
    acls: tuple[Acl, ...] | None
    """None when the cluster has no authorizer, or we may not ask."""
    quotas: tuple[Quota, ...]
    notes: tuple[str, ...]
    """What could not be asked, and why."""

    @property
    def groups(self) -> tuple[GroupFacts, ...]:
        return self.look.groups

    @property
    def bounds(self) -> Mapping[TopicPartition, LogBounds]:
        """The high watermark is where the cut goes."""
        return self.look.bounds

    @property
    def open_transactions(self) -> tuple[OpenTransaction, ...]:
        return self.look.open_transactions

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(t.name, p.index) for t in self.topics for p in t.partitions]


def gather(cluster: Cluster, include: Sequence[str], exclude: Sequence[str], *, internal: bool, pause: Pause) -> Facts:
    """Ask everything. Raises UsageError when no topic is meant, and the cluster's own errors."""
    metadata = cluster.metadata()
    _refuse_hidden(cluster, include, metadata)
    topics = tuple(choose_topics(metadata.topics, include, exclude, internal=internal))
    partitions = [TopicPartition(t.name, p.index) for t in topics for p in t.partitions]
    look = steady_look(cluster, metadata, partitions, pause)
    acls, quotas, notes = _security(cluster)
    sizes = _sizes(cluster, metadata, partitions)
    if partitions and not sizes:
        notes = (*notes, "sizes of logs were not told: work is divided by numbers of records alone")
    return Facts(
        metadata=metadata,
        topics=topics,
        look=look,
        sizes=sizes,
        configs=topic_configs(cluster, [t.name for t in topics]),
        acls=acls,
        quotas=quotas,
        notes=notes,
    )


def _refuse_hidden(cluster: Cluster, include: Sequence[str], metadata: ClusterMetadata) -> None:
    """A topic that was named and may not be seen is not told among all topics; only who asks for it is refused."""
    known = {t.name for t in metadata.topics}
    for name in include:
        if name not in known and _TOPIC_NAME.fullmatch(name):
            try:
                cluster.metadata([name])
            except TopicMissing:
                continue  # or a pattern that looks like a name: the choice will tell


def _security(cluster: Cluster) -> tuple[tuple[Acl, ...] | None, tuple[Quota, ...], tuple[str, ...]]:
    """A user who may read topics need not be allowed to see ACLs: that is said, and the backup goes on."""
    notes: list[str] = []
    acls: tuple[Acl, ...] | None = None
    quotas: tuple[Quota, ...] = ()
    try:
        acls = list_acls(cluster)
    except NotAuthorised as denied:
        notes.append(f"ACLs are not in this backup: {denied.what}")
    try:
        quotas = list_quotas(cluster)
    except NotAuthorised as denied:
        notes.append(f"quotas are not in this backup: {denied.what}")
    return acls, quotas, tuple(notes)


def _sizes(
    cluster: Cluster, metadata: ClusterMetadata, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Bytes of each log on its leader's disk, where we may ask."""
    try:
        replicas = replica_sizes(cluster, partitions)
    except NotAuthorised:
        return {}
    leaders = {log: found.leader for log in partitions if (found := metadata.find(log))}
    return {r.log: r.size_bytes for r in replicas if r.node == leaders.get(r.log) and not r.moving}
