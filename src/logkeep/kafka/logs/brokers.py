"""How a task reaches the brokers: settings that can be pickled, connections opened where they are used."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from logkeep.errors import ClusterError, ClusterNotReady, TopicMissing
from logkeep.kafka.admin.broker_clock import cluster_time
from logkeep.kafka.admin.offsets import At, list_offsets, offset_for_leader_epoch
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.fetch import DivergingEpoch, FetchConnection, asked_bytes
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.reply_limits import fetch_limit
from logkeep.kafka.client.retry import Backoff
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.lost_offset import LogFacts, LogPosition
from logkeep.model.clock_time import ClockTime


@dataclass(frozen=True)
class Leader:
    broker: int
    epoch: int


class Brokers(Protocol):
    """How a task reaches the cluster. Picklable. Errors are those of `logkeep.errors`."""

    def connect(self, broker: int) -> FetchConnection:
        """A new connection to a broker by its id. Raises ClusterUnreachable."""

    def leader(self, topic: str, topic_id: UUID, partition: int) -> Leader:
        """The current leader of a partition. Raises ClusterNotReady if there is none. A deleted topic is no error here:
        the result is then any broker, which will refuse the topic id."""

    def facts(self, topic: str, partition: int, position: LogPosition) -> LogFacts:
        """The topic's current id, log start and end, and OffsetForLeaderEpoch's answer for `position.last_epoch`."""

    def now(self) -> ClockTime:
        """The time by the cluster's clock."""


class WireFetchConnection:
    """A `FetchConnection` over a `Connection`, with one buffer for all its replies."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._buffer = connection, ReceiveBuffer()

    def send(self, request: bytes) -> None:
        self._connection.send_frame(request, fetch_limit(asked_bytes(request)))

    def receive(self) -> memoryview:
        return self._connection.receive_frame(self._buffer)

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True)
class SettingsBrokers:
    """`Brokers` from settings alone. Secrets stay in the files that the settings name."""

    settings: ClientSettings

    def connect(self, broker: int) -> WireFetchConnection:
        with Cluster(self.settings) as cluster:
            cluster.metadata([])
            return WireFetchConnection(cluster.open_own(broker))

    def leader(self, topic: str, topic_id: UUID, partition: int) -> Leader:
        with Cluster(self.settings) as cluster:
            found = _leader(cluster, TopicPartition(topic, partition))
        if found is None:
            raise ClusterNotReady("the partition has no leader", subject=f"{topic}/{partition} ({topic_id})")
        return found

    def facts(self, topic: str, partition: int, position: LogPosition) -> LogFacts:
        with Cluster(self.settings) as cluster:
            return _facts(cluster, TopicPartition(topic, partition), position)

    def now(self) -> ClockTime:
        with Cluster(self.settings) as cluster:
            return cluster_time(cluster)


class OpenBrokers:
    """`Brokers` whose requests share one cluster, for a unit that connects and asks for the time more than once.

    After an error the next request begins with a new one: the answer of a broker that is going away is no answer.
    """

    def __init__(self, brokers: SettingsBrokers) -> None:
        self._brokers, self._cluster = brokers, _few_tries(brokers.settings)
        self.leader, self.facts = brokers.leader, brokers.facts

    def connect(self, broker: int) -> WireFetchConnection:
        with self._renewed():
            self._cluster.metadata([])
            return WireFetchConnection(self._cluster.open_own(broker))

    def now(self) -> ClockTime:
        with self._renewed():
            return cluster_time(self._cluster)

    @contextmanager
    def _renewed(self) -> Iterator[None]:
        try:
            yield
        except ClusterError:
            self.close()
            self._cluster = _few_tries(self._brokers.settings)
            raise

    def close(self) -> None:
        self._cluster.close()


def _few_tries(settings: ClientSettings) -> Cluster:
    """A cluster with few attempts for each request, because the unit retries too."""
    return Cluster(settings, backoff=Backoff(attempts=3))


@contextmanager
def opened(brokers: Brokers) -> Iterator[Brokers]:
    """The brokers for one unit. `SettingsBrokers` get one shared cluster, which is closed at the end; others stay as
    they are."""
    if not isinstance(brokers, SettingsBrokers):
        yield brokers
        return
    with closing(OpenBrokers(brokers)) as one:
        yield one


class UnitBrokers:
    """`Brokers` for all logs of a unit, over the cluster that its task has open.

    The metadata of a topic with a thousand partitions costs more than the records of one: it is read once for all logs,
    and again when the leader of a log is asked for a second time, because then the first answer did not help.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._answered = cluster, set[TopicPartition]()

    def connect(self, broker: int) -> WireFetchConnection:
        return WireFetchConnection(self._cluster.open_own(broker))

    def leader(self, topic: str, topic_id: UUID, partition: int) -> Leader:
        log = TopicPartition(topic, partition)
        if log in self._answered:
            self._cluster.metadata()
            self._answered.clear()
        self._answered.add(log)
        known = self._cluster.known().find(log)
        found = Leader(known.leader, known.leader_epoch) if known is not None else _leader(self._cluster, log)
        if found is None or found.broker < 0:
            raise ClusterNotReady("the partition has no leader", subject=f"{topic}/{partition} ({topic_id})")
        return found

    def facts(self, topic: str, partition: int, position: LogPosition) -> LogFacts:
        return _facts(self._cluster, TopicPartition(topic, partition), position)

    def now(self) -> ClockTime:
        return cluster_time(self._cluster)


def _leader(cluster: Cluster, log: TopicPartition) -> Leader | None:
    """The current leader; None if there is none. For a deleted topic it is any broker, which will refuse the topic
    id."""
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
        return LogFacts(topic.id)  # it may have fewer partitions: a request for ours would be an error
    start = list_offsets(cluster, [log], At.EARLIEST)[log].offset
    end = list_offsets(cluster, [log], At.LATEST)[log].offset
    known = None
    if position.last_epoch >= 0:
        answer = offset_for_leader_epoch(cluster, {log: position.last_epoch})[log]
        known = DivergingEpoch(answer.leader_epoch, answer.end_offset)
    return LogFacts(topic.id, start, end, known)
