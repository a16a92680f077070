"""What a backup has to know of a cluster before it decides anything, asked in the order that makes the cut sound.

Group commits come first, then where logs begin and end: a commit that was read before the end of its log was read
cannot lie behind it, unless the group was ahead of the log. Then come the transactions that were open at those ends.
Groups that commit inside of transactions are looked at again: if one has moved, everything is asked once more.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from logkeep.errors import NotAuthorised, TopicMissing
from logkeep.kafka.admin.groups import Commit, Group, group_offsets, list_groups, share_group_offsets
from logkeep.kafka.admin.offsets import LogBounds, describe_producers, log_bounds
from logkeep.kafka.admin.security import Acl, Quota, list_acls, list_quotas
from logkeep.kafka.admin.topics import replica_sizes, topic_configs
from logkeep.kafka.admin.transactions import list_transactions
from logkeep.kafka.cluster import Cluster
from logkeep.kafka.cut import OpenTransaction, Pause, settle
from logkeep.kafka.selection import choose_topics
from logkeep.kafka.steady import moved_meanwhile, transactional_groups
from logkeep.kafka.values import ClusterMetadata, Topic, TopicPartition

_LOOKS = 100
"""One look takes some milliseconds, and a copier commits every hundred or so."""
_BETWEEN_LOOKS_S = 0.005
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


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
    restless_groups: tuple[str, ...]
    """Those whose position may not belong to the output that is below the cut."""
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
    _refuse_hidden(cluster, include, metadata)
    topics = tuple(choose_topics(metadata.topics, include, exclude, internal=internal))
    partitions = [TopicPartition(t.name, p.index) for t in topics for p in t.partitions]
    look = _steady_look(cluster, metadata, partitions, pause)
    acls, quotas, notes = _security(cluster)
    return Facts(
        metadata=metadata,
        topics=topics,
        groups=look.groups,
        bounds=look.bounds,
        open_transactions=look.open_transactions,
        restless_groups=look.restless,
        sizes=_sizes(cluster, metadata, partitions),
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


@dataclass(frozen=True)
class _Look:
    """Positions and ends that belong together."""

    groups: tuple[GroupFacts, ...]
    bounds: Mapping[TopicPartition, LogBounds]
    open_transactions: tuple[OpenTransaction, ...]
    restless: tuple[str, ...]


def _steady_look(
    cluster: Cluster, metadata: ClusterMetadata, partitions: Sequence[TopicPartition], pause: Pause
) -> _Look:
    for number in range(_LOOKS):
        if number:
            pause(_BETWEEN_LOOKS_S)
        look = _one_look(cluster, metadata, partitions, pause)
        if not look.restless:
            break
    return look


def _one_look(cluster: Cluster, metadata: ClusterMetadata, partitions: Sequence[TopicPartition], pause: Pause) -> _Look:
    groups = _groups(cluster)
    commits = {g.group.name: g.commits for g in groups if g.group.kind != "share" and g.commits}
    bounds, still_open = settle(
        log_bounds(cluster, partitions),
        producers=lambda some: describe_producers(cluster, some),
        ongoing=lambda: {t.producer_id for t in list_transactions(cluster, states=["Ongoing"])},
        reread=lambda some: log_bounds(cluster, some),
        pause=pause,
    )
    watched = transactional_groups(cluster, metadata, commits)
    moved = moved_meanwhile(cluster, {name: commits[name] for name in watched})
    return _Look(groups, bounds, still_open, tuple(moved))


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
