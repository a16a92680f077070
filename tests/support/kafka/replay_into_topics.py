"""Archived logs put into new topics by the replay task itself, and what an independent client reads there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from logkeep.kafka.admin.producers import new_producer_id
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.restore.facts.units import Offsets, Producer, ReplayLog, ReplayUnit, RestoreIsolation, SourceLog
from logkeep.kafka.restore.plan.plan import merge_rule_for
from tests.support.kafka.client_readers import committed_offsets, messages
from tests.support.kafka.whole_backups import Archive
from tests.support.processes import wait_for

OPEN = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "max.message.bytes": "10000000",
}
"""How a topic is configured while it is restored."""

Seen = tuple[int, int, bytes | None, bytes | None, Any]
"""Offset, time, key, value, headers."""


@dataclass(frozen=True)
class Target:
    """A cluster that logs are put into."""

    bootstrap: str
    archive: Archive
    backup_id: int

    @property
    def settings(self) -> ClientSettings:
        return ClientSettings(endpoints(self.bootstrap), request_timeout_s=10)

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """A new topic as a restore makes it; the id of it, in hex."""
        wanted = NewTopic(topic, partitions, 1, config=OPEN | dict(config or {}))
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([wanted]).values():
            future.result(30)
        with Cluster(self.settings) as cluster:
            wait_for(lambda: cluster.metadata().topic(topic) is not None, "the topic")
            return next(found.id.hex for found in cluster.known().topics if found.name == topic)

    def log(self, source: str, partition: int, topic: str, topic_id: str, offsets: Offsets, **more: Any) -> ReplayLog:
        """What the driver of a restore would plan for one partition of a new topic."""
        cut = self.archive.cut(self.backup_id, source, partition)
        with Cluster(self.settings) as cluster:
            producer = new_producer_id(cluster)
        fields: dict[str, Any] = {
            "sources": (
                SourceLog(
                    log=cut.log,
                    start=cut.start,
                    end=cut.end,
                    segments=tuple(self.archive.segments(self.backup_id)[cut.log]),
                    transactional=True,
                ),
            ),
            "topic": topic,
            "topic_id": topic_id,
            "partition": partition,
            "offsets": offsets,
            "base": 0,
            "producer": Producer(producer.producer_id, producer.epoch, 0),
            "transactional_id": f"logkeep-{topic}-{partition}" if offsets is Offsets.PRESERVE else "",
            "isolation": RestoreIsolation.COMMITTED,
            "merge": merge_rule_for(0),
        }
        return ReplayLog(**(fields | more))

    def unit(
        self,
        source: str,
        topic: str,
        offsets: Offsets,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        *,
        prove: bool = False,
        **more: Any,
    ) -> ReplayUnit:
        """All partitions of an archived topic into a new one; `more` are fields of each log."""
        topic_id = self.create(topic, partitions, config)
        logs = [self.log(source, partition, topic, topic_id, offsets, **more) for partition in range(partitions)]
        return ReplayUnit(place=self.archive.place, settings=self.settings, logs=tuple(logs), prove=prove)


def nothing(_: float) -> None:
    """Nobody looks at the progress."""


def expected(source: str, archive: Archive, backup_id: int, topic: str, partition: int) -> list[Seen]:
    """What the source showed of one archived log, told by librdkafka and by the markers in the archive."""
    cut = archive.cut(backup_id, topic, partition)
    good = committed_offsets(archive.batches(backup_id, topic, partition))
    found = messages(source, topic, partition, cut.start, cut.end)
    return [_seen(m) for m in found if m.offset() in good and m.offset() >= cut.start]


def committed(bootstrap: str, topic: str, partition: int) -> tuple[list[Seen], tuple[int, int]]:
    """Every record that a read-committed consumer is shown, from the log start on, and the log's start and end."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "judge",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
    }
    consumer, where = Consumer(settings), TopicPartition(topic, partition)
    found: list[Seen] = []
    try:
        start, end = consumer.get_watermark_offsets(where, 30)
        consumer.assign([TopicPartition(topic, partition, start)])
        position = start
        while position < end:
            for message in consumer.consume(1000, 0.2):
                assert message.error() is None, message.error()
                found.append(_seen(message))
            position = max(position, consumer.position([where])[0].offset)
    finally:
        consumer.close()
    return found, (start, end)


def _seen(message: Any) -> Seen:
    return message.offset(), message.timestamp()[1], message.key(), message.value(), message.headers()


def without_offsets(seen: Iterable[Seen]) -> list[tuple[Any, ...]]:
    return [each[1:] for each in seen]
