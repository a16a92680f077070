"""Records of an application's log: their kinds, headers and values as bytes. No I/O.

    lk-t    u8 kind · u8 version
    lk-cp   u8 1 · 16 bytes application id · u32 history · i64 checkpoint id         on every message between partitions
    lk-src  u8 1 · u16 length, topic · i32 partition · i64 position · u32 index      which message this is
    lk-in   as lk-src, on an event: the message whose processing gave it
    lk-low  i64   the sender has acknowledgements for its messages to this receiver below this position
    lk-n    name of the command, lk-r request id of the client: UTF-8

Numbers are big endian. A command's value is msgpack of the user's value; an event's is msgpack
[source position, writes, sends, reply]; an acknowledgement's is msgpack [[position, index]...]. Create, created and
ignored carry a sealed document. The position in `lk-src` is that of the command whose event sends the message.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, TypeVar

import msgspec

from logkeep.errors import Damaged, UsageError
from logkeep.repository.chain.documents import Document, seal, unseal

KIND, STAMP, SOURCE, INPUT, LOW, NAME, REQUEST = "lk-t", "lk-cp", "lk-src", "lk-in", "lk-low", "lk-n", "lk-r"
RESERVED_PREFIX = "lk/"
ACK_INDEX = 0xFFFF_FFFF
"""The index of an acknowledgement: after all that the same event sends."""
MOST_REQUEST_BYTES = 64

_VERSION = 1
_STAMP = struct.Struct(">B16sIq")
_LONG = struct.Struct(">q")
_TOPIC_LENGTH = struct.Struct(">BH")
_SOURCE_PARTITION, _SOURCE_RECORD = struct.Struct(">i"), struct.Struct(">qI")
_SOURCE_TAIL = struct.Struct(">iqI")
source_tail = _SOURCE_RECORD.pack
"""The other part: position and index."""


class Kind(IntEnum):
    COMMAND = 1
    EVENT = 2
    CREATE = 3
    CREATED = 4
    IGNORED = 5
    ACK = 6


INPUTS = frozenset({Kind.COMMAND, Kind.CREATE, Kind.ACK})
"""What a processor processes; the other kinds are the results of that."""
_KINDS = {bytes((kind, _VERSION)): kind for kind in Kind}
_KIND_HEADERS = {kind: (KIND, data) for data, kind in _KINDS.items()}


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record of a log, or a message on its way to one (position -1)."""

    kind: Kind
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    position: int = -1
    timestamp_ms: int = 0

    def header(self, name: str) -> bytes | None:
        for found, value in self.headers:
            if found == name:
                return value
        return None

    def text(self, name: str) -> str | None:
        data = self.header(name)
        return None if data is None else data.decode("utf-8", "replace")

    def at(self, position: int, timestamp_ms: int) -> "Record":
        return Record(self.kind, self.key, self.value, self.headers, position, timestamp_ms)


class Stamp(msgspec.Struct, frozen=True):
    """The sender's checkpoint id when it sent a message; ids mean something only in one application and history."""

    application: bytes
    history: int
    checkpoint_id: int


class MessageSource(msgspec.Struct, frozen=True):
    """The identity of a message between partitions: the same for every time that it is sent."""

    topic: str
    partition: int
    position: int
    index: int


class SentCommand(msgspec.Struct, frozen=True, array_like=True):
    """A command that an event sends to the partition of its key."""

    name: str
    key: str
    value: bytes


class EventValue(msgspec.Struct, frozen=True, array_like=True):
    """What processing one command changed."""

    source_position: int
    writes: tuple[tuple[str, bytes | None], ...] = ()
    sends: tuple[SentCommand, ...] = ()
    reply: Any = None


class CheckpointDocument(Document, frozen=True, kw_only=True, tag="checkpoint"):
    """What create, created and ignored say. A forced create has no nonce and no repository: its sender knew neither."""

    application: str
    history: int
    id: int
    nonce: str = ""
    reason: str = ""
    source_position: int = -1
    latest: int = -1
    marker: bool = False


def read(
    key: bytes | None, value: bytes, headers: Sequence[tuple[str, bytes]], position: int, timestamp_ms: int
) -> Record:
    """A stored record. Raises Damaged if its kind or version is unknown."""
    for name, data in headers:
        if name == KIND and data in _KINDS:
            return Record(_KINDS[data], key, value, tuple(headers), position, timestamp_ms)
    raise Damaged("the record has no kind that this release reads", subject=f"position {position}")


def command(name: str, key: str, value: bytes, *, request: str | None = None) -> Record:
    """A client's command: no stamp, no source."""
    asked = () if request is None else ((REQUEST, _request(request)),)
    return Record(Kind.COMMAND, key.encode(), value, (_KIND_HEADERS[Kind.COMMAND], (NAME, name.encode()), *asked))


def message(sent: SentCommand, stamp: Stamp, source: MessageSource, low: int) -> Record:
    """A command from one partition to another."""
    marks = ((STAMP, pack_stamp(stamp)), (SOURCE, pack_source(source)), (LOW, _LONG.pack(low)))
    headers = (_KIND_HEADERS[Kind.COMMAND], (NAME, sent.name.encode()), *marks)
    return Record(Kind.COMMAND, sent.key.encode(), sent.value, headers)


def acknowledgement(messages: Sequence[tuple[int, int]], stamp: Stamp, source: MessageSource) -> Record:
    headers = (_KIND_HEADERS[Kind.ACK], (STAMP, pack_stamp(stamp)), (SOURCE, pack_source(source)))
    return Record(Kind.ACK, None, msgspec.msgpack.encode(messages), headers)


def event(command: Record, writes: Any, sends: Any, reply: Any, *, identified: bool) -> Record:
    """The event of a command. It repeats what identifies the command's message, so that replay needs events alone."""
    renamed = {SOURCE: INPUT, LOW: LOW} if identified else {}
    renamed[REQUEST] = REQUEST
    kept = [(renamed[name], data) for name, data in command.headers if name in renamed]
    value = msgspec.msgpack.encode(EventValue(command.position, writes, sends, reply))
    return Record(Kind.EVENT, command.key, value, (_KIND_HEADERS[Kind.EVENT], *kept))


def checkpoint(kind: Kind, document: CheckpointDocument, headers: Sequence[tuple[str, bytes]] = ()) -> Record:
    """A create, created or ignored record."""
    key = f"{RESERVED_PREFIX}{kind.name.lower()}/{document.id}".encode()
    return Record(kind, key, seal(document), (_KIND_HEADERS[kind], *headers))


def document_of(record: Record) -> CheckpointDocument:
    return unseal(record.value, CheckpointDocument, f"{record.kind.name.lower()} at {record.position}")


DecodedT = TypeVar("DecodedT")
_event_decoder = msgspec.msgpack.Decoder(EventValue)
_ack_decoder = msgspec.msgpack.Decoder(tuple[tuple[int, int], ...])


def event_value(record: Record) -> EventValue:
    return _decoded(_event_decoder, record)


def acknowledged(record: Record) -> tuple[tuple[int, int], ...]:
    return _decoded(_ack_decoder, record)


def _decoded(decoder: msgspec.msgpack.Decoder[DecodedT], record: Record) -> DecodedT:
    try:
        return decoder.decode(record.value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Damaged(f"the record cannot be read ({error})", subject=f"position {record.position}") from error


def pack_stamp(stamp: Stamp) -> bytes:
    return _STAMP.pack(_VERSION, stamp.application, stamp.history, stamp.checkpoint_id)


def stamp_of(record: Record) -> Stamp | None:
    return unpack_stamp(record.header(STAMP))


def unpack_stamp(data: bytes | None) -> Stamp | None:
    """None if there is no stamp, or none that this release reads."""
    if data is None or len(data) != _STAMP.size or data[0] != _VERSION:
        return None
    return Stamp(*_STAMP.unpack(data)[1:])


def pack_source(source: MessageSource) -> bytes:
    return source_head(source.topic, source.partition) + source_tail(source.position, source.index)


def source_head(topic: str, partition: int) -> bytes:
    """The part of a packed source that is equal for all records of a partition."""
    name = topic.encode()
    return _TOPIC_LENGTH.pack(_VERSION, len(name)) + name + _SOURCE_PARTITION.pack(partition)


def source_of(record: Record, header: str = SOURCE) -> MessageSource | None:
    return unpack_source(record.header(header))


def unpack_source(data: bytes | None) -> MessageSource | None:
    """None if there is no source, or none that this release reads."""
    if data is None or len(data) < _TOPIC_LENGTH.size or data[0] != _VERSION:
        return None
    length = _TOPIC_LENGTH.unpack_from(data)[1]
    topic, tail = data[3 : 3 + length], data[3 + length :]
    if len(tail) != _SOURCE_TAIL.size:
        return None
    return MessageSource(topic.decode("utf-8", "replace"), *_SOURCE_TAIL.unpack(tail))


def low_of(record: Record) -> int | None:
    data = record.header(LOW)
    return _LONG.unpack(data)[0] if data is not None and len(data) == _LONG.size else None


def request_of(record: Record) -> str | None:
    return record.text(REQUEST)


def in_batches(records: Sequence[Record]) -> list[list[Record]]:
    """Records as appends, in order: a create ends its batch, because the cut is after the batch of its create."""
    batches: list[list[Record]] = [[]]
    for record in records:
        batches[-1].append(record)
        if record.kind == Kind.CREATE:
            batches.append([])
    return [batch for batch in batches if batch]


def _request(request: str) -> bytes:
    data = request.encode()
    if not 0 < len(data) <= MOST_REQUEST_BYTES:
        what = f"it has {len(data)} bytes"
        raise UsageError(what, subject="request id", remedy=f"choose one of 1 to {MOST_REQUEST_BYTES} bytes")
    return data
