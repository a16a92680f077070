"""Facts about the target cluster: topics, configs, brokers and API versions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from logkeep.errors import ClusterNotReady, NotAuthorised
from logkeep.kafka.admin.offsets import LogBounds, log_bounds
from logkeep.kafka.admin.topic_changes import NewTopic, create_topics
from logkeep.kafka.admin.topics import ConfigValue, ResourceKind, describe_configs, topic_configs
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import ClusterMetadata, Topic, TopicPartition

APIS = (
    "Produce", "Fetch", "InitProducerId", "AddPartitionsToTxn", "EndTxn", "DescribeProducers", "DeleteRecords",
    "CreateTopics", "IncrementalAlterConfigs", "OffsetCommit", "CreateAcls", "AlterClientQuotas",
)  # fmt: skip
"""The requests that a restore may send."""

_ON_THE_TOPIC = 1
_MOST_DESCRIBED = 20
_OF_THE_BROKERS = frozenset({2, 3, 4})


@dataclass(frozen=True)
class TargetTopic:
    """An existing topic with the name of a topic to restore."""

    name: str
    id: str
    """Hex."""
    internal: bool
    bounds: tuple[LogBounds, ...]
    """One for each partition, in order."""
    replicas: int = 1
    """The smallest replica count of its partitions."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """Configs set on the topic."""

    @property
    def partitions(self) -> int:
        return len(self.bounds)

    @property
    def records(self) -> int:
        """Upper bound: the offsets between start and end."""
        return sum(b.high_watermark - b.start for b in self.bounds)

    @property
    def untouched(self) -> bool:
        """Nothing was ever written to it: only then can records keep their offsets."""
        return all(b.high_watermark == 0 for b in self.bounds)


@dataclass(frozen=True)
class TargetFacts:
    """One cluster at one point in time."""

    cluster_id: str
    is_source: bool
    """The backup was taken from this cluster: the user must confirm its name."""
    brokers: tuple[int, ...]
    names: frozenset[str]
    """Names of all topics that this user may see."""
    topics: Mapping[str, TargetTopic] = field(default_factory=dict)
    """Existing topics with names of topics to restore."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Values of topic configs that are not set on the topic, as far as this user may see them."""
    known_configs: frozenset[str] = frozenset()
    """Names of all topic configs of this cluster; empty when this user may not see them."""
    inherited: Mapping[str, str] = field(default_factory=dict)
    """Defaults that are set on the brokers, without Kafka's own defaults."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """The newest version of each of `APIS` that all brokers and this release support; absent where there is none."""


def gather_target(cluster: Cluster, wanted: Collection[str], source_cluster_id: str) -> TargetFacts:
    """Ask the cluster about itself and the `wanted` topics; changes nothing."""
    metadata = cluster.metadata()
    present = [t for t in metadata.topics if t.name in wanted]
    new = sorted(set(wanted) - {t.name for t in metadata.topics})
    settings = _settings(cluster, new, [t.name for t in present])
    return TargetFacts(
        cluster_id=metadata.cluster_id,
        is_source=metadata.cluster_id == source_cluster_id,
        brokers=tuple(b.node for b in metadata.brokers),
        names=frozenset(t.name for t in metadata.topics) | frozenset(t.name for t in metadata.unready),
        topics=_present(cluster, present),
        defaults={c.name: c.value or "" for c in settings if c.source != _ON_THE_TOPIC},
        known_configs=frozenset(c.name for c in settings),
        inherited={c.name: c.value or "" for c in settings if c.source in _OF_THE_BROKERS},
        versions=_versions(cluster, metadata),
    )


def _present(cluster: Cluster, topics: Collection[Topic]) -> dict[str, TargetTopic]:
    logs = [TopicPartition(t.name, p.index) for t in topics for p in t.partitions]
    bounds = log_bounds(cluster, logs) if logs else {}
    configs = topic_configs(cluster, [t.name for t in topics]) if topics else {}
    return {
        t.name: TargetTopic(
            name=t.name,
            id=t.id.hex,
            internal=t.internal,
            bounds=tuple(bounds[TopicPartition(t.name, p.index)] for p in t.partitions),
            replicas=min((len(p.replicas) for p in t.partitions), default=1),
            configs=dict(configs[t.name].own),
        )
        for t in topics
    }


def _settings(cluster: Cluster, new: Collection[str], present: Collection[str]) -> list[ConfigValue]:
    """Config values of topics. Validating a new topic returns all; existing ones show only what each does not set."""
    for name in list(new)[:1]:
        made, _ = create_topics(cluster, [NewTopic(name, 1, -1)], validate_only=True)
        if name in made and made[name].configs:
            return list(made[name].configs)
    try:
        some = describe_configs(cluster, ResourceKind.TOPIC, list(present)[:_MOST_DESCRIBED]) if present else {}
    except NotAuthorised:
        return []
    every = sorted((c for configs in some.values() for c in configs), key=lambda c: c.source != _ON_THE_TOPIC)
    return list({c.name: c for c in every}.values())


def _versions(cluster: Cluster, metadata: ClusterMetadata) -> dict[str, int]:
    if not metadata.brokers:
        raise ClusterNotReady("the cluster lists no broker", subject=metadata.cluster_id)
    connections = [cluster.connection(b.node) for b in metadata.brokers]
    return {api: min(c.version(api) for c in connections) for api in APIS if all(c.speaks(api) for c in connections)}
