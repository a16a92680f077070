"""How a copy task reaches the cluster: settings that can be pickled, connections opened where they are used."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar
from uuid import UUID

from logkeep.errors import ClusterNotReady, TopicMissing
from logkeep.kafka.admin.offsets import At, list_offsets, offset_for_leader_epoch
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.fetch import DivergingEpoch, FetchConnection
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.lost_offset import LogFacts, LogPosition


@dataclass(frozen=True)
class Leader:
    broker: int
    epoch: int


class Brokers(Protocol):
    """How a task reaches the cluster. Picklable. Errors are those of `logkeep.errors`."""

    def connect(self, broker: int) -> FetchConnection:
        """A new connection to a broker by its id. Raises ClusterUnreachable."""

    def leader(self, topic: str, topic_id: UUID, partition: int) -> Leader:
        """Who leads a partition now. Raises ClusterNotReady when nobody does; a deleted topic is no error here:
        the answer may be anyone, who will then refuse the topic id."""

    def facts(self, topic: str, partition: int, position: LogPosition) -> LogFacts:
        """The topic's id now, log start and end, and OffsetForLeaderEpoch's answer for `position.last_epoch`."""


T = TypeVar("T")


class WireFetchConnection:
    """A `FetchConnection` over our own connection, with one buffer for all its replies."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._buffer = connection, ReceiveBuffer()

    def send(self, request: bytes) -> None:
        self._connection.send_frame(request)

    def receive(self) -> memoryview:
        return self._connection.receive_frame(self._buffer)

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True)
class SettingsBrokers:
    """`Brokers` made of settings alone. Secrets stay where the settings say they are."""

    settings: ClientSettings

    def connect(self, broker: int) -> WireFetchConnection:
        with Cluster(self.settings) as cluster:
            cluster.metadata([])
            return WireFetchConnection(cluster.open_own(broker))

    def leader(self, topic: str, topic_id: UUID, partition: int) -> Leader:
        found = self._asked(lambda c: _leader(c, TopicPartition(topic, partition)))
        if found is None:
            raise ClusterNotReady("nobody leads the partition", subject=f"{topic}/{partition} ({topic_id})")
        return found

    def facts(self, topic: str, partition: int, position: LogPosition) -> LogFacts:
        return self._asked(lambda c: _facts(c, TopicPartition(topic, partition), position))

    def _asked(self, question: Callable[[Cluster], T]) -> T:
        with Cluster(self.settings) as cluster:
            return question(cluster)


def _leader(cluster: Cluster, log: TopicPartition) -> Leader | None:
    """None: at the moment there is none. For a topic that is gone, anyone: who is asked will refuse its id."""
    try:
        found = cluster.metadata([log.topic]).find(log)
    except TopicMissing:
        found = None
    if found is None:
        return next((Leader(broker.node, -1) for broker in cluster.metadata([]).brokers), None)
    return Leader(found.leader, found.leader_epoch) if found.leader >= 0 else None


def _facts(cluster: Cluster, log: TopicPartition, position: LogPosition) -> LogFacts:
    try:
        topic = cluster.metadata([log.topic]).topic(log.topic)
    except TopicMissing:
        topic = None
    if topic is None:
        return LogFacts(None)
    if topic.id != position.topic_id:
        return LogFacts(topic.id)  # it may have fewer partitions: asking for ours would be an error
    start = list_offsets(cluster, [log], At.EARLIEST)[log].offset
    end = list_offsets(cluster, [log], At.LATEST)[log].offset
    known = None
    if position.last_epoch >= 0:
        answer = offset_for_leader_epoch(cluster, {log: position.last_epoch})[log]
        known = DivergingEpoch(answer.leader_epoch, answer.end_offset)
    return LogFacts(topic.id, start, end, known)
