"""Decodes the records of one batch in Python, for the small internal topics of a cluster.

One step of Python per record: fine for `__consumer_offsets` and the metadata log, too slow for user data. Takes any
bytes whose CRC was checked; raises Damaged if they are not records. A batch that unpacks to more than the limit is
refused before memory is allocated.
"""

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.arrow_streams import unpacked_pieces
from logkeep.formats.kafka.batches import APPEND_TIME, CODEC_MASK, CODECS, HEADER, HEADER_BYTES, SNAPPY_RATIO
from logkeep.formats.kafka.fields import FieldReader

_LIMIT = 256 << 20
_PIECE_BYTES = 1 << 20
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEAD = 16


class PlainRecord(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None


def records_of(batch: bytes | memoryview, base_offset: int, attributes: int, count: int) -> Iterator[PlainRecord]:
    """All records of a complete batch, with its header."""
    reader = FieldReader(_unpacked(memoryview(batch)[HEADER_BYTES:], attributes & CODEC_MASK))
    for _ in range(count):
        length = reader.signed()
        end = reader.at + length
        if length < 0 or length > reader.left:
            raise Damaged("a record is longer than its batch")
        reader.int8()
        reader.signed()
        offset = base_offset + reader.signed()
        yield PlainRecord(offset, reader.nullable_bytes(), reader.nullable_bytes())
        reader.at = end  # headers are not needed


class RecordBody(NamedTuple):
    """A record without its place in a batch: what compaction keeps of it."""

    time_ms: int
    content: bytes
    """Key, value and headers, encoded."""


def bodies_of(batch: bytes | memoryview) -> dict[int, RecordBody]:
    """By offset, the records of a complete batch. Raises Damaged."""
    header = np.frombuffer(batch, HEADER, 1)[0]
    attributes, base_time_ms, found = int(header["attributes"]), int(header["base_time_ms"]), dict[int, RecordBody]()
    reader = FieldReader(_unpacked(memoryview(batch)[HEADER_BYTES:], attributes & CODEC_MASK))
    for _ in range(int(header["records"])):
        length = reader.signed()
        end = reader.at + length
        reader.int8()
        time_ms = base_time_ms + reader.signed()
        if attributes & APPEND_TIME:
            time_ms = int(header["max_time_ms"])
        offset = int(header["base_offset"]) + reader.signed()
        found[offset] = RecordBody(time_ms, reader.take(end - reader.at))
    return found


def marker_type(batch: bytes | memoryview) -> int:
    """The type of a control batch: 0 abort, 1 commit; other numbers are not about transactions."""
    key = next(records_of(batch, 0, 0, 1)).key or b""
    return FieldReader(key, 2).int16()


def _unpacked(data: memoryview, codec: int) -> bytes | memoryview:
    if codec == 0:
        return data
    if codec >= len(CODECS):
        raise Damaged(f"an unknown codec {codec}")
    try:
        if CODECS[codec] == "gzip":
            return _gunzipped(data)
        return _snappy(data) if CODECS[codec] == "snappy" else _streamed(data, CODECS[codec])
    except (zlib.error, OSError, ValueError) as error:
        raise Damaged(f"a batch cannot be unpacked ({CODECS[codec]})") from error


def _gunzipped(data: memoryview) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    found = stream.decompress(data, _LIMIT)
    if not stream.eof and not stream.unconsumed_tail:
        raise ValueError("it ends early")
    return _bounded(found, more=bool(stream.unconsumed_tail))


def _streamed(data: memoryview, codec: str) -> bytes:
    found = bytearray()
    for piece in unpacked_pieces(data, codec, _PIECE_BYTES):
        found += piece
        if len(found) > _LIMIT:
            break
    return _bounded(bytes(found), more=len(found) > _LIMIT)


def _snappy(data: memoryview) -> bytes:
    """Java writes framed blocks, librdkafka one bare block."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    codec = pa.Codec("snappy")
    if bytes(data[: len(_XERIAL)]) != _XERIAL:
        return _block(codec, bytes(data), _LIMIT)
    reader, found = FieldReader(data, _XERIAL_HEAD), bytearray()
    while reader.left:
        found += _block(codec, reader.take(reader.int32()), _LIMIT - len(found))
    return bytes(found)


def _block(codec: Any, block: bytes, room: int) -> bytes:
    size = FieldReader(block).unsigned()
    if size > min(room, len(block) * SNAPPY_RATIO):
        raise Damaged("a batch unpacks to more than the limit, or than its bytes can hold")
    unpacked: bytes = codec.decompress(block, size, asbytes=True)
    return unpacked


def _bounded(found: bytes, *, more: bool) -> bytes:
    if more:
        raise Damaged("a batch unpacks to more than the limit")
    return found
