"""What a backup reads from the cluster before it plans: log ends, group offsets, configs, ACLs, quotas."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from logkeep.errors import ClusterNotReady, NotAuthorised, TopicMissing
from logkeep.kafka.admin.broker_clock import cluster_time
from logkeep.kafka.admin.offsets import At, LogBounds, list_offsets
from logkeep.kafka.admin.security import AclBinding, Quota, list_acls, list_quotas
from logkeep.kafka.admin.topics import ReplicaSize, TopicConfigs, replica_sizes, topic_configs
from logkeep.kafka.backup.cut import Pause
from logkeep.kafka.backup.log_ends import GroupFacts, LogEnds, read_log_ends
from logkeep.kafka.backup.visibility import blind_finding, hidden_finding, hidden_topics, unlisted_topics
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import failure
from logkeep.kafka.client.topology import ClusterMetadata, Topic, TopicPartition
from logkeep.kafka.record.contents import ACLS_DENIED
from logkeep.kafka.record.documents import OpenTransaction
from logkeep.kafka.topic_selection import TopicFilter, choose_topics, topic_filter
from logkeep.model.clock_time import ClockTime
from logkeep.model.findings import Finding
from logkeep.model.shell_words import shell_word

_TIERED = "remote.storage.enable"
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class Facts:
    """One cluster at one moment."""

    metadata: ClusterMetadata
    topics: tuple[Topic, ...]
    """The selected topics."""
    log_ends: LogEnds
    """The ends of the selected partitions, with the offsets of groups in them."""
    sizes: Mapping[TopicPartition, int]
    configs: Mapping[str, TopicConfigs]
    acls: tuple[AclBinding, ...] | None
    """None if the cluster has no authorizer, or this user may not list ACLs."""
    quotas: tuple[Quota, ...]
    notes: tuple[str, ...]
    """What could not be read, and why."""
    findings: tuple[Finding, ...] = ()
    """What exists and is hidden from this user, as far as that can be known."""
    chosen: bool = False
    """Whether the user chose topics: then a group that has no offset in them is not part of the backup."""
    cut: ClockTime | None = None
    """The time by the cluster's clock before the first log end was read; None if it is not known."""
    named: frozenset[str] = frozenset()
    """Topics that the user named, each by its whole name."""

    @property
    def groups(self) -> tuple[GroupFacts, ...]:
        """The groups that belong to the backup."""
        return tuple(g for g in self.log_ends.groups if g.commits or not self.chosen)

    @property
    def bounds(self) -> Mapping[TopicPartition, LogBounds]:
        """The high watermark is the cut."""
        return self.log_ends.bounds

    @property
    def open_transactions(self) -> tuple[OpenTransaction, ...]:
        return self.log_ends.open_transactions

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(t.name, p.index) for t in self.topics for p in t.partitions]


def gather(
    cluster: Cluster,
    include: Sequence[str],
    exclude: Sequence[str],
    *,
    internal: bool,
    pause: Pause,
    sized: Callable[[Mapping[TopicPartition, int]], None] = lambda _: None,
) -> Facts:
    """Read everything. Raises UsageError if no topic is selected, and the cluster's own errors.

    `sized` gets the size of each log as soon as it is known.
    """
    selects = topic_filter(include, exclude, internal=internal)
    metadata = _ready(cluster, cluster.metadata(), selects)
    _refuse_hidden(cluster, include, metadata)
    topics = tuple(choose_topics(metadata.topics, include, exclude, internal=internal))
    partitions = [TopicPartition(t.name, p.index) for t in topics for p in t.partitions]
    replicas = _replicas(cluster)
    local_sizes = _sizes(replicas or (), metadata, partitions)
    sized(local_sizes)
    cut = cluster_time(cluster)
    log_ends = read_log_ends(cluster, metadata, partitions, pause)
    acls, quotas, notes = _security(cluster)
    configs = topic_configs(cluster, [t.name for t in topics])
    if partitions and replicas is None:
        notes = (*notes, "the sizes of logs are not known: work is divided by numbers of records alone")
    return Facts(
        metadata=metadata,
        topics=topics,
        log_ends=log_ends,
        sizes=_whole_sizes(cluster, local_sizes, log_ends.bounds, configs),
        configs=configs,
        acls=acls,
        quotas=quotas,
        notes=notes,
        findings=_hidden(cluster, replicas, metadata, selects),
        chosen=bool(include or exclude),
        cut=cut,
        named=frozenset(t.name for t in topics if t.name in include),
    )


def _ready(cluster: Cluster, metadata: ClusterMetadata, selects: TopicFilter) -> ClusterMetadata:
    """The metadata once no selected topic is in an error; other topics do not matter."""
    waiting = [t for t in metadata.unready if selects(t.name, t.internal)]
    if not waiting:
        return metadata
    try:
        cluster.metadata([t.name for t in waiting])
    except ClusterNotReady as error:
        raise _stays_unready(error.what, error.subject) from error
    again = cluster.metadata()
    for each in again.unready:
        if selects(each.name, each.internal):
            raise _stays_unready(failure(each.code, subject=each.name, doing="Metadata").what, each.name)
    return again


def _stays_unready(what: str, topic: str) -> ClusterNotReady:
    left_out = f"--exclude {shell_word(re.escape(topic))}"
    remedy = f"see which brokers are down, then run again; or leave the topic out: {left_out}"
    return ClusterNotReady(what, subject=topic, remedy=remedy)


def _hidden(
    cluster: Cluster, replicas: Sequence[ReplicaSize] | None, metadata: ClusterMetadata, selects: TopicFilter
) -> tuple[Finding, ...]:
    if replicas is None:
        return (blind_finding(metadata.cluster_id),)
    names = unlisted_topics(replicas, metadata, selects)
    return tuple(map(hidden_finding, hidden_topics(names, lambda name: cluster.metadata([name]))))


def _refuse_hidden(cluster: Cluster, include: Sequence[str], metadata: ClusterMetadata) -> None:
    """Raise NotAuthorised for a named topic that this user may not see. The list of all topics just leaves it out."""
    known = {t.name for t in metadata.topics}
    for name in include:
        if name not in known and _TOPIC_NAME.fullmatch(name):
            try:
                cluster.metadata([name])
            except TopicMissing:
                continue  # or it is a pattern that looks like a name: selecting topics reports it


def _security(cluster: Cluster) -> tuple[tuple[AclBinding, ...] | None, tuple[Quota, ...], tuple[str, ...]]:
    """A user who may read topics is not always allowed to list ACLs: that becomes a note, and the backup continues."""
    notes: list[str] = []
    acls: tuple[AclBinding, ...] | None = None
    quotas: tuple[Quota, ...] = ()
    try:
        acls = list_acls(cluster)
    except NotAuthorised as denied:
        notes.append(f"{ACLS_DENIED}{denied.what}")
    try:
        quotas = list_quotas(cluster)
    except NotAuthorised as denied:
        notes.append(f"quotas are not in this backup: {denied.what}")
    return acls, quotas, tuple(notes)


def _replicas(cluster: Cluster) -> tuple[ReplicaSize, ...] | None:
    """All replicas on the brokers' disks; None if this user may not ask."""
    try:
        return replica_sizes(cluster)
    except NotAuthorised:
        return None


def _whole_sizes(
    cluster: Cluster,
    local: Mapping[TopicPartition, int],
    bounds: Mapping[TopicPartition, LogBounds],
    configs: Mapping[str, TopicConfigs],
) -> dict[TopicPartition, int]:
    """Sizes of logs with what brokers have moved to tiered storage."""
    tiered = [log for log in local if log in bounds and _tiered(configs.get(log.topic))]
    firsts = list_offsets(cluster, tiered, At.EARLIEST_LOCAL) if tiered else {}
    sizes = {log: whole_size(local[log], bounds[log], found.offset) for log, found in firsts.items()}
    return {log: size for log in local if (size := sizes.get(log, local[log])) is not None}


def _tiered(configs: TopicConfigs | None) -> bool:
    return configs is not None and {**configs.inherited, **configs.own}.get(_TIERED) == "true"


def whole_size(local_bytes: int, bounds: LogBounds, first_local: int) -> int | None:
    """About the size of a log whose offsets from `first_local` on are on the disk; None: not known. Pure."""
    whole, local = bounds.high_watermark - bounds.start, bounds.high_watermark - first_local
    if first_local <= bounds.start:
        return local_bytes
    return local_bytes * whole // local if local > 0 else None


def _sizes(
    replicas: Sequence[ReplicaSize], metadata: ClusterMetadata, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Bytes of each log on its leader's disk, where known."""
    leaders = {log: found.leader for log in partitions if (found := metadata.find(log))}
    return {r.log: r.size_bytes for r in replicas if r.node == leaders.get(r.log) and not r.moving}
