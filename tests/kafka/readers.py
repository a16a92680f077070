"""What independent clients see of a cluster, and what an archive says of transactions."""

import struct
from collections.abc import Iterable

from confluent_kafka import Consumer, Message, TopicPartition

from logkeep.formats.kafka_log import CONTROL, TRANSACTIONAL, walk


def messages(bootstrap: str, topic: str, partition: int, start: int, end: int) -> list[Message]:
    """Every record of `[start, end)` as librdkafka reads it, those of open and aborted transactions too."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "reader",
        "isolation.level": "read_uncommitted",
        "enable.partition.eof": False,
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    found: list[Message] = []
    try:
        consumer.assign([TopicPartition(topic, partition, start)])
        position = start
        while position < end:
            for message in consumer.consume(1000, 0.2):
                assert message.error() is None, message.error()
                found.append(message)
            (where,) = consumer.position([TopicPartition(topic, partition)])
            position = max(position, where.offset)
    finally:
        consumer.close()
    return [m for m in found if m.offset() < end]


def committed_offsets(batches: Iterable[bytes]) -> set[int]:
    """Offsets whose transaction was committed inside of what is archived; plain records count as well."""
    good: set[int] = set()
    waiting: dict[int, set[int]] = {}
    for data in batches:
        (batch,) = walk(data).batches.headers
        producer, first = int(batch["producer_id"]), int(batch["base_offset"])
        offsets = set(range(first, first + int(batch["last_offset_delta"]) + 1))
        if batch["attributes"] & CONTROL:
            decided = waiting.pop(producer, set())
            good |= decided if _is_commit(data) else set()
        elif batch["attributes"] & TRANSACTIONAL:
            waiting.setdefault(producer, set()).update(offsets)
        else:
            good |= offsets
    return good


def _is_commit(control: bytes) -> bool:
    """The marker's one record: length, attributes, time, offset, then a key of four bytes: version and type."""
    return bool(struct.unpack_from(">hh", control, 61 + 5)[1] == 1)
