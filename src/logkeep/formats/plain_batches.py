"""One RecordBatch version 2 of a few plain records, encoded and decoded without arrays.

For logs whose writer appends a handful of records at a time: one step of Python per record, uncompressed, CRC-32C over
the batch. The layout is that of `batches`; every reader of Kafka's log format reads these bytes. Decoding takes any
bytes and raises Damaged if they are not a whole batch that this module could have written.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import google_crc32c

from logkeep.errors import Damaged
from logkeep.formats.kafka.fields import FieldReader

_HEAD = struct.Struct(">qiibI")
"""Base offset, length, leader epoch, version, CRC."""
_CHECKED = struct.Struct(">hiqqqhii")
"""Attributes, last offset delta, base and largest time, producer, its epoch, sequence, records."""
_OVERHEAD_BYTES = 12
HEADER_BYTES = _HEAD.size + _CHECKED.size
_NO_PRODUCER = (-1, -1, -1)
_CONTROL = 0x20

Bytes = bytes | memoryview
Headers = tuple[tuple[str, bytes], ...]


class BatchRecord(NamedTuple):
    """A record without its position."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    time_ms: int


class BatchHeader(NamedTuple):
    """What a walk needs of a batch."""

    base_offset: int
    end_offset: int
    epoch: int
    size_bytes: int


def encode_batch(
    base_offset: int, epoch: int, records: Sequence[BatchRecord], end_offset: int | None = None, time_ms: int = 0
) -> bytes:
    """The records as one batch. `end_offset` lets it cover positions after its last record that have none; only then
    it may be empty, and has the time `time_ms`."""
    base_time = records[0].time_ms if records else time_ms
    body = bytearray()
    for delta, record in enumerate(records):
        fields = _fields(record, delta, record.time_ms - base_time)
        _signed(body, len(fields))
        body += fields
    latest = max((record.time_ms for record in records), default=time_ms)
    last = len(records) - 1 if end_offset is None else end_offset - base_offset - 1
    checked = _CHECKED.pack(0, last, base_time, latest, *_NO_PRODUCER, len(records)) + body
    length = _HEAD.size - _OVERHEAD_BYTES + len(checked)
    return _HEAD.pack(base_offset, length, epoch, 2, google_crc32c.value(checked)) + checked


def read_header(data: Bytes, at: int = 0) -> BatchHeader | None:
    """The header of the batch at a place in a buffer; None if the bytes are none, or end before the batch does."""
    if len(data) - at < HEADER_BYTES:
        return None
    base, length, epoch, magic, _ = _HEAD.unpack_from(data, at)
    _, delta, _, _, _, _, _, count = _CHECKED.unpack_from(data, at + _HEAD.size)
    size = _OVERHEAD_BYTES + length
    if magic != 2 or base < 0 or delta < 0 or count < 0 or not HEADER_BYTES <= size <= len(data) - at:
        return None
    return BatchHeader(base, base + delta + 1, epoch, size)


def header_alone(data: Bytes) -> BatchHeader | None:
    """As `read_header`, of the first bytes of a batch whose rest was not read."""
    base, length, epoch, magic, _ = _HEAD.unpack_from(data)
    delta = struct.unpack_from(">i", data, _HEAD.size + 2)[0]
    size = _OVERHEAD_BYTES + length
    if magic != 2 or base < 0 or delta < 0 or size < HEADER_BYTES:
        return None
    return BatchHeader(base, base + delta + 1, epoch, size)


def is_whole(data: Bytes, at: int, header: BatchHeader) -> bool:
    """Whether the CRC-32C of a batch is right."""
    expected = struct.unpack_from(">I", data, at + _HEAD.size - 4)[0]
    checked = bytes(memoryview(data)[at + _HEAD.size : at + header.size_bytes])
    return bool(google_crc32c.value(checked) == expected)


def walk(data: Bytes) -> Iterator[tuple[int, BatchHeader]]:
    """The whole batches that follow each other directly from the beginning of a buffer, with their places."""
    at = 0
    while (header := read_header(data, at)) is not None and is_whole(data, at, header):
        yield at, header
        at += header.size_bytes


def decode_batch(data: Bytes) -> tuple[BatchHeader, list[BatchRecord]]:
    """The records of one whole batch. Raises Damaged. A control batch has none that are visible."""
    header = read_header(data)
    if header is None or not is_whole(data, 0, header):
        raise Damaged("a batch is cut off, or fails its checksum")
    attributes, _, base_time, _, _, _, _, count = _CHECKED.unpack_from(data, _HEAD.size)
    if attributes & _CONTROL:
        return header, []
    if attributes:
        raise Damaged(f"a batch has the attributes {attributes}")
    reader = FieldReader(memoryview(data)[: header.size_bytes], HEADER_BYTES)
    return header, [_record(reader, base_time) for _ in range(count)]


def _record(reader: FieldReader, base_time: int) -> BatchRecord:
    length = reader.signed()
    end = reader.at + length
    if length < 0 or length > reader.left:
        raise Damaged("a record is longer than its batch")
    reader.int8()
    time_ms = base_time + reader.signed()
    reader.signed()
    key, value = reader.nullable_bytes(), reader.nullable_bytes()
    headers = tuple(_header(reader) for _ in range(reader.signed()))
    if reader.at != end:
        raise Damaged("a record does not have the length that it states")
    return BatchRecord(key, value, headers, time_ms)


def _header(reader: FieldReader) -> tuple[str, bytes]:
    name = reader.take(reader.signed())
    try:
        return name.decode(), reader.nullable_bytes() or b""
    except UnicodeDecodeError as error:
        raise Damaged("the name of a header is not UTF-8") from error


def _fields(record: BatchRecord, delta: int, time_delta: int) -> bytearray:
    out = bytearray(b"\0")
    _signed(out, time_delta)
    _signed(out, delta)
    for part in (record.key, record.value):
        _put(out, part)
    _signed(out, len(record.headers))
    for name, value in record.headers:
        _put(out, name.encode())
        _put(out, value)
    return out


def _put(out: bytearray, part: bytes | None) -> None:
    if part is None:
        out.append(1)
        return
    _signed(out, len(part))
    out += part


def _signed(out: bytearray, value: int) -> None:
    """Append a zigzag varint."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
