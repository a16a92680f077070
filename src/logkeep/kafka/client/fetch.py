"""Encodes and parses Fetch version 13 by hand: record bytes are never copied and never decoded.

Version 13 names a topic by its id, so a topic that was re-created is refused instead of read by mistake. It carries
the epoch of the last record that we have, so a truncated log is distinguished from one that merely grew. With isolation
level 0 everything up to the high watermark is returned, markers and aborted records too; with level 1 everything up to
the last stable offset, and a list of the aborted transactions.

`parse` accepts bytes from any server: every count and length is checked against the bytes that are there first. A
throttled reply has no topics: that is not the end of a log.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple, Protocol
from uuid import UUID

from logkeep.errors import InvalidAnswer
from logkeep.kafka.client.error_codes import failure
from logkeep.kafka.client.frames import encode_varint

_API, _VERSION = 1, 13
_NO_REPLICA, _NO_SESSION, _FINAL_EPOCH = -1, 0, -1
_LEAVE_TO_BROKER = -1
_CLIENT_AT = 12
"""Where the client id begins in a request: after length, API, version and correlation id."""
_BEFORE_MAX_BYTES = 13
"""Bytes between the client id and `max_bytes`: tags of the header, replica, wait and smallest size."""
_VARINT_BITS = 35
_DIVERGING = 0
_LEADER = 1
_SNAPSHOT = 2


class Code(IntEnum):
    """Error codes of a fetch that are handled."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REPLICA_NOT_AVAILABLE = 9
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    KAFKA_STORAGE_ERROR = 56
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    OFFSET_NOT_AVAILABLE = 78
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103


DENIED = frozenset({Code.TOPIC_AUTHORIZATION_FAILED, Code.CLUSTER_AUTHORIZATION_FAILED})
"""The user has no right to read."""


class FetchConnection(Protocol):
    """What fetching needs of a connection to one broker."""

    def send(self, request: bytes) -> None:
        """Send one whole request with its length. Does not wait for the reply."""

    def receive(self) -> memoryview:
        """The next reply, starting with its correlation id. The bytes stay valid until the next `receive`."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class PartitionFetch:
    """One partition of a request."""

    topic_id: UUID
    partition: int
    offset: int
    leader_epoch: int = -1
    """The epoch of the leader as we know it: a broker with a newer epoch refuses the request."""
    last_epoch: int = -1
    """The leader epoch of the last record before `offset` that we have; -1 if there is none."""
    max_bytes: int = 0
    """Limit of this partition; 0: that of the request. The first batch of a request is always whole."""


@dataclass(frozen=True)
class FetchLimits:
    """The largest reply, and how long a broker may wait for it."""

    max_bytes: int = 8 << 20
    max_wait_ms: int = 500
    min_bytes: int = 1
    rack: str = ""
    """The rack of the client: a leader then names a follower in the same rack. Empty: it serves everything itself."""
    client_id: str = "logkeep"
    bytes_per_s: int = 0
    """How fast this task may receive; 0: no limit."""
    committed: bool = False
    """Whether brokers send only what is below the last stable offset, with the list of aborted transactions."""


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted: its first offset, also if that is before the reply, and its producer."""

    first_offset: int
    producer_id: int


@dataclass(frozen=True)
class DivergingEpoch:
    """The end of an epoch in the leader's log."""

    epoch: int
    end_offset: int


@dataclass(frozen=True)
class FetchedPartition:
    """The part of a reply for one partition. `records` is a view into the reply."""

    topic_id: UUID
    partition: int
    error: int
    high_watermark: int
    last_stable: int
    log_start: int
    diverging: DivergingEpoch | None
    leader_epoch: int
    """The leader's epoch, if an error reply has it; otherwise -1."""
    preferred_replica: int
    """The broker in the client's rack to ask instead; -1: this one."""
    records: memoryview
    snapshot: DivergingEpoch | None = None
    """A snapshot with older records of the metadata log: reading has to begin with it."""
    aborted: tuple[AbortedTransaction, ...] = ()
    """Aborted transactions with records or markers in the reply, if only committed records were requested."""

    @property
    def served(self) -> bool:
        """Whether the broker served the request, even without records, and did not refuse it."""
        return self.error == Code.NONE and self.diverging is None and self.preferred_replica < 0


@dataclass(frozen=True)
class FetchReply:
    throttle_ms: int
    partitions: tuple[FetchedPartition, ...]


def encode(wanted: Sequence[PartitionFetch], limits: FetchLimits, correlation: int) -> bytes:
    """One request with its length. A partition must not be named twice."""
    client = limits.client_id.encode()
    parts = [struct.pack(">hhih", _API, _VERSION, correlation, len(client)), client, b"\0"]
    fixed = (_NO_REPLICA, limits.max_wait_ms, limits.min_bytes, limits.max_bytes)
    parts.append(struct.pack(">iiiibii", *fixed, int(limits.committed), _NO_SESSION, _FINAL_EPOCH))
    topics = [(topic, list(group)) for topic, group in groupby(wanted, lambda w: w.topic_id)]
    parts.append(encode_varint(len(topics) + 1))
    for topic, group in topics:
        parts += [topic.bytes, encode_varint(len(group) + 1), *(_partition(w, limits.max_bytes) for w in group), b"\0"]
    rack = limits.rack.encode()
    parts += [encode_varint(1), encode_varint(len(rack) + 1), rack, b"\0"]
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


def asked_bytes(request: bytes) -> int:
    """The `max_bytes` of a request that `encode` made."""
    (client_bytes,) = struct.unpack_from(">h", request, _CLIENT_AT)
    (asked,) = struct.unpack_from(">i", request, _CLIENT_AT + 2 + client_bytes + _BEFORE_MAX_BYTES)
    return int(asked)


def _partition(wanted: PartitionFetch, max_bytes: int) -> bytes:
    where = (wanted.partition, wanted.leader_epoch, wanted.offset, wanted.last_epoch)
    return struct.pack(">iiqiqib", *where, _LEAVE_TO_BROKER, wanted.max_bytes or max_bytes, 0)


def parse(reply: memoryview, correlation: int) -> FetchReply:
    """Read a reply in place. Raises InvalidAnswer for a reply to another request or with invalid bytes."""
    reader = _Reader(reply)
    try:
        return _reply(reader, correlation)
    except (struct.error, IndexError) as error:
        raise InvalidAnswer("a broker sent a fetch reply that cannot be read") from error


def _reply(reader: "_Reader", correlation: int) -> FetchReply:
    if reader.take(">i") != (correlation,):
        raise InvalidAnswer("a broker answered another request than the one it was sent")
    reader.skip_tags()
    throttle_ms, error, _ = reader.take(">ihi")
    if error:
        raise failure(error, subject="fetch", doing="Fetch")
    partitions: list[FetchedPartition] = []
    for _ in range(reader.count(18)):
        topic_id = UUID(bytes=bytes(reader.bytes(16)))
        partitions += [_fetched(reader, topic_id) for _ in range(reader.count(37))]
        reader.skip_tags()
    reader.skip_tags()
    return FetchReply(max(throttle_ms, 0), tuple(partitions))


def _fetched(reader: "_Reader", topic_id: UUID) -> FetchedPartition:
    partition, error, high_watermark, last_stable, log_start = reader.take(">ihqqq")
    aborted = [_aborted(reader) for _ in range(reader.count(17))]
    (preferred,) = reader.take(">i")
    records = reader.bytes(max(reader.varint() - 1, 0))
    tags = reader.tags()
    return FetchedPartition(
        topic_id=topic_id,
        partition=partition,
        error=error,
        high_watermark=high_watermark,
        last_stable=last_stable,
        log_start=log_start,
        diverging=DivergingEpoch(*struct.unpack_from(">iq", tags[_DIVERGING])) if _DIVERGING in tags else None,
        leader_epoch=struct.unpack_from(">ii", tags[_LEADER])[1] if _LEADER in tags else -1,
        preferred_replica=preferred,
        records=records,
        snapshot=_snapshot(tags[_SNAPSHOT]) if _SNAPSHOT in tags else None,
        aborted=tuple(aborted),
    )


def _aborted(reader: "_Reader") -> AbortedTransaction:
    producer_id, first_offset = reader.take(">qq")
    reader.skip_tags()
    return AbortedTransaction(first_offset, producer_id)


def _snapshot(tag: memoryview) -> DivergingEpoch:
    end_offset, epoch = struct.unpack_from(">qi", tag)
    return DivergingEpoch(epoch, end_offset)


class _Reader:
    """A position in a reply that only moves forward and never past its end."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def take(self, shape: str) -> tuple[int, ...]:
        values = struct.unpack_from(shape, self._data, self._at)
        self._at += struct.calcsize(shape)
        return values

    def bytes(self, size: int) -> memoryview:
        if size > len(self._data) - self._at:
            raise IndexError(size)
        self._at += size
        return self._data[self._at - size : self._at]

    def varint(self) -> int:
        number = 0
        for shift in range(0, _VARINT_BITS, 7):
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise IndexError(self._at)

    def count(self, least_bytes: int) -> int:
        """The number of elements of an array, each of at least `least_bytes`; a null array has none."""
        number = max(self.varint() - 1, 0)
        if number * least_bytes > len(self._data) - self._at:
            raise IndexError(number)
        return number

    def tags(self) -> dict[int, memoryview]:
        count = self.varint()
        if count * 2 > len(self._data) - self._at:
            raise IndexError(count)
        return {self.varint(): self.bytes(self.varint()) for _ in range(count)}

    def skip_tags(self) -> None:
        self.tags()
