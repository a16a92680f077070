"""What the shipped loop and coordinator use of their client libraries, over the simulated cluster."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition

from logkeep.application.kafka.cluster_topics import VisibleRecord
from logkeep.application.kafka.documents import checkpoints_topic, control_topic
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.client import topology
from tests.support.participants.cluster import Group, Log, SimCluster, Stored, Transaction

CLUSTER, _TOGETHER = "cluster", 4
"""The name of the setting under which clients find the cluster, and how many records one fetch returns at most."""
_SLOW = 0.1
"""How often a slow leader takes a record at once."""
Config = Mapping[str, Any]
Rebalanced = Callable[["SimConsumer", list[TopicPartition]], None]


def _rejected() -> KafkaException:
    """Of a member that its group has expelled, or whose group has another generation."""
    return KafkaException(KafkaError(KafkaError.ILLEGAL_GENERATION, "illegal generation", False, False, True))


def ensure_topics(config: Config, application: str) -> None:
    for name in (control_topic(application), checkpoints_topic(application)):
        config[CLUSTER].create(name, 1)


def partition_counts(config: Config, topics: set[str]) -> dict[str, int]:
    return {name: config[CLUSTER].partitions(name) for name in topics}


class SimMessage:
    def __init__(self, log: Log, stored: Stored) -> None:
        self._log, self._stored = log, stored

    def topic(self) -> str:
        return self._log[0]

    def partition(self) -> int:
        return self._log[1]

    def offset(self) -> int:
        return self._stored.offset

    def key(self) -> bytes | None:
        return self._stored.key

    def value(self) -> bytes | None:
        return self._stored.value

    def headers(self) -> list[tuple[str, bytes | str | None]]:
        return list(self._stored.headers)

    def error(self) -> None:
        return None


class SimProducer:
    """Records wait in a buffer for each log; a thread of the library sends them at any time, logs in any order."""

    def __init__(self, config: Config) -> None:
        self._cluster: SimCluster = config[CLUSTER]
        self._turns = self._cluster.turns
        self._transactional = "transactional.id" in config
        self.transaction: Transaction | None = None
        self._last = Transaction("none")
        self._buffer: dict[Log, list[tuple[bytes | None, bytes | None, Any]]] = {}
        assert self._turns.current is not None
        self._cluster.producers.append((self._turns.current, self))

    def init_transactions(self, timeout: float) -> None:
        self._turns.here()

    def begin_transaction(self) -> None:
        self.transaction = Transaction()

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        headers: Iterable[Any] = (),
    ) -> None:
        assert partition >= 0
        self._turns.here()
        self._buffer.setdefault((topic, partition), []).append((key, value, tuple(headers)))

    def poll(self, timeout: float) -> None:
        self._turns.others()

    def deliver_one(self) -> None:
        """The oldest record of any log. A transaction begins in the cluster once the one before is complete."""
        waiting = [log for log, records in self._buffer.items() if records]
        if waiting and not self._last.unmarked:
            log = self._turns.choose.choice(waiting)
            if log[0] in self._cluster.slow and self._turns.choose.random() > _SLOW:
                return
            self._cluster.append(log, *self._buffer[log].pop(0), inside=self.transaction)

    def flush(self, timeout: float = -1) -> int:
        while any(self._buffer.values()):
            self.deliver_one()
            self._turns.here()
        return 0

    def send_offsets_to_transaction(
        self, offsets: list[TopicPartition], member: tuple["SimConsumer", int], timeout: float
    ) -> None:
        self._turns.here()
        consumer, generation = member
        consumer.check(generation)
        assert self.transaction is not None
        self.transaction.offsets += [(consumer.group, (each.topic, each.partition), each.offset) for each in offsets]
        self._turns.here()

    def commit_transaction(self, timeout: float) -> None:
        self.flush()
        self._end("committed")
        self._turns.here()

    def abort_transaction(self, timeout: float) -> None:
        self._turns.here()
        self._buffer = {}
        self._end("aborted")

    def _end(self, state: str) -> None:
        assert self.transaction is not None
        self._last, self.transaction = self.transaction, None
        self._cluster.decide(self._last, state)


class SimConsumer:
    def __init__(self, config: Config) -> None:
        self._cluster: SimCluster = config[CLUSTER]
        self._turns = self._cluster.turns
        self.group = self._cluster.groups.setdefault(config["group.id"], Group())
        self._assigned: list[Log] = []
        self._positions: dict[Log, int] = {}
        self._joined = self._generation = -1
        assert self._turns.current is not None
        self._cluster.consumers.append((self._turns.current, self))

    def subscribe(self, topics: list[str], on_assign: Rebalanced, on_revoke: Rebalanced, on_lost: Rebalanced) -> None:
        self._topics, self._on_assign, self._on_revoke, self._on_lost = topics, on_assign, on_revoke, on_lost

    def consume(self, most: int, wait_s: float) -> list[SimMessage]:
        self._turns.others()
        self._rebalance()
        found: list[SimMessage] = []
        for log in self._turns.choose.sample(self._assigned, len(self._assigned)):
            for record in self._cluster.visible(log, self._positions[log], 1 << 60):
                if len(found) >= self._turns.choose.randrange(1, _TOGETHER + 1):
                    return found
                found.append(SimMessage(log, record))
                self._positions[log] = record.offset + 1
        return found

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        logs = [(each.topic, each.partition) for each in partitions]
        while self._cluster.unstable(self.group, logs):
            self._turns.others()
        return [TopicPartition(*log, self.group.committed.get(log, OFFSET_INVALID)) for log in logs]

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        self._turns.here()
        self.check(self._generation)
        self.group.committed |= {(each.topic, each.partition): each.offset for each in offsets}
        self._turns.here()

    def check(self, generation: int) -> None:
        """Raises KafkaException unless the group accepts offsets of this member."""
        if self not in self.group.members or generation != self.group.generation:
            raise _rejected()

    def consumer_group_metadata(self) -> tuple["SimConsumer", int]:
        return self, self._generation

    def get_watermark_offsets(self, at: TopicPartition, timeout: float) -> tuple[int, int]:
        self._turns.here()
        return 0, len(self._cluster.logs[at.topic, at.partition])

    def seek(self, at: TopicPartition) -> None:
        self._positions[at.topic, at.partition] = at.offset

    def _rebalance(self) -> None:
        group = self.group
        if self not in group.members:
            self._give_up(self._on_lost)
            group.members.append(self)
            group.changed()
        if self._joined != group.wanted:
            self._give_up(self._on_revoke)
            self._joined = group.wanted
        if all(member._joined == group.wanted for member in group.members):
            group.generation = group.wanted
        if self._joined == group.generation != self._generation:
            self._generation = group.generation
            self._assigned = self._share()
            assigned = [TopicPartition(*log) for log in self._assigned]
            found = self.committed(assigned, 0)
            self._positions = {(f.topic, f.partition): max(f.offset, 0) for f in found}
            self._on_assign(self, assigned)

    def _give_up(self, callback: Rebalanced) -> None:
        given, self._assigned = self._assigned, []
        if given:
            callback(self, [TopicPartition(*log) for log in given])

    def _share(self) -> list[Log]:
        """Ranges of each topic, by the order in which members came."""
        number, count = self.group.members.index(self), len(self.group.members)
        logs = [(topic, p) for topic in self._topics for p in range(self._cluster.partitions(topic))]
        return [log for log in logs if log[1] * count // self._cluster.partitions(log[0]) == number]


class SimTopicReader:
    """See `TopicReader`."""

    def __init__(self, config: Config, topic: str) -> None:
        self._cluster: SimCluster = config[CLUSTER]
        self._log, self._at = (topic, 0), 0
        self._speed = self._cluster.turns.choose.choice((0.5, 0.03))

    def to_end(self) -> Iterator[SimMessage]:
        self._cluster.turns.here()
        return iter(self._read())

    def new(self, wait_s: float = 0.0) -> list[SimMessage]:
        self._cluster.turns.here()
        return self._read() if self._cluster.turns.choose.random() < self._speed else []

    def _read(self) -> list[SimMessage]:
        end = self._cluster.stable(self._log)
        found = [SimMessage(self._log, record) for record in self._cluster.visible(self._log, self._at, end)]
        self._at = end
        return found

    def close(self) -> None:
        """There is nothing to release."""


class SimClusterTopics:
    """See `ClusterTopics`."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster

    def topic(self, name: str) -> object:
        return self._cluster.partitions(name) or None

    def partitions(self, names: Iterable[str]) -> dict[str, int]:
        return {name: self._cluster.partitions(name) for name in names}

    def bounds(self, logs: Iterable[topology.TopicPartition]) -> dict[topology.TopicPartition, LogBounds]:
        """Brokers answer one after the other."""
        found = {}
        for log in logs:
            stable = self._cluster.stable((log.topic, log.partition))
            self._cluster.turns.here()
            found[log] = LogBounds(0, stable, len(self._cluster.logs[log.topic, log.partition]), 0)
        return found

    def records(self, log: topology.TopicPartition, start: int, end: int) -> Iterator[VisibleRecord]:
        self._cluster.turns.here()
        for each in list(self._cluster.visible((log.topic, log.partition), start, end)):
            yield VisibleRecord(log, each.offset, each.key, each.value, each.headers)

    def append_one(self, log: topology.TopicPartition, key: bytes, value: bytes) -> None:
        self._cluster.turns.here()
        self._cluster.append((log.topic, log.partition), key, value)
        self._cluster.turns.here()
