"""Two clusters, a repository, and the command between them; what is there afterwards is told by librdkafka."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.client_view_of_configs import admin, configs_of, own_configs, topic_names
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.consumer_view import seen, watermarks
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for

Log = tuple[str, int]


@dataclass(frozen=True)
class Scene:
    """What is backed up, what is restored to, and the command."""

    kafka: EmbeddedKafka
    target: EmbeddedKafka
    topics: Matrix
    repo: Filled

    @property
    def commands(self) -> Commands:
        return Commands(self.repo.url, self.repo.home)

    def back_up(self, *patterns: str, code: int = 0) -> int:
        chosen = [word for pattern in patterns for word in ("--topics", pattern)]
        where = ("--bootstrap-servers", self.kafka.bootstrap, "--source", "prod")
        return int(self.commands.json("kafka", "backup", *where, *chosen, code=code)["id"])

    def restore_words(self, *more: str) -> tuple[str, ...]:
        """Of the latest backup, unless these words begin with another id, or resume."""
        named = "--resume" in more or (more and not more[0].startswith("-"))
        where = ("--bootstrap-servers", self.target.bootstrap, "--engine", "inline")
        return "kafka", "restore", *(() if named else ("latest",)), *more, *where

    def restore(self, *more: str, code: int = 0) -> dict[str, Any]:
        return self.commands.json(*self.restore_words(*more, "--yes"), code=code)

    def refused(self, *more: str, code: int) -> str:
        """The restore is an error, and neither the target nor the repository has changed."""
        before = self.state()
        said = self.commands.error(*self.restore_words(*more, "--yes"), code=code)
        assert self.state() == before
        return said

    def state(self) -> tuple[object, ...]:
        """All that a restore could change by mistake."""
        topics = sorted(topic_names(self.target))
        return stored(self.repo), topics, configs_of(self.target, topics), positions(self.target)


def stored(repo: Filled) -> dict[str, str]:
    """What a repository holds; not the holds that every reader puts and takes away, nor their directory."""
    return {name: each for name, each in repo.tree().items() if not name.startswith("holds")}


def troubles(done: dict[str, Any]) -> list[dict[str, Any]]:
    """Findings but for notes: those may be about what other tests left behind."""
    return [each for each in done["findings"] if each["severity"] != "note"]


def write(topics: Matrix, topic: str, values: Iterable[str], partition: int = 0) -> None:
    """One record for each, in one batch or few."""
    producer, errors = topics.producer(), list[object]()
    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert not any(errors), errors


def read(kafka: EmbeddedKafka, topic: str, partition: int = 0) -> list[str]:
    """The values that a read-committed consumer sees."""
    return [(r.value or b"").decode() for r in seen(kafka.bootstrap, topic, partition).values()]


def bounds(kafka: EmbeddedKafka, topic: str, partition: int = 0) -> tuple[int, int]:
    return watermarks(kafka.bootstrap, topic, partition)


def positions(kafka: EmbeddedKafka) -> dict[str, dict[Log, tuple[int, str]]]:
    """Every group of a cluster, and where it stands."""
    client = admin(kafka)
    found = client.list_consumer_groups(request_timeout=30).result(30)
    names = sorted(group.group_id for group in found.valid)
    return {name: group_positions(kafka, name) for name in names}


def group_positions(kafka: EmbeddedKafka, group: str) -> dict[Log, tuple[int, str]]:
    client = admin(kafka)
    (answer,) = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {(p.topic, p.partition): (p.offset, p.metadata or "") for p in answer.result(30).topic_partitions}


@contextmanager
def member(kafka: EmbeddedKafka, group: str, topic: str, client_id: str) -> Iterator[Consumer]:
    """Somebody who reads by the group."""
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": group, "client.id": client_id}
    consumer = Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        while not consumer.assignment():
            consumer.poll(0.2)
        yield consumer
    finally:
        consumer.close()


def set_config(kafka: EmbeddedKafka, topic: str, name: str, value: str) -> None:
    """Somebody changes a config of a topic."""
    client, resource = admin(kafka), ConfigResource(ConfigResource.Type.TOPIC, topic)
    resource.add_incremental_config(ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET))
    for future in client.incremental_alter_configs([resource]).values():
        future.result(30)
    wait_for(lambda: own_configs(kafka, topic).get(name) == value, "the config")


def log_end(kafka: EmbeddedKafka, topic: str, partition: int = 0) -> int:
    """A broker may announce the leader of a new partition a moment before that leader answers."""
    consumer, found = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "watcher"}), list[int]()

    def answered() -> bool:
        try:
            found.append(int(consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)[1]))
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
        return bool(found)

    try:
        wait_for(answered, "the leader")
        return found[0]
    finally:
        consumer.close()
