"""A log as independent zstd frames: each holds whole batches, so a range read stays a range read.

Any zstd tool makes the log of it again (`zstd -d`): frames stand back to back, nothing between them. Every frame says
how many plain bytes it holds and has a window of at most 8 MiB. A frame ends after the batch that brings it to
`FRAME_BYTES`; a batch larger than that has a frame for itself. So no frame is larger than `LARGEST_SHARED`, or it holds
exactly one batch.

Batches that producers compressed shrink no further. Where such batches come in a log that is packed, a frame that is
mainly made of them is written as raw blocks: valid zstd, three bytes more per 128 KiB, and no work for a compressor.

`opened` takes any bytes. It believes a frame's size only within the caps above, before memory is taken for it, and
raises Damaged, never anything else.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import CODEC_MASK, OVERHEAD_BYTES, Batches

FRAME_BYTES = 2 << 20
LARGEST_SHARED = 2 * FRAME_BYTES
"""Plain bytes of the largest frame that holds more than one batch."""
LARGEST_BATCH = 1 << 30
LEVEL = 1
"""The fastest one: a backup should wait for the disk and not for a codec."""

_MAGIC = 0xFD2FB528
MAGIC = struct.pack("<I", _MAGIC)
"""What every frame begins with."""
_RAW_BLOCK, _RLE_BLOCK, _RESERVED_BLOCK = 0, 1, 3
_BLOCK_BYTES = 128 << 10
_RAW_HEAD = struct.Struct("<IBBQ")
_RAW_DESCRIPTOR = 0xC0
"""Content size in eight bytes, a window descriptor, no checksum, no dictionary."""
_RAW_WINDOW = 7 << 3
"""2^(10 + 7) = 128 KiB: as large as a block may be."""
_LARGEST_WINDOW = 8 << 20
_UNTOLD_HEAD = MAGIC + bytes((0, 12 << 3))
"""Of a frame that does not say how much it holds; its window is as large as `LARGEST_SHARED`."""
_CONTENT_FIELD = {0: 0, 1: 2, 2: 4, 3: 8}


def borders(held_bytes: int, sizes: Sequence[int]) -> list[int]:
    """Before which of the batches of these sizes a frame ends, when `held_bytes` of one are there already.

    0 means that what is held is a frame by itself; what follows the last border waits for more.
    """
    ends: list[int] = []
    for index, size in enumerate(sizes):
        if size > FRAME_BYTES and held_bytes:
            ends.append(index)
            held_bytes = 0
        held_bytes += size
        if held_bytes >= FRAME_BYTES:
            ends.append(index + 1)
            held_bytes = 0
    return ends


def compressed_balance(batches: Batches) -> int:
    """Bytes in batches that a producer compressed, less those in batches that it did not: above 0 means mainly."""
    packed = (batches.headers["attributes"] & CODEC_MASK) != 0
    sizes = batches.sizes
    return int(sizes[packed].sum()) - int(sizes[~packed].sum())


def packed_frame(plain: memoryview, level: int = LEVEL) -> bytes:
    """A frame whose content is compressed."""
    # Asked for as bytes: a view of pyarrow's own buffer has the length of the space that was set aside for it.
    frame: bytes = pa.Codec("zstd", compression_level=level).compress(plain, asbytes=True)
    return frame


def raw_frame(plain: memoryview) -> Iterator[bytes | memoryview]:
    """A frame whose content stands in it as it is, in pieces; nothing is copied."""
    yield _RAW_HEAD.pack(_MAGIC, _RAW_DESCRIPTOR, _RAW_WINDOW, len(plain))
    for start in range(0, len(plain), _BLOCK_BYTES):
        piece = plain[start : start + _BLOCK_BYTES]
        yield _block_head(len(piece), last=start + _BLOCK_BYTES >= len(plain))
        yield piece


def _block_head(size: int, *, last: bool) -> bytes:
    return (size << 3 | _RAW_BLOCK << 1 | last).to_bytes(3, "little")


@dataclass(frozen=True)
class FrameHead:
    """What the first bytes of a frame say."""

    size: int
    """Of the head itself."""
    content_bytes: int


HEAD_BYTES = 18
"""No frame head is longer."""


def frame_head(data: memoryview, subject: str) -> FrameHead:
    """Read a head; 18 bytes are enough for any. Raises Damaged for one that we would never write."""
    if len(data) < 5 or struct.unpack_from("<I", data)[0] != _MAGIC:
        raise Damaged("no zstd frame begins here", subject=subject)
    descriptor = data[4]
    single, flag = bool(descriptor & 0x20), descriptor >> 6
    if descriptor & 0x1F:
        raise Damaged("a frame has a checksum, a dictionary or unknown flags", subject=subject)
    field = 1 if single and flag == 0 else _CONTENT_FIELD[flag]
    at = 5 if single else 6
    if not field or len(data) < at + field:
        raise Damaged("a frame does not say how much it holds", subject=subject)
    content = int.from_bytes(data[at : at + field], "little") + (256 if field == 2 else 0)
    if (content if single else _window(data[5])) > _LARGEST_WINDOW:
        raise Damaged("a frame wants a larger window than any of ours", subject=subject)
    if not 0 < content <= LARGEST_BATCH:
        raise Damaged(f"a frame says that it holds {content} bytes", subject=subject)
    return FrameHead(at + field, content)


def _window(descriptor: int) -> int:
    base = 1 << (10 + (descriptor >> 3))
    return base + (base >> 3) * (descriptor & 7)


def frame_end(data: memoryview, head: FrameHead, subject: str) -> int | None:
    """The byte after the frame at the front of `data`, by its block heads alone; None when more bytes are needed."""
    at, last = head.size, False
    while not last:
        if at + 3 > len(data):
            return None
        block = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        if kind == _RESERVED_BLOCK or size > _BLOCK_BYTES:
            raise Damaged("a block of a frame is impossible", subject=subject)
        at += 3 + (1 if kind == _RLE_BLOCK else size)
    return at if at <= len(data) else None


def opened(frame: memoryview, content_bytes: int, subject: str) -> memoryview:
    """The plain bytes of one whole frame, which must be as many as its head says."""
    if content_bytes > LARGEST_SHARED and _first_batch(frame) != content_bytes:
        raise Damaged("a frame is larger than the batch in it", subject=subject)
    try:
        return memoryview(pa.Codec("zstd").decompress(frame, content_bytes)).cast("B")
    except (OSError, pa.ArrowException) as error:
        raise Damaged("a frame cannot be unpacked", subject=subject) from error


def blocks_before_damage(data: memoryview, head: FrameHead) -> tuple[memoryview, int]:
    """What the first blocks of a frame hold, as many as can be unpacked; it need not end in `data`.

    And how far their heads could be followed.
    """
    ends = _block_ends(data, head)
    best, good, bad = memoryview(b""), 0, len(ends) + 1
    while bad - good > 1:
        count = (good + bad) // 2
        begins = ends[count - 2] if count > 1 else head.size
        plain = _unpacked_blocks(data[head.size : begins], data[begins : ends[count - 1]])
        if plain is None:
            bad = count
        else:
            best, good = plain, count
    return best, ends[-1] if ends else head.size


def _unpacked_blocks(before: memoryview, last: memoryview) -> memoryview | None:
    """Some blocks as a frame of their own; None when one of them is damaged."""
    frame = b"".join((_UNTOLD_HEAD, before, bytes((last[0] | 1,)), last[1:]))
    try:
        with pa.CompressedInputStream(pa.BufferReader(frame), "zstd") as stream:
            return memoryview(stream.read(LARGEST_SHARED))
    except (OSError, pa.ArrowException):
        return None


def _block_ends(data: memoryview, head: FrameHead) -> list[int]:
    """The byte after each block that is there as a whole, as far as their heads can be followed."""
    ends, at, last = list[int](), head.size, False
    while not last and at + 3 <= len(data):
        block = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == _RLE_BLOCK else size)
        if kind == _RESERVED_BLOCK or size > _BLOCK_BYTES or at > len(data):
            break
        ends.append(at)
    return ends


def _first_batch(frame: memoryview) -> int:
    """The size of the batch a frame begins with, from its first bytes alone; -1 when they cannot be had."""
    try:
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(frame)), "zstd") as stream:
            start = stream.read(OVERHEAD_BYTES)
    except (OSError, pa.ArrowException):
        return -1
    return int.from_bytes(start[8:12], "big") + OVERHEAD_BYTES if len(start) == OVERHEAD_BYTES else -1
