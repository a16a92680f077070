"""Clusters, brokers, topics and partitions as frozen values."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from logkeep.kafka.client.settings import Endpoint


class TopicPartition(NamedTuple):
    """The name of one log."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


KAFKA_OWN = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata", "__cluster_metadata"}
)
"""Topics that only Kafka itself writes. Brokers call some of them internal, but not that of tiered storage."""


def is_internal(name: str, flagged: bool) -> bool:
    """Whether a topic is Kafka's own, by the broker's flag or by its name."""
    return flagged or name in KAFKA_OWN


@dataclass(frozen=True)
class Broker:
    node: int
    endpoint: Endpoint
    rack: str | None


@dataclass(frozen=True)
class Partition:
    """One log of a topic. `leader` is -1 while there is none."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    offline: tuple[int, ...] = ()


@dataclass(frozen=True)
class Topic:
    """Name and id: a re-created topic has the same name and another id."""

    name: str
    id: UUID
    internal: bool
    partitions: tuple[Partition, ...]


@dataclass(frozen=True)
class UnreadyTopic:
    """A topic that the cluster lists with an error code."""

    name: str
    internal: bool
    code: int
    passing: bool
    """Whether the error is a temporary one."""


@dataclass(frozen=True)
class ClusterMetadata:
    """What the cluster reports about itself at one moment."""

    cluster_id: str
    brokers: tuple[Broker, ...]
    topics: tuple[Topic, ...]
    unready: tuple[UnreadyTopic, ...] = ()
    """Topics for which the cluster reports an error in place of details."""
    _leaders: dict[TopicPartition, Partition] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        leaders = {TopicPartition(t.name, p.index): p for t in self.topics for p in t.partitions}
        object.__setattr__(self, "_leaders", leaders)

    def find(self, wanted: TopicPartition) -> Partition | None:
        return self._leaders.get(wanted)

    def topic(self, name: str) -> Topic | None:
        return next((each for each in self.topics if each.name == name), None)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        grouped[topic].append(partition)
    return dict(grouped)
