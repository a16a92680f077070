"""Compresses and decompresses the record sections of batches, with each of Kafka's codecs.

Written so that all brokers and clients read it: gzip is one member, zstd one frame, snappy one bare block. lz4 is
written here as a frame of independent blocks of 64 KiB: Kafka's own reader refuses dependent blocks, which Arrow
writes. The same bytes give the same block as long as the library is the same.

Read: a section is one block of its codec: gzip and zstd streams, lz4 frames, snappy either bare or in the framing of
Java's library (a header of 16 bytes, then blocks preceded by their length). Streams are decompressed step by step, so
a few bytes that claim to be terabytes cost no more than `LARGEST_BATCH_BYTES`; a snappy block, which states its length,
costs no more than it can hold. Buffers are reused: a section is valid
until the next one is requested.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import CODEC_MASK, CODECS, HEADER_BYTES, SNAPPY_RATIO, XERIAL_MAGIC, Batches, Longs
from logkeep.formats.kafka.record_kernels import Bytes

_LEVELS = {"gzip": 6, "zstd": 3}
"""As Kafka's own producers use them."""
_LZ4_HEAD = bytes.fromhex("04224d18604082")
"""Magic; version 1 with independent blocks, no checksums; blocks of up to 64 KiB; checksum of these two bytes."""
_LZ4_BLOCK_BYTES = 64 << 10
_LZ4_STORED = 1 << 31
_LZ4_END = bytes(4)
LARGEST_BATCH_BYTES = 256 << 20
"""Limit for one decompressed batch. Brokers accept 1 MiB of compressed bytes by default."""
TOGETHER_BYTES = 16 << 20
"""About how much is decompressed at a time."""
_FIRST_BYTES = 1 << 20
_LARGEST_BUFFER = 2**31 - 1
_XERIAL_HEADER = 16
_STREAMS = {"gzip": "gzip", "lz4": "lz4", "zstd": "zstd"}


def pack(codec: int, section: Bytes) -> Bytes:
    """A record section compressed with a codec of `CODECS`. Raises ValueError for an unknown codec."""
    if not 0 <= codec < len(CODECS):
        raise ValueError(f"no codec {codec}")
    name = CODECS[codec]
    if name == "none":
        return section
    plain = pa.py_buffer(section)
    if name == "lz4":
        return np.frombuffer(_lz4_frame(plain), np.uint8)
    return np.frombuffer(_codec(name).compress(plain), np.uint8)


def _codec(name: str) -> pa.Codec:
    return pa.Codec(name, compression_level=_LEVELS[name]) if name in _LEVELS else pa.Codec(name)


def _lz4_frame(plain: pa.Buffer) -> bytes:
    codec, parts = pa.Codec("lz4_raw"), [_LZ4_HEAD]
    for at in range(0, plain.size, _LZ4_BLOCK_BYTES):
        piece = plain.slice(at, min(_LZ4_BLOCK_BYTES, plain.size - at))
        block = codec.compress(piece)
        if block.size < piece.size:
            parts += [struct.pack("<I", block.size), block]
        else:
            parts += [struct.pack("<I", piece.size | _LZ4_STORED), piece]
    return b"".join([*parts, _LZ4_END])


@dataclass(frozen=True)
class Sections:
    """Batches and the positions of their records in decompressed bytes."""

    data: Bytes
    batches: Batches
    starts: Longs
    ends: Longs

    def __getitem__(self, chosen: slice) -> "Sections":
        return Sections(self.data, self.batches[chosen], self.starts[chosen], self.ends[chosen])


@dataclass(frozen=True)
class Unreadable:
    """A batch that cannot be decompressed."""

    batches: Batches
    """This batch alone."""
    reason: str


def sections(
    buffer: memoryview | bytes | bytearray, batches: Batches, largest: int = LARGEST_BATCH_BYTES
) -> Iterator[Sections | Unreadable]:
    """The records of all batches in order. Bytes that are not compressed are not copied."""
    if len(buffer) > _LARGEST_BUFFER:
        raise ValueError("spans of records reach no further than 2 GiB")
    data = np.frombuffer(memoryview(buffer).toreadonly(), np.uint8)
    starts, ends = batches.positions + HEADER_BYTES, batches.positions + batches.sizes
    if not (batches.headers["attributes"] & CODEC_MASK).any():
        yield Sections(data, batches, starts, ends)
        return
    yield from _Unpacking(memoryview(buffer), largest).all(batches)


class _Unpacking:
    """A buffer that grows as needed."""

    def __init__(self, source: memoryview, largest: int) -> None:
        self._source, self._largest = source, largest
        self._plain = np.empty(_FIRST_BYTES, np.uint8)
        self._end = 0

    def all(self, batches: Batches) -> Iterator[Sections | Unreadable]:
        borders, first = [0], 0
        self._end = 0
        for index in range(len(batches)):
            reason = self._add(batches[index : index + 1])
            borders.append(self._end)
            if reason or self._end >= TOGETHER_BYTES or index + 1 == len(batches):
                good = batches[first : index if reason else index + 1]
                if len(good):
                    shown = self._plain.view()
                    shown.flags.writeable = False
                    yield Sections(shown, good, np.array(borders[: len(good)]), np.array(borders[1 : len(good) + 1]))
                if reason:
                    yield Unreadable(batches[index : index + 1], reason)
                borders, first, self._end = [0], index + 1, 0

    def _add(self, batch: Batches) -> str:
        """Append the records of one batch; returns why that is impossible, or an empty text."""
        codec = int(batch.headers["attributes"][0]) & CODEC_MASK
        block = self._source[batch.start + HEADER_BYTES : batch.end]
        began = self._end
        try:
            self._unpack(codec, block, began + self._largest)
        except (OSError, Damaged) as error:
            self._end = began
            return error.what if isinstance(error, Damaged) else f"its {CODECS[codec]} block cannot be unpacked"
        return ""

    def _unpack(self, codec: int, block: memoryview, limit: int) -> None:
        if codec >= len(CODECS):
            raise Damaged(f"its codec {codec} is unknown")
        if CODECS[codec] == "none":
            self._append(block, limit)
        elif CODECS[codec] == "snappy":
            for piece in _snappy_blocks(block):
                self._append(snappy_block(piece, limit - self._end), limit)
        elif len(block):
            self._stream(_STREAMS[CODECS[codec]], block, limit)

    def _stream(self, codec: str, block: memoryview, limit: int) -> None:
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(block)), codec) as stream:
            while got := stream.readinto(self._room(limit)):
                self._end += got

    def _room(self, limit: int) -> memoryview:
        """The free bytes at the end, one more than allowed. Raises Damaged if that one was used."""
        if self._end > limit:
            raise _too_large(self._largest)
        if self._end == len(self._plain):
            self._grow(2 * self._end)
        return self._plain[self._end : limit + 1].data

    def _append(self, piece: memoryview | pa.Buffer, limit: int) -> None:
        size = len(piece)
        if size > limit - self._end:
            raise _too_large(self._largest)
        if self._end + size > len(self._plain):
            self._grow(max(2 * len(self._plain), self._end + size))
        self._plain[self._end : self._end + size] = np.frombuffer(piece, np.uint8)
        self._end += size

    def _grow(self, size: int) -> None:
        # A new array each time: earlier sections keep theirs.
        larger = np.empty(size, np.uint8)
        larger[: self._end] = self._plain[: self._end]
        self._plain = larger


def _too_large(largest: int) -> Damaged:
    return Damaged(f"it unpacks to more than {largest >> 20} MiB")


def _snappy_blocks(block: memoryview) -> Iterator[memoryview]:
    if bytes(block[:8]) != XERIAL_MAGIC:
        yield block
        return
    at = _XERIAL_HEADER
    while at < len(block):
        if len(block) - at < 4:
            raise Damaged("its snappy block cannot be unpacked")
        (size,) = struct.unpack_from(">i", block, at)
        if not 0 < size <= len(block) - at - 4:
            raise Damaged("its snappy block cannot be unpacked")
        yield block[at + 4 : at + 4 + size]
        at += 4 + size


def snappy_block(piece: memoryview, room: int) -> pa.Buffer:
    """One bare block, decompressed to at most `room` bytes: a snappy block begins with its length."""
    size = 0
    for index, byte in enumerate(bytes(piece[:5])):
        size |= (byte & 127) << (7 * index)
        if byte < 128:
            break
    if size > room:
        raise _too_large(room)
    if size > len(piece) * SNAPPY_RATIO:
        raise Damaged("its snappy block claims more bytes than it can hold")
    return pa.Codec("snappy").decompress(pa.py_buffer(piece), decompressed_size=size)
