"""What a backup has to know of a cluster before it decides anything, asked in the order that makes the cut sound.

Group commits come first, then where logs begin and end: a commit that was read before the end of its log was read
cannot lie behind it, unless the group was ahead of the log. Last come the transactions that were open at those ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from logkeep.errors import NotAuthorised
from logkeep.kafka.admin.groups import Commit, Group, group_offsets, list_groups, share_group_offsets
from logkeep.kafka.admin.offsets import LogBounds, describe_producers, log_bounds
from logkeep.kafka.admin.security import Acl, Quota, list_acls, list_quotas
from logkeep.kafka.admin.topics import replica_sizes, topic_configs
from logkeep.kafka.admin.transactions import list_transactions
from logkeep.kafka.cluster import Cluster
from logkeep.kafka.cut import OpenTransaction, Pause, settle
from logkeep.kafka.selection import choose_topics
from logkeep.kafka.values import ClusterMetadata, Topic, TopicPartition


@dataclass(frozen=True)
class GroupFacts:
    group: Group
    commits: Mapping[TopicPartition, Commit]


@dataclass(frozen=True)
class Facts:
    """One cluster at one moment."""

    metadata: ClusterMetadata
    topics: tuple[Topic, ...]
    """Those that were chosen."""
    groups: tuple[GroupFacts, ...]
    bounds: Mapping[TopicPartition, LogBounds]
    """Of the chosen partitions; the high watermark is where the cut goes."""
    open_transactions: tuple[OpenTransaction, ...]
    sizes: Mapping[TopicPartition, int]
    configs: Mapping[str, Mapping[str, str]]
    acls: tuple[Acl, ...] | None
    """None when the cluster has no authorizer, or we may not ask."""
    quotas: tuple[Quota, ...]
    notes: tuple[str, ...]
    """What could not be asked, and why."""

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(t.name, p.index) for t in self.topics for p in t.partitions]


def gather(cluster: Cluster, include: Sequence[str], exclude: Sequence[str], *, internal: bool, pause: Pause) -> Facts:
    """Ask everything. Raises UsageError when no topic is meant, and the cluster's own errors."""
    metadata = cluster.metadata()
    topics = tuple(choose_topics(metadata.topics, include, exclude, internal=internal))
    partitions = [TopicPartition(t.name, p.index) for t in topics for p in t.partitions]
    groups = _groups(cluster)
    bounds = log_bounds(cluster, partitions)
    bounds, still_open = settle(
        bounds,
        producers=lambda some: describe_producers(cluster, some),
        ongoing=lambda: {t.producer_id for t in list_transactions(cluster, states=["Ongoing"])},
        reread=lambda some: log_bounds(cluster, some),
        pause=pause,
    )
    acls, quotas, notes = _security(cluster)
    return Facts(
        metadata=metadata,
        topics=topics,
        groups=groups,
        bounds=bounds,
        open_transactions=still_open,
        sizes=_sizes(cluster, metadata, partitions),
        configs=topic_configs(cluster, [t.name for t in topics]),
        acls=acls,
        quotas=quotas,
        notes=notes,
    )


def _groups(cluster: Cluster) -> tuple[GroupFacts, ...]:
    found = list_groups(cluster)
    plain = group_offsets(cluster, [g.name for g in found if g.kind != "share"])
    shared = share_group_offsets(cluster, [g.name for g in found if g.kind == "share"])
    commits = {**plain, **shared}
    return tuple(GroupFacts(g, commits.get(g.name, {})) for g in found)


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
    """Bytes of each log on its leader's disk; without the right to ask, all logs count as small."""
    try:
        replicas = replica_sizes(cluster, partitions)
    except NotAuthorised:
        return {}
    leaders = {log: found.leader for log in partitions if (found := metadata.find(log))}
    return {r.log: r.size_bytes for r in replicas if r.node == leaders.get(r.log) and not r.moving}
