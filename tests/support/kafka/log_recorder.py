"""An independent recorder of an application's log on Kafka: read by kafka-python, folded by code of its own.

It shares no code with the application: headers, documents and events are read here by the bytes that
docs/formats/checkpoints.md describes.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from kafka import KafkaConsumer, TopicPartition

_EVENT, _CREATE = b"\x02\x01", b"\x03\x01"
_SOURCE_TAIL = struct.Struct(">iqI")
Message = tuple[int, int, int]
"""The identity of a message between partitions: partition and position of its cause, and its number among the sends."""


class Cut(NamedTuple):
    """The first create of a checkpoint in the log of a partition."""

    position: int
    forced: bool


@dataclass
class _Partition:
    writes: list[tuple[int, str, Any]] = field(default_factory=list)
    """Position of the event, key, value; None: deleted."""
    sent: dict[Message, int] = field(default_factory=dict)
    """The position of the event that sends it."""
    received: dict[Message, int] = field(default_factory=dict)
    cuts: dict[int, Cut] = field(default_factory=dict)


class LogRecorder:
    """What is committed in all partitions of a log, from the given offsets on."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, starts: Mapping[int, int] | None = None) -> None:
        self._partitions = [_Partition() for _ in range(partitions)]
        self.twice = 0
        """Events of messages that were processed before."""
        logs = [TopicPartition(topic, number) for number in range(partitions)]
        consumer = _consumer(bootstrap)
        consumer.assign(logs)
        for log in logs:
            consumer.seek(log, (starts or {}).get(log.partition, 0))
        ends = consumer.end_offsets(logs)
        while any(consumer.position(log) < ends[log] for log in logs):
            for found in consumer.poll(500, max_records=5000).values():
                for record in found:
                    self._add(record)
        consumer.close()

    def cuts(self, backup_id: int) -> list[Cut]:
        """Of every partition, in their order."""
        return [each.cuts[backup_id] for each in self._partitions]

    def state(self, backup_id: int | None = None) -> dict[str, Any]:
        """The state of all partitions at a checkpoint, or at the end of the log."""
        found: dict[str, Any] = {}
        self.fold(found, backup_id)
        return found

    def fold(self, state: dict[str, Any], backup_id: int | None = None) -> None:
        """Apply to a state what was written up to the checkpoint, or to the end of the log."""
        for each in self._partitions:
            end = 1 << 62 if backup_id is None else each.cuts[backup_id].position
            for position, key, value in each.writes:
                if position < end:
                    if value is None:
                        state.pop(key, None)
                    else:
                        state[key] = msgspec.msgpack.decode(value)

    def under_way(self, backup_id: int) -> tuple[int, int]:
        """How many messages were sent and not received inside the cut, and how many received and not sent."""
        cuts = self.cuts(backup_id)
        sent, received = set[Message](), set[Message]()
        for each, cut in zip(self._partitions, cuts, strict=True):
            sent.update(one for one, position in each.sent.items() if position < cut.position)
            received.update(one for one, position in each.received.items() if position < cut.position)
        return len(sent - received), len(received - sent)

    def _add(self, record: Any) -> None:
        into, headers = self._partitions[record.partition], dict(record.headers)
        if headers["lk-t"] == _CREATE:
            document = json.loads(record.value.splitlines()[0])
            into.cuts.setdefault(document["id"], Cut(record.offset, not document.get("nonce")))
        elif headers["lk-t"] == _EVENT:
            source, writes, sends, *_ = msgspec.msgpack.decode(record.value)
            into.writes += [(record.offset, key, value) for key, value in writes]
            for number in range(len(sends)):
                into.sent[(record.partition, source, number)] = record.offset
            if "lk-in" in headers:
                message = _message(headers["lk-in"])
                self.twice += message in into.received
                into.received.setdefault(message, record.offset)


def end_offsets(bootstrap: str, topic: str, partitions: int) -> dict[int, int]:
    consumer = _consumer(bootstrap)
    ends = consumer.end_offsets([TopicPartition(topic, number) for number in range(partitions)])
    consumer.close()
    return {log.partition: end for log, end in ends.items()}


def _consumer(bootstrap: str) -> KafkaConsumer:
    servers = bootstrap.split(",")
    return KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed", enable_auto_commit=False)


def _message(header: bytes) -> Message:
    length = int.from_bytes(header[1:3], "big")
    partition, position, index = _SOURCE_TAIL.unpack(header[3 + length :])
    return partition, position, index
