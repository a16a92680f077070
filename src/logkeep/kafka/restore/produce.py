"""Produce requests, version 9, as parts that are handed to the kernel as they are, and what their replies say.

Version 9 is spoken by every broker from Kafka 2.4 to 4.x, and knows nothing of the second edition of transactions: a
batch of a transaction belongs to one that was begun by name. A request has one batch for each of its partitions.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from logkeep.errors import ClusterError, Damaged
from logkeep.formats.kafka_fields import FieldReader
from logkeep.kafka.frames import Bytes
from logkeep.kafka.values import TopicPartition

API, VERSION = "Produce", 9
_ACKS_ALL = -1
_TIMEOUT_MS = 25_000
"""How long a broker waits for its followers: shorter than a client waits for a broker."""
_NO_TAGS = b"\0"
_FIXED = struct.pack(">hi", _ACKS_ALL, _TIMEOUT_MS)
_PARTITION = struct.Struct(">i")
_ANSWER = struct.Struct(">ihq16xBBB")
"""Partition, error, offset; append time and log start are not used; then, if all is well, three empty fields."""
_ALL_WELL = (1, 0, 0)


@dataclass(frozen=True)
class Parcel:
    """One batch and where it goes."""

    log: TopicPartition
    batch: Bytes
    head: Bytes = b""
    """The beginning of the batch, where it lies elsewhere."""

    @property
    def size_bytes(self) -> int:
        return len(self.head) + len(self.batch)


@dataclass(frozen=True)
class Ack:
    """What became of one batch; `said` are the broker's own words about an error."""

    log: TopicPartition
    error: int
    base_offset: int
    said: str = ""


@dataclass(frozen=True)
class ProduceReply:
    throttle_ms: int
    acks: tuple[Ack, ...]


def request_parts(parcels: Sequence[Parcel], transactional_id: str | None = None) -> list[Bytes]:
    """The body of a request; of batches only heads are copied. Parcels of one topic stand together, no log twice."""
    topics = [(topic, list(some)) for topic, some in groupby(parcels, lambda p: p.log.topic)]
    small = _text(transactional_id) + _FIXED + _varint(len(topics) + 1)
    parts: list[Bytes] = []
    for topic, some in topics:
        small += _text(topic) + _varint(len(some) + 1)
        for parcel in some:
            small += _PARTITION.pack(parcel.log.partition) + _varint(parcel.size_bytes + 1) + parcel.head
            parts += [small, parcel.batch]
            small = _NO_TAGS
        small += _NO_TAGS
    parts.append(small + _NO_TAGS)
    return parts


def parse(body: memoryview) -> ProduceReply:
    """Raises ClusterError for what is not such a reply."""
    reader = FieldReader(body)
    try:
        acks = [ack for topic in reader.array(lambda: _topic(reader)) for ack in topic]
        throttle_ms = reader.int32()
        reader.tagged()
    except Damaged as error:
        raise ClusterError(f"a broker sent a produce reply that cannot be read: {error.what}") from error
    return ProduceReply(max(throttle_ms, 0), tuple(acks))


def _topic(reader: FieldReader) -> list[Ack]:
    name = reader.text(compact=True)
    found = reader.array(lambda: _ack(reader, name))
    reader.tagged()
    return found


def _ack(reader: FieldReader, topic: str) -> Ack:
    partition, error, base_offset, *rest = _ANSWER.unpack(reader.take(_ANSWER.size))
    if tuple(rest) == _ALL_WELL:
        return Ack(TopicPartition(topic, partition), error, base_offset)
    reader.at -= len(rest)
    texts = [text for text in reader.array(lambda: _record_error(reader)) if text]
    summary = reader.optional_text(compact=True)
    reader.tagged()
    said = "; ".join(dict.fromkeys([*([summary] if summary else []), *texts[:3]]))
    return Ack(TopicPartition(topic, partition), error, base_offset, said)


def _record_error(reader: FieldReader) -> str | None:
    reader.int32()
    text = reader.optional_text(compact=True)
    reader.tagged()
    return text


def _text(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    plain = text.encode()
    return _varint(len(plain) + 1) + plain


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
