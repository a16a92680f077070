"""Topics of every shape on a real broker, by independent clients: librdkafka, Apache's Java producer, by hand."""

import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from kafka.protocol.producer.produce import ProduceRequest
from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.kafka.handmade_batches import Batch
from tests.support.kafka.plain_client import PlainBrokers, PlainConnection
from tests.support.processes import wait_for

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BROKER = {
    "message.max.bytes": "12000000",
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "500",
    "transaction.max.timeout.ms": "900000",
}
"""What makes the cleaner quick and large records legal."""
FUTURE_MS = 4_000_000_000_000
_UNTIL_FLUSHED_MS = 5_000
"""Batches are what a test flushes, or as many records as it says: none is sent because its time is up."""


class Matrix:
    """Writes the topics; `topics` tells how many partitions each has."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self._kafka = kafka
        self.admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        self.topics: dict[str, int] = {}

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """The controller has it when it answers; the broker hears of it a moment later, which is waited for."""
        wanted = NewTopic(topic, partitions, 1, config=dict(config or {}))
        for future in self.admin.create_topics([wanted]).values():
            future.result(60)
        wait_for(lambda: self._led(topic) == partitions, f"the broker to lead {topic}")
        self.topics[topic] = partitions
        return topic

    def change(self, topic: str, config: str, value: str) -> None:
        """Set one config of a topic."""
        entry = ConfigEntry(config, value, incremental_operation=AlterConfigOpType.SET)
        wanted = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        for future in self.admin.incremental_alter_configs([wanted]).values():
            future.result(60)

    def delete(self, *topics: str) -> None:
        """Until the broker knows it too: it tells of the topics no more, and their logs cannot be read."""
        for future in self.admin.delete_topics(list(topics)).values():
            future.result(60)
        wait_for(lambda: not any(map(self._is_there, topics)), "the topics to go")

    def _led(self, topic: str) -> int:
        """How many partitions of it the broker leads, as it says."""
        found = PlainBrokers("127.0.0.1", self._kafka.port).metadata(topic).topics[0]
        return sum(each.leader_id >= 0 for each in found.partitions) if found.error_code == 0 else 0

    def _is_there(self, topic: str) -> bool:
        return self._led(topic) > 0 or (self._kafka.directory / "data" / f"{topic}-0").exists()

    def producer(self, **settings: Any) -> Producer:
        """It knows the topics from the start: records that wait for a topic's leader are handed to it one by one, and
        a flush at that moment sends what has arrived so far as a batch of its own.
        """
        named = {name.replace("_", "."): value for name, value in settings.items()}
        producer = Producer({"bootstrap.servers": self._kafka.bootstrap, "linger.ms": _UNTIL_FLUSHED_MS, **named})
        producer.list_topics(timeout=60)
        return producer

    def codecs(self) -> None:
        topic = self.create("codecs", len(CODECS))
        for partition, codec in enumerate(CODECS):
            producer = self.producer(compression_type=codec, batch_num_messages=50)
            for i in range(1000):
                producer.produce(topic, b"value %d " % i * 10, b"key %d" % i, partition)
            producer.flush(30)

    def java(self) -> None:
        """Apache's own producer; the Java snappy is another framing than librdkafka's."""
        topic = self.create("java", 3)
        for codec in ("snappy", "zstd"):
            settings = [f"bootstrap.servers={self._kafka.bootstrap}", f"compression.type={codec}", "linger.ms=20"]
            size = ["--num-records", "5000", "--record-size", "200", "--throughput", "-1"]
            tool = "org.apache.kafka.tools.ProducerPerformance"
            self._kafka.java_tool(tool, ["--topic", topic, *size, "--producer-props", *settings])

    def transactions(self, **settings: Any) -> Producer:
        """Committed, aborted, and one left open: the producer that is returned holds it."""
        topic = self.create("transactions", 1)
        producer = self.producer(transactional_id="matrix", **settings)
        producer.init_transactions(30)
        for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction, None):
            producer.begin_transaction()
            for i in range(40):
                producer.produce(topic, b"in a transaction", b"%d" % i, 0)
            producer.flush(30)
            if end is not None:
                end(30)
        return producer

    def shapes(self) -> None:
        topic = self.create("shapes", 1, {"message.timestamp.after.max.ms": str(2**63 - 1)})
        producer = self.producer()
        for key in (None, b"", b"k"):
            for value in (None, b"", b"v"):
                producer.produce(topic, value, key, 0)
        headers: list[tuple[str, str | bytes | None]] = [
            ("a", b"1"),
            ("a", b"2"),
            ("", b""),
            ("null", None),
            ("bytes", b"\xff\xfe"),
        ]
        producer.produce(topic, b"with headers", b"k", 0, headers=headers)
        for count in range(21):
            producer.produce(topic, b"headers", b"k", 0, headers=[(f"name {n % 7}", b"%d" % n) for n in range(count)])
        for moment in (FUTURE_MS, 1, 1_000_000):
            producer.produce(topic, b"at a time", b"k", 0, timestamp=moment)
        producer.flush(30)
        for moment in (-1, 0):
            self._produce_by_hand(topic, moment)

    def append_time(self) -> None:
        topic = self.create("append-time", 1, {"message.timestamp.type": "LogAppendTime"})
        self._write(topic, 200, "lz4")

    def large(self) -> None:
        topic = self.create("large", 1, {"max.message.bytes": "8000000"})
        producer = self.producer(message_max_bytes=8_000_000)
        for i in range(3):
            producer.produce(topic, bytes([i]) * 5_000_000, None, 0)
            producer.produce(topic, b"small", None, 0)
            producer.flush(60)

    def later_start(self) -> None:
        """A log whose start lies inside a batch."""
        topic = self.create("later-start", 1)
        self._write(topic, 500, "none")
        for future in self.admin.delete_records([TopicPartition(topic, 0, 123)]).values():
            future.result(30)

    def compacted(self) -> None:
        """Start a compacted topic; `clean` must be seen to go on until the cleaner has been there."""
        config = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "segment.ms": "100",
            "delete.retention.ms": "600000",
        }
        topic = self.create("compacted", 1, config)
        for round_ in range(3):
            producer = self.producer(enable_idempotence=True, compression_type=CODECS[round_ * 2])
            for i in range(60):
                value = None if i % 20 == round_ else b"round %d" % round_
                producer.produce(topic, value, b"key %d" % (i % (20 + 10 * round_)), 0)
                if i % 6 == 5:
                    producer.flush(30)
            producer.flush(30)
        self._alone = self.producer(enable_idempotence=True)
        self._alone.produce(topic, b"will be gone", b"key 1", 0)
        self._alone.flush(30)

    def stir(self) -> None:
        """One more record, so that the segment before it is closed and may be cleaned."""
        self._write("compacted", 1, "none")

    def stop_cleaning(self) -> None:
        """Keep the compacted log as it is now; a broker gives up cleaning a topic that is not to be compacted."""
        self.change("compacted", "retention.ms", "-1")
        self.change("compacted", "cleanup.policy", "delete")

    def quota(self, user: str, bytes_per_second: int) -> None:
        """How fast a user may write."""
        change = ["--entity-type", "users", "--entity-name", user, "--alter", "--add-config"]
        limit = f"producer_byte_rate={bytes_per_second}"
        server = ["--bootstrap-server", self._kafka.bootstrap]
        self._kafka.java_tool("kafka.admin.ConfigCommand", [*server, *change, limit])

    def _write(self, topic: str, records: int, codec: str) -> None:
        producer = self.producer(compression_type=codec, batch_num_messages=50)
        for i in range(records):
            producer.produce(topic, b"value %d" % i, b"key %d" % (i % 7), 0)
        producer.flush(30)

    def _produce_by_hand(self, topic: str, moment: int) -> None:
        """Times that client libraries refuse to send or replace."""
        record = b"\x00\x00\x00\x01\x04hi\x00"
        payload = bytes([len(record) * 2]) + record
        batch = Batch(0, base_time_ms=moment, max_time_ms=moment, payload=payload, epoch=-1).encode()
        kind = ProduceRequest.TopicProduceData
        part = kind.PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            transactional_id=None, acks=-1, timeout_ms=5000, topic_data=[kind(name=topic, partition_data=[part])]
        )
        request.API_VERSION = 9
        request.with_header(correlation_id=7, client_id="by-hand")
        connection = PlainConnection("127.0.0.1", self._kafka.port)
        try:
            connection.send(bytes(request.encode(framed=True, header=True)))
            error = struct.unpack_from(">h", connection.receive(), 4 + 1 + 1 + 1 + len(topic) + 1 + 4)[0]
            assert error == 0, error
        finally:
            connection.close()


def let_go(producer: Producer) -> None:
    """End a transaction that stayed open. In a long session its broker has ended it already, when its time was up."""
    with suppress(KafkaException):
        producer.abort_transaction(30)
