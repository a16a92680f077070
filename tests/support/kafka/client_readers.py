"""What independent clients see of a cluster, and what an archive says of transactions."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, walk


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


class Seen(NamedTuple):
    """One record as a consumer sees it."""

    offset: int
    time_kind: int
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: object


@dataclass(frozen=True)
class Read:
    """A whole partition as librdkafka reads it."""

    start: int
    end: int
    """Where it says that the partition ends: the last stable offset under `read_committed`."""
    records: tuple[Seen, ...]


def read_whole(bootstrap: str, logs: Iterable[tuple[str, int]], level: str) -> dict[tuple[str, int], Read]:
    """Several partitions by one consumer, each from its log start to the end that it is told."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "whole",
        "isolation.level": level,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
    }
    consumer = Consumer(settings)
    try:
        starts = {log: consumer.get_watermark_offsets(TopicPartition(*log), 30)[0] for log in logs}
        found: dict[tuple[str, int], list[Seen]] = {log: [] for log in starts}
        ends: dict[tuple[str, int], int] = {}
        consumer.assign([TopicPartition(*log, start) for log, start in starts.items()])
        while len(ends) < len(starts):
            for message in consumer.consume(1000, 0.1):
                log = (message.topic(), message.partition())
                if message.error() is None:
                    found[log].append(
                        Seen(message.offset(), *_time(message), message.key(), message.value(), message.headers())
                    )
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    ends[log] = message.offset()
    finally:
        consumer.close()
    return {log: Read(start, ends[log], tuple(found[log])) for log, start in starts.items()}


def _time(message: Message) -> tuple[int, int]:
    kind, time_ms = message.timestamp()
    return kind, time_ms


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
