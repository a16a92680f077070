"""Events about generations as Avro binary, and the batch that carries them to a topic.

The schema is the record `AvroCompactedLogBackupCoordination` in namespace `ch.tbd.kafka.backuprestore.model.avro`:
`event` (enum ACTIVATE, PASSIVATE), `connectorInstanceName` string, `topic` string, `partition` int, `offset` long,
`timestamp` long. Plain Avro binary without framing; the key is the name of the topic.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import google_crc32c

_CHECKED = struct.Struct(">hiqqqhii")
"""Attributes, last offset delta, base and largest time, producer, its epoch, sequence, records."""
_OUTSIDE = struct.Struct(">qiibI")
"""Base offset, length, leader epoch, version, CRC."""
_AFTER_LENGTH = 9


class CoordinationKind(IntEnum):
    """By its index in the enum of the schema."""

    ACTIVATE = 0
    PASSIVATE = 1


class CoordinationEvent(NamedTuple):
    kind: CoordinationKind
    instance: str
    topic: str
    partition: int
    offset: int
    time_ms: int

    def encode(self) -> bytes:
        numbers = (self.partition, self.offset, self.time_ms)
        return zigzag(self.kind) + _text(self.instance) + _text(self.topic) + b"".join(map(zigzag, numbers))


def zigzag(number: int) -> bytes:
    """A signed 64-bit number, as Avro and Kafka's records write it."""
    left, made = ((number << 1) ^ (number >> 63)) & (2**64 - 1), bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes(made) + bytes([left])


def _text(text: str) -> bytes:
    data = text.encode()
    return zigzag(len(data)) + data


def event_batch(events: Sequence[CoordinationEvent]) -> bytes:
    """One record batch (version 2, uncompressed, no producer), one record for each event."""
    times = [event.time_ms for event in events]
    records = b"".join(_record(at, event, times[0]) for at, event in enumerate(events))
    checked = _CHECKED.pack(0, len(events) - 1, times[0], max(times), -1, -1, -1, len(events)) + records
    return _OUTSIDE.pack(0, _AFTER_LENGTH + len(checked), -1, 2, google_crc32c.value(checked)) + checked


def _record(at: int, event: CoordinationEvent, base_time_ms: int) -> bytes:
    value = event.encode()
    body = b"\0" + zigzag(event.time_ms - base_time_ms) + zigzag(at)
    body += _text(event.topic) + zigzag(len(value)) + value + b"\0"
    return zigzag(len(body)) + body
