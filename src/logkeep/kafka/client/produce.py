"""Encodes Produce requests, version 9, as parts that the kernel sends without a copy, and parses their replies.

Every broker from Kafka 2.4 to 4.x speaks version 9. It predates version 2 of the transaction protocol: partitions must
be added to a transaction before a batch of it is sent. A request has one batch for each of its partitions.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from logkeep.errors import Damaged, InvalidAnswer
from logkeep.formats.kafka.fields import FieldReader
from logkeep.kafka.client.frames import Bytes, encode_varint
from logkeep.kafka.client.topology import TopicPartition

API, VERSION = "Produce", 9
_ACKS_ALL = -1
_TIMEOUT_MS = 25_000
"""How long a broker waits for its followers: less than the client waits for the broker."""
_NO_TAGS = b"\0"
_FIXED = struct.pack(">hi", _ACKS_ALL, _TIMEOUT_MS)
_PARTITION = struct.Struct(">i")
_ANSWER = struct.Struct(">ihq16xBBB")
"""Partition, error, offset; append time and log start are not used; then, without an error, three empty fields."""
_ALL_WELL = (1, 0, 0)
_AFTER_ANSWERS = struct.Struct(">BiB")
"""The tags of the topic, the throttle time, the tags of the reply."""
_ONE_TOPIC, _ONE_BYTE = 2, 0x80
_TOPIC = attrgetter("log.topic")


class OutgoingBatch(NamedTuple):
    """One batch and its partition."""

    log: TopicPartition
    batch: Bytes
    head: Bytes = b""
    """The beginning of the batch, if it is in another buffer."""


class Ack(NamedTuple):
    """The result of one batch; `said` is the broker's text about an error."""

    log: TopicPartition
    error: int
    base_offset: int
    said: str = ""


class ProduceReply(NamedTuple):
    throttle_ms: int
    acks: tuple[Ack, ...]


def request_parts(parcels: Sequence[OutgoingBatch], transactional_id: str | None = None) -> list[Bytes]:
    """The body of a request; only heads of batches are copied. Parcels must be grouped by topic, no log twice."""
    topics = [(topic, list(some)) for topic, some in groupby(parcels, _TOPIC)]
    small = _text(transactional_id) + _FIXED + encode_varint(len(topics) + 1)
    parts: list[Bytes] = []
    for topic, some in topics:
        small += _text(topic) + encode_varint(len(some) + 1)
        for log, batch, head in some:
            small += _PARTITION.pack(log.partition) + encode_varint(len(head) + len(batch) + 1) + head
            parts += (small, batch)
            small = _NO_TAGS
        small += _NO_TAGS
    parts.append(small + _NO_TAGS)
    return parts


def parse(body: memoryview) -> ProduceReply:
    """Parse a reply. Raises InvalidAnswer for invalid bytes."""
    return _parse_simple(body) or _parse_any(body)


def _parse_simple(body: memoryview) -> ProduceReply | None:
    """A reply for a few partitions of one topic, without text, as nearly all are; None if it is not like that."""
    if len(body) < 3 or body[0] != _ONE_TOPIC or body[1] >= _ONE_BYTE:
        return None
    named = 1 + body[1]
    start = named + 1
    if named < 2 or named >= len(body) or not 0 < body[named] < _ONE_BYTE:
        return None
    end = start + (body[named] - 1) * _ANSWER.size
    if len(body) != end + _AFTER_ANSWERS.size:
        return None
    tags, throttle_ms, more_tags = _AFTER_ANSWERS.unpack_from(body, end)
    answers = list(_ANSWER.iter_unpack(body[start:end]))
    if tags or more_tags or any(answer[3:] != _ALL_WELL for answer in answers):
        return None
    try:
        topic = str(body[2:named], "utf-8")
    except UnicodeDecodeError:
        return None
    acks = [Ack(TopicPartition(topic, answer[0]), answer[1], answer[2]) for answer in answers]
    return ProduceReply(max(throttle_ms, 0), tuple(acks))


def _parse_any(body: memoryview) -> ProduceReply:
    reader = FieldReader(body)
    try:
        acks = [ack for topic in reader.array(lambda: _topic(reader)) for ack in topic]
        throttle_ms = reader.int32()
        reader.tagged()
    except Damaged as error:
        raise InvalidAnswer(f"a broker sent a produce reply that cannot be read: {error.what}") from error
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


@lru_cache
def _text(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    plain = text.encode()
    return encode_varint(len(plain) + 1) + plain
