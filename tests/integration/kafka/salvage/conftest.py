"""One broker that is backed up, goes on, is killed in the middle of writing, and later tells what it still had."""

import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.client.topology import TopicPartition as Log
from logkeep.model.cache import cache_dir
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.matrix_broker import until_cleaned
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for

GROUPS = ("plain", "mover", "far")
_MOST_WAITING = 20_000
_MORE = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "log.segment.bytes": "1048576",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
}


@dataclass(frozen=True)
class Served:
    """What a broker served after it came back on the same disk."""

    ends: dict[Log, tuple[int, int]]
    batches: dict[Log, list[bytes]]
    groups: dict[str, dict[tuple[str, int], tuple[int, str]]]


@dataclass(frozen=True)
class Dead:
    """A broker's disk as it was when the broker was killed, and everything that can be compared with it."""

    kafka: EmbeddedKafka
    """Stopped."""
    disk: Path
    repository: Path
    """With one backup of the source `prod`, taken before the last records were written."""
    topics: dict[str, int]
    served: Served
    first_ends: dict[Log, int]
    lock_refused: str


@pytest.fixture(scope="session")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Dead:
    root, cache = tmp_path_factory.mktemp("dead"), cache_dir(os.environ, Path.home())
    kafka = EmbeddedKafka(root / "broker", cache, properties=BROKER | _MORE)
    with kafka:
        made = Matrix(kafka)
        made.compacted()
        made.codecs()
        made.later_start()
        made.append_time()
        made.create("idle", 2, {"retention.ms": "86400000"})
        made.create("busy", 2)
        until_cleaned(made, kafka)
        _commit(kafka, "plain", "codecs", 100)
        _protect(made)
        archive = Archive(kafka.bootstrap, new_place(root / "repository"))
        first = archive.back_up()
        made.transactions(transaction_timeout_ms=900_000)
        _commit(kafka, "plain", "codecs", 700)
        _commit(kafka, "far", "codecs", 5_000_000)
        _commit_in_transactions(kafka, "mover")
        starts = kafka.directory / "data" / "log-start-offset-checkpoint"
        wait_for(lambda: "later-start 0 123" in starts.read_text(), "the log start to be written down")
        refused = _refusal(kafka.directory / "data")
        _killed_while_writing(kafka)
    disk = root / "disk"
    shutil.copytree(kafka.directory / "data", disk)
    with kafka:
        served = served_by(kafka, made.topics)
    ends = {Log(c.log.name, c.log.partition): c.end for c in archive.manifest(first.entry.id).cut}
    return Dead(kafka, disk, root / "repository", made.topics, served, ends, refused)


def _protect(made: Matrix) -> None:
    """An ACL that stays and one that goes; a quota."""
    rules = [
        AclBinding(
            ResourceType.TOPIC, name, ResourcePatternType.LITERAL, "User:app", "*", AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        for name in ("elsewhere", "gone")
    ]  # fmt: skip
    for waiting in made.admin.create_acls(rules).values():
        waiting.result(30)
    (deleted,) = made.admin.delete_acls([AclBindingFilter(*_filter("gone"))]).values()
    deleted.result(30)
    made.quota("app", 1_048_576)


def _filter(name: str) -> tuple[object, ...]:
    return (
        ResourceType.TOPIC, name, ResourcePatternType.LITERAL, "User:app", "*", AclOperation.READ,
        AclPermissionType.ALLOW,
    )  # fmt: skip


def _commit(kafka: EmbeddedKafka, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    places = [TopicPartition(topic, p, offset, metadata="näher") for p in range(2)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def _commit_in_transactions(kafka: EmbeddedKafka, group: str) -> None:
    """Position 11 is committed, 22 aborted, 33 left open."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    for number, end in ((11, "commit"), (22, "abort"), (33, "")):
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"mover-{number}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        place = [TopicPartition("idle", 0, number)]
        producer.send_offsets_to_transaction(place, consumer.consumer_group_metadata(), 30)
        if end:
            getattr(producer, f"{end}_transaction")(30)
    consumer.close()


def _refusal(data: Path) -> str:
    """What is said while the broker runs."""
    from logkeep.errors import LogDirUnusable  # noqa: PLC0415 - one use
    from logkeep.kafka.disks.directories import hold_directories  # noqa: PLC0415 - one use

    with pytest.raises(LogDirUnusable) as refused, hold_directories([data]):
        pass
    return f"{refused.value} {refused.value.remedy}"


def _killed_while_writing(kafka: EmbeddedKafka) -> None:
    """Kill the broker while it is written to, after some megabytes."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 1, "message.timeout.ms": 3000})
    acked = threading.Event()
    count = [0]

    def told(error: object, _message: object) -> None:
        count[0] += error is None
        if count[0] > 3000:
            acked.set()

    while not acked.is_set():
        if len(producer) < _MOST_WAITING:  # where the broker is slow, the client's queue must not overflow
            for i in range(200):
                producer.produce("busy", os.urandom(500), b"%d" % i, i % 2, on_delivery=told)
        producer.poll(0.01)
    kafka.kill()
    producer.purge()


def served_by(kafka: EmbeddedKafka, topics: dict[str, int]) -> Served:
    """By an independent client, and by the broker's own files after its recovery."""
    brokers = PlainBrokers("127.0.0.1", kafka.port)
    logs = [Log(topic, p) for topic, count in topics.items() for p in range(count)]
    wait_for(lambda: all(brokers.offset(*log, -2) >= 0 for log in logs), "all logs to have a leader")
    ends = {log: (brokers.offset(*log, -2), brokers.offset(*log, -1)) for log in logs}
    batches = {log: on_disk(kafka, *log, *ends[log]) for log in logs}
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    groups = {}
    for group in GROUPS:
        (answer,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        found = answer.result(30).topic_partitions
        groups[group] = {(p.topic, p.partition): (p.offset, p.metadata or "") for p in found}
    return Served(ends, batches, groups)
