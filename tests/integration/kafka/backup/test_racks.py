"""Two brokers in two racks: a backup reads from the replica in its own rack, and misses nothing when that one goes."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka.cimpl import NewTopic

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.kafka.backup.run import KafkaBackup
from logkeep.kafka.backup.values import KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.client.fetch import FetchConnection
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.logs.brokers import Brokers, Leader
from logkeep.kafka.logs.lost_offset import LogFacts, LogPosition
from logkeep.model.cache import cache_dir
from logkeep.model.clock_time import ClockTime
from logkeep.model.time import random_token, utc_now
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("racks")
_RACKS = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


class SecondBroker(EmbeddedKafka):
    """A broker without a controller, in the cluster of another one."""

    def __init__(self, directory: Path, cache: Path, first: EmbeddedKafka) -> None:
        super().__init__(directory, cache, properties=BROKER | _RACKS | {"broker.rack": "far"})
        self._first = first

    def properties(self) -> dict[str, str]:
        return super().properties() | {
            "node.id": "2",
            "process.roles": "broker",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._first.controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
        }

    def start(self) -> None:
        """Format it for the cluster of the first one, then start as usual."""
        config = self.directory / "format.properties"
        if not config.exists():
            self.directory.mkdir(parents=True)
            config.write_text("".join(f"{key}={value}\n" for key, value in self.properties().items()))
            meta = (self._first.directory / "data" / "meta.properties").read_text()
            (cluster,) = (line.partition("=")[2] for line in meta.splitlines() if line.startswith("cluster.id="))
            self.java_tool("kafka.tools.StorageTool", ["format", "-t", cluster, "-c", str(config)])
        super().start()


@dataclass(frozen=True)
class Two:
    first: EmbeddedKafka
    second: SecondBroker


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    directory, cache = tmp_path_factory.mktemp("racks"), cache_dir(os.environ, Path.home())
    near = BROKER | _RACKS | {"broker.rack": "near"}
    first = EmbeddedKafka(directory / "1", cache, properties=near)
    with first, SecondBroker(directory / "2", cache, first) as second:
        yield Two(first, second)


@dataclass(frozen=True)
class Counting:
    """Brokers that count what each of them sends."""

    inner: Brokers
    received: Counter[int]

    def connect(self, broker: int) -> FetchConnection:
        return CountingConnection(self.inner.connect(broker), broker, self.received)

    def leader(self, topic: str, topic_id: UUID, partition: int) -> Leader:
        return self.inner.leader(topic, topic_id, partition)

    def facts(self, topic: str, partition: int, position: LogPosition) -> LogFacts:
        return self.inner.facts(topic, partition, position)

    def now(self) -> ClockTime:
        return self.inner.now()


@dataclass(frozen=True)
class CountingConnection:
    inner: FetchConnection
    broker: int
    received: Counter[int]

    def send(self, request: bytes) -> None:
        self.inner.send(request)

    def receive(self) -> memoryview:
        reply = self.inner.receive()
        self.received[self.broker] += len(reply)
        return reply

    def close(self) -> None:
        self.inner.close()


@dataclass
class CountingEngine(InlineEngine):
    """Runs copies with counted connections."""

    received: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__()

    def map(self, task, units, result, *, label, weight):  # type: ignore[no-untyped-def]  # same as the parent's
        if label == "copy":
            units = [replace(unit, brokers=Counting(unit.brokers, self.received)) for unit in units]
        return super().map(task, units, result, label=label, weight=weight)


@dataclass
class Backups:
    two: Two
    archive: Archive
    received: Counter[int] = field(default_factory=Counter)

    def run(self, topic: str, rack: str) -> KafkaBackupDone:
        self.received.clear()
        settings = ClientSettings(endpoints(f"{self.two.first.bootstrap},{self.two.second.bootstrap}"), rack=rack)
        task = KafkaBackup(self.archive.place, settings, utc_now, random_token)
        return task.run(KafkaBackupOptions(include=(topic,)), lambda _: CountingEngine(self.received))

    def is_whole(self, done: KafkaBackupDone, topic: str, end: int) -> None:
        """What is archived is what the leader has in its files."""
        assert self.archive.cut(done.entry.id, topic).end == end
        on_leader = on_disk(self.two.first, topic, 0, 0, end)
        assert self.archive.batches(done.entry.id, topic) == on_leader
        self.archive.check(done.entry.id)


@pytest.fixture
def backups(two: Two, tmp_path: Path) -> Backups:
    return Backups(two, Archive(two.first.bootstrap, new_place(tmp_path / "repository")))


def _replicated(two: Two, topic: str) -> Matrix:
    """One partition, led by the first broker, with a replica on the second, who is in sync."""
    made = Matrix(two.first)
    for future in made.admin.create_topics([NewTopic(topic, 1, replica_assignment=[[1, 2]])]).values():
        future.result(60)
    wait_for(lambda: _in_sync(two.first, topic) == (1, {1, 2}), "both replicas")
    return made


def _in_sync(kafka: EmbeddedKafka, topic: str) -> tuple[int, set[int]] | None:
    """Who leads it and who keeps up; None while the broker knows nothing of it."""
    partitions = PlainBrokers("127.0.0.1", kafka.port).metadata(topic).topics[0].partitions
    return (partitions[0].leader_id, set(partitions[0].isr_nodes)) if partitions else None


def _write(made: Matrix, topic: str, records: int) -> None:
    producer = made.producer(acks="all", batch_num_messages=20)
    for i in range(records):
        producer.produce(topic, os.urandom(1000), b"%d" % i, 0)
    assert producer.flush(60) == 0


def _high_watermarks(kafka: EmbeddedKafka) -> str:
    """As the broker writes them down every five seconds."""
    written = kafka.directory / "data" / "replication-offset-checkpoint"
    return written.read_text() if written.exists() else ""


def test_a_backup_reads_from_the_replica_in_its_own_rack(two: Two, backups: Backups) -> None:
    made = _replicated(two, "racked")
    _write(made, "racked", 2000)
    wait_for(lambda: "racked 0 2000\n" in _high_watermarks(two.second), "the follower to know that all is committed")
    done = backups.run("racked", "far")
    backups.is_whole(done, "racked", 2000)
    assert backups.received[2] > 2_000_000
    assert backups.received[1] < 10_000, "the leader should only have named the follower"
    _write(made, "racked", 500)  # goes on at once: what the leader has, the follower may not yet be allowed to give
    done = backups.run("racked", "near")
    backups.is_whole(done, "racked", 2500)
    assert backups.received[2] == 0
    assert backups.received[1] > 500_000


def test_without_a_rack_the_leader_is_read(two: Two, backups: Backups) -> None:
    made = _replicated(two, "plain")
    _write(made, "plain", 200)
    backups.is_whole(backups.run("plain", ""), "plain", 200)
    assert set(backups.received) == {1}


def test_a_follower_that_dies_is_replaced_by_the_leader(two: Two, backups: Backups) -> None:
    """Killed without a goodbye: the leader still names it, until it notices."""
    made = _replicated(two, "orphaned")
    _write(made, "orphaned", 1000)
    two.second.kill()
    try:
        backups.is_whole(backups.run("orphaned", "far"), "orphaned", 1000)
        assert backups.received[2] == 0
    finally:
        two.second.start()
