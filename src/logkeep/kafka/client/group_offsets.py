"""Encodes OffsetCommit and parses OffsetCommit and OffsetFetch, versions 8 and 9, in one pass over their bytes.

Groups have hundreds of thousands of offsets, and kafka-python makes several objects for each. Older versions have other
layouts: for brokers that have only these, `protocol` is used. Replies are untrusted: a length that does not fit ends in
InvalidAnswer.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from logkeep.errors import InvalidAnswer
from logkeep.kafka.client.frames import Bytes, encode_varint
from logkeep.kafka.client.topology import TopicPartition, by_topic

LOWEST, HIGHEST = 8, 9
"""Version 10 of both has topic ids in place of names."""
_NO_GENERATION = struct.pack(">i", -1)
_EMPTY_TEXT, _NULL, _NO_TAGS = b"\1", b"\0", b"\0"
_COMMITTED = struct.Struct(">iqi")
"""Partition, offset, leader epoch: in requests and in replies."""
_ANSWER = struct.Struct(">ih")
_CODE = struct.Struct(">h")
_THROTTLE_BYTES = 4
T = TypeVar("T")


class GroupOffset(NamedTuple):
    """One partition of a reply to OffsetFetch."""

    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    error: int


class FetchedOffsets(NamedTuple):
    """One group of a reply to OffsetFetch."""

    group: str
    topics: tuple[tuple[str, tuple[GroupOffset, ...]], ...]
    error: int


def commit_request(group: str, commits: Mapping[TopicPartition, tuple[int, int, str]]) -> list[Bytes]:
    """The body of an OffsetCommit request of an administrator: offset, leader epoch and metadata of each log."""
    topics = by_topic(commits)
    parts = [_text(group), _NO_GENERATION, _EMPTY_TEXT, _NULL, encode_varint(len(topics) + 1)]
    for topic, partitions in topics.items():
        parts += [_text(topic), encode_varint(len(partitions) + 1)]
        for partition in partitions:
            offset, epoch, metadata = commits[TopicPartition(topic, partition)]
            parts += [_COMMITTED.pack(partition, offset, epoch), _text(metadata), _NO_TAGS]
        parts.append(_NO_TAGS)
    return [b"".join([*parts, _NO_TAGS])]


def parse_commit(body: Bytes) -> list[tuple[TopicPartition, int]]:
    """The error code of each log in a reply to OffsetCommit."""
    return _parsed(body, "OffsetCommit", _committed)


def parse_fetch(body: Bytes) -> list[FetchedOffsets]:
    """The groups in a reply to OffsetFetch."""
    return _parsed(body, "OffsetFetch", _fetched)


def _text(text: str) -> bytes:
    data = text.encode()
    return encode_varint(len(data) + 1) + data


def _parsed(body: Bytes, api: str, read: "Callable[[_Reply], Iterable[T]]") -> list[T]:
    reply = _Reply(bytes(body))
    try:
        found = list(read(reply))
        reply.skip_tags()
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise InvalidAnswer(f"the reply to {api} cannot be read ({type(error).__name__})") from error
    if reply.at != len(reply.data):
        raise InvalidAnswer(f"the reply to {api} is longer than its fields")
    return found


def _committed(reply: "_Reply") -> Iterator[tuple[TopicPartition, int]]:
    for _ in range(reply.count()):
        topic = reply.text()
        for _ in range(reply.count()):
            partition, code = reply.take(_ANSWER)
            reply.skip_tags()
            yield TopicPartition(topic, partition), code
        reply.skip_tags()


def _fetched(reply: "_Reply") -> Iterator[FetchedOffsets]:
    for _ in range(reply.count()):
        name = reply.text()
        topics = tuple([_topic(reply) for _ in range(reply.count())])
        (code,) = reply.take(_CODE)
        reply.skip_tags()
        yield FetchedOffsets(name, topics, code)


def _topic(reply: "_Reply") -> tuple[str, tuple[GroupOffset, ...]]:
    topic = reply.text()
    found = [_offset(reply) for _ in range(reply.count())]
    reply.skip_tags()
    return topic, tuple(found)


def _offset(reply: "_Reply") -> GroupOffset:
    partition, offset, epoch = reply.take(_COMMITTED)
    metadata = reply.text()
    (code,) = reply.take(_CODE)
    reply.skip_tags()
    return GroupOffset(partition, offset, epoch, metadata, code)


class _Reply:
    """A cursor over a reply that begins with its throttle time."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, _THROTTLE_BYTES

    def take(self, form: struct.Struct) -> tuple[int, ...]:
        found = form.unpack_from(self.data, self.at)
        self.at += form.size
        return found

    def number(self) -> int:
        """An unsigned varint."""
        byte = self.data[self.at]
        self.at += 1
        if byte < 128:
            return byte
        found, shift = byte & 127, 7
        while byte >= 128:
            byte = self.data[self.at]
            self.at += 1
            found |= (byte & 127) << shift
            shift += 7
        return found

    def count(self) -> int:
        """The number of items of an array; null has none. Each item has at least one byte, so a false count ends with
        the data."""
        return max(self.number() - 1, 0)

    def text(self) -> str:
        """A text; null is read as an empty one."""
        size = self.number() - 1
        if size <= 0:
            return ""
        end = self.at + size
        if end > len(self.data):
            raise IndexError
        found = self.data[self.at : end].decode()
        self.at = end
        return found

    def skip_tags(self) -> None:
        for _ in range(self.number()):
            self.number()
            self.at += self.number()
