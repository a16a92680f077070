"""Reads Avro's container files from untrusted bytes: the header, and the plain bytes of blocks, piece by piece.

A block's size is compared with what the file has, and the sync marker after it with the header's, before any of its
bytes are used: nothing of a torn block is ever seen. Data is unpacked in pieces of at most `PIECE_BYTES`, so that a few
bytes that claim to be terabytes cost no more than that. A snappy block, which cannot be unpacked in pieces, states its
length, and costs no more than it can hold; a zstd frame needs a window, which is limited.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

import pyarrow as pa
from isal import igzip_lib

from logkeep.errors import Damaged, FormatTooNew, UsageError
from logkeep.formats.arrow_streams import unpacked_pieces
from logkeep.formats.datasets.avro.container import CODEC_KEY, LABEL_KEY, MAGIC, SCHEMA_KEY, SYNC_BYTES, AvroCodec
from logkeep.formats.datasets.avro.schemas import LABELS
from logkeep.formats.kafka.compression import snappy_block
from logkeep.formats.zstd_frames import MAGIC as ZSTD_MAGIC
from logkeep.formats.zstd_frames import window_bytes

PIECE_BYTES = 1 << 20
INFLATED_BYTES = 320 << 10
"""The same of deflate: most blocks of ours fit into one such buffer. A growing one takes a fifth longer."""
_USUAL_HEADER, _LARGEST_HEADER = 8 << 10, 1 << 20
_LARGEST_SNAPPY = 256 << 20
_LARGEST_WINDOW = 32 << 20
_TAIL_BYTES = 256 << 10
_NUMBER_BYTES = 10
_ZLIB_CHECKSUM_BYTES = 4
"""fastavro leaves some bytes of zlib's checksum after the deflated ones."""
_INFLATE_ERROR = cast("type[Exception]", igzip_lib.error)
"""isal declares an object of the type."""


@dataclass(frozen=True)
class AvroHeader:
    """What the beginning of a file says."""

    schema: bytes
    codec: AvroCodec
    label: str
    """`logkeep.format`: empty for files of other writers."""
    sync: bytes
    size: int


@dataclass(frozen=True)
class AvroBlock:
    """A whole block of a file."""

    at: int
    records: int
    data_at: int
    size: int

    @property
    def end(self) -> int:
        return self.data_at + self.size + SYNC_BYTES


def read_header(file: BinaryIO, subject: str = "") -> AvroHeader:
    """Raises UsageError for bytes that are not an Avro file of a known codec, FormatTooNew, and Damaged."""
    file.seek(0)
    data = file.read(_USUAL_HEADER)
    if data[: len(MAGIC)] != MAGIC:
        raise UsageError("this is not an Avro file", subject=subject, remedy=_FOREIGN)
    try:
        metadata, at = _metadata(data, subject)
    except Damaged:
        data += file.read(_LARGEST_HEADER)
        metadata, at = _metadata(data, subject)
    sync = data[at - SYNC_BYTES : at]
    codec, label = metadata.get(CODEC_KEY, b"null"), metadata.get(LABEL_KEY, b"").decode(errors="replace")
    if codec.decode(errors="replace") not in list(AvroCodec):
        raise UsageError(f"its codec is {codec.decode(errors='replace')!r:.40}", subject=subject, remedy=_CODECS)
    if label and label not in LABELS.values():
        raise FormatTooNew(f"its format is {label!r:.40}, which this release does not know", subject=subject)
    return AvroHeader(metadata.get(SCHEMA_KEY, b""), AvroCodec(codec.decode()), label, sync, at)


_FOREIGN = "one begins with 'Obj' and 01: copy the file again from where it was written, or remove it"
_CODECS = f"write it with one of {', '.join(AvroCodec)}"


def _metadata(data: bytes, subject: str) -> tuple[dict[str, bytes], int]:
    """The metadata, and the byte after the sync marker that follows it."""
    found: dict[str, bytes] = {}
    at = len(MAGIC)
    while True:
        count, at = _header_number(data, at, subject)
        if count == 0 and at + SYNC_BYTES <= len(data):
            return found, at + SYNC_BYTES
        if count == 0:
            raise _torn(0, subject)
        if count < 0:
            count, (_, at) = -count, _header_number(data, at, subject)
        if count > len(data):
            raise _torn(0, subject)
        for _ in range(count):
            key, at = _header_piece(data, at, subject)
            value, at = _header_piece(data, at, subject)
            found[key.decode(errors="replace")] = value


def _header_number(data: bytes, at: int, subject: str) -> tuple[int, int]:
    found = parse_number(data, at)
    if found is None:
        raise _torn(0, subject)
    return found


def _header_piece(data: bytes, at: int, subject: str) -> tuple[bytes, int]:
    size, at = _header_number(data, at, subject)
    if not 0 <= size <= len(data) - at:
        raise _torn(0, subject)
    return data[at : at + size], at + size


def parse_number(data: bytes, at: int) -> tuple[int, int] | None:
    """A zig-zag varint and the byte after it; None if none ends here."""
    value = 0
    for index, byte in enumerate(data[at : at + _NUMBER_BYTES]):
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            return ((value >> 1) ^ -(value & 1), at + index + 1) if value < 1 << 64 else None
    return None


def blocks(file: BinaryIO, header: AvroHeader, at: int, subject: str = "") -> Iterator[AvroBlock]:
    """Every whole block from `at` on, where one begins. Raises Damaged where the file is torn, or a block is not
    followed by the sync marker."""
    size = file.seek(0, 2)
    while at < size:
        block = _block(file, at, size, subject)
        file.seek(block.end - SYNC_BYTES)
        if file.read(SYNC_BYTES) != header.sync:
            raise Damaged(f"the block at byte {at} is not followed by the sync marker", subject=subject)
        yield block
        at = block.end


def last_block_at(file: BinaryIO, header: AvroHeader, subject: str = "") -> int:
    """Where the last block begins; the end of the file if it has none. Reads backwards. Raises Damaged."""
    size = file.seek(0, 2)
    step = _TAIL_BYTES
    while True:
        begin = max(size - step, header.size - SYNC_BYTES)
        file.seek(begin)
        tail = file.read(size - begin)
        found = tail.rfind(header.sync, 0, len(tail) - 1)
        while found >= 0:
            at = begin + found + SYNC_BYTES
            if at == size or _ends_at(file, at, size, subject):
                return at
            found = tail.rfind(header.sync, 0, found + SYNC_BYTES - 1)
        if begin < header.size:
            raise _torn(size, subject) if size > header.size else Damaged("it has no block", subject=subject)
        step *= 8


def _ends_at(file: BinaryIO, at: int, end: int, subject: str) -> bool:
    try:
        return _block(file, at, end, subject).end == end
    except Damaged:
        return False


def _block(file: BinaryIO, at: int, size: int, subject: str) -> AvroBlock:
    file.seek(at)
    head = file.read(2 * _NUMBER_BYTES)
    count = parse_number(head, 0)
    length = parse_number(head, count[1]) if count else None
    if count is None or length is None:
        if size - at < 2 * _NUMBER_BYTES:
            raise _torn(at, subject)
        raise Damaged(f"the block at byte {at} has no count and size", subject=subject)
    if count[0] < 0 or length[0] < 0:
        raise Damaged(f"the block at byte {at} has a negative count or size", subject=subject)
    found = AvroBlock(at, count[0], at + length[1], length[0])
    if found.end > size:
        raise _torn(at, subject)
    return found


def _torn(at: int, subject: str) -> Damaged:
    what = f"the block at byte {at}" if at else "its header"
    return Damaged(f"the file ends inside {what}", subject=subject)


@dataclass(frozen=True)
class StoredPiece:
    """Bytes of a file that need not be unpacked."""

    file: BinaryIO
    at: int
    size: int

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        self.file.seek(self.at)
        return self.file.read(self.size)

    def read_into(self, place: memoryview) -> None:
        self.file.seek(self.at)
        if hasattr(self.file, "readinto") and self.file.readinto(place) == self.size:
            return
        place[:] = self.read()


def plain_pieces(
    file: BinaryIO, codec: AvroCodec, block: AvroBlock, subject: str = ""
) -> Iterator[bytes | StoredPiece]:
    """The plain bytes of a block, in order; never an empty piece. Raises Damaged."""
    stored = _stored_pieces(file, block)
    packed = (piece.read() for piece in stored)
    try:
        match codec:
            case AvroCodec.NULL:
                yield from stored
            case AvroCodec.DEFLATE:
                yield from _inflated(packed)
            case AvroCodec.SNAPPY:
                yield from _snappy(b"".join(packed))
            case AvroCodec.ZSTANDARD:
                yield from _zstd(_BlockFile(file, block))
    except (OSError, ValueError, _INFLATE_ERROR, pa.ArrowException, Damaged) as error:
        reason = f": {error.what}" if isinstance(error, Damaged) else ""
        raise Damaged(f"the block at byte {block.at} cannot be unpacked{reason}", subject=subject) from error


def _stored_pieces(file: BinaryIO, block: AvroBlock) -> Iterator[StoredPiece]:
    end = block.data_at + block.size
    return (StoredPiece(file, at, min(PIECE_BYTES, end - at)) for at in range(block.data_at, end, PIECE_BYTES))


def _inflated(packed: Iterator[bytes]) -> Iterator[bytes]:
    stream, after = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE, hist_bits=15), 0
    for data in packed:
        after += len(data) if stream.eof else 0
        plain = b"" if stream.eof else stream.decompress(data, INFLATED_BYTES)
        while plain:
            yield plain
            plain = b"" if stream.eof else stream.decompress(b"", INFLATED_BYTES)
    if not stream.eof:
        raise Damaged("the compressed bytes end early")
    if after + len(stream.unused_data) > _ZLIB_CHECKSUM_BYTES:
        raise Damaged("bytes follow the compressed ones")


def _snappy(data: bytes) -> Iterator[bytes]:
    if len(data) < 4:
        raise Damaged("the checksum is missing")
    plain = snappy_block(memoryview(data)[:-4], _LARGEST_SNAPPY)
    if zlib.crc32(plain) != int.from_bytes(data[-4:], "big"):
        raise Damaged("the checksum does not match")
    if plain.size:
        yield plain.to_pybytes()


class _BlockFile:
    """A block's data as a file of its own."""

    closed = False

    def __init__(self, file: BinaryIO, block: AvroBlock) -> None:
        self._file, self._at, self._end = file, block.data_at, block.data_at + block.size

    def read(self, size: int = -1) -> bytes:
        left = self._end - self._at
        self._file.seek(self._at)
        data = self._file.read(left if size < 0 else min(size, left))
        self._at += len(data)
        return data

    def peek(self, size: int) -> bytes:
        data = self.read(size)
        self._at -= len(data)
        return data

    def close(self) -> None:
        self.closed = True


def _zstd(data: _BlockFile) -> Iterator[bytes]:
    head = data.peek(18)
    if head[:4] != ZSTD_MAGIC or len(head) < 6:
        raise Damaged("no zstd frame begins there")
    if window_bytes(memoryview(head)) > _LARGEST_WINDOW:
        raise Damaged(f"its window is larger than {_LARGEST_WINDOW >> 20} MiB")
    yield from unpacked_pieces(data, "zstd", PIECE_BYTES)
