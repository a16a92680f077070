"""Logs as independent zstd frames of complete batches, so that a range can be read without the rest.

Any zstd tool unpacks the log (`zstd -d`): frames are adjacent. Every frame states how many plain bytes it holds and has
a window of at most 8 MiB. A frame ends after the batch that brings it to
`FRAME_BYTES`; a batch larger than that has a frame for itself. So no frame is larger than `LARGEST_SHARED`, or it holds
exactly one batch.

Batches that producers compressed do not get smaller. A frame that mainly consists of them is written as raw blocks:
valid zstd, three bytes more per 128 KiB, and no work for a compressor.

`opened` takes any bytes. It checks a frame's size against the limits above before memory is allocated, and raises only
Damaged.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from logkeep.errors import Damaged
from logkeep.formats.arrow_streams import unpacked_pieces

FRAME_BYTES = 2 << 20
LARGEST_SHARED = 2 * FRAME_BYTES
"""Plain bytes of the largest frame that holds more than one batch."""
LARGEST_BATCH = 1 << 30
LEVEL = 1
"""The fastest one: the disk should limit a backup, not the codec."""

_MAGIC = 0xFD2FB528
MAGIC = struct.pack("<I", _MAGIC)
"""The first bytes of every frame."""
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
_DICTIONARY_FIELD = (0, 1, 2, 4)


def borders(held_bytes: int, sizes: Sequence[int]) -> list[int]:
    """The indexes of batches before which a frame ends, if the current frame has `held_bytes` already.

    0 means that the held bytes are a frame by themselves; batches after the last border begin the next frame.
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


def packed_frame(plain: memoryview, level: int = LEVEL) -> bytes:
    """A frame whose content is compressed."""
    import pyarrow as pa  # noqa: PLC0415 - 30 MB, and most readers of small backups unpack no frame

    # As bytes: a view of pyarrow's buffer has the length of the allocated space.
    frame: bytes = pa.Codec("zstd", compression_level=level).compress(plain, asbytes=True)
    return frame


def raw_frame(plain: memoryview) -> Iterator[bytes | memoryview]:
    """A frame with uncompressed content, in pieces; nothing is copied."""
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
    """Parse a head; 18 bytes are enough for any. Raises Damaged for one that we never write."""
    if len(data) < 5 or struct.unpack_from("<I", data)[0] != _MAGIC:
        raise Damaged("no zstd frame begins here", subject=subject)
    descriptor = data[4]
    single, flag = bool(descriptor & 0x20), descriptor >> 6
    if descriptor & 0x1F:
        raise Damaged("a frame has a checksum, a dictionary or unknown flags", subject=subject)
    field = 1 if single and flag == 0 else _CONTENT_FIELD[flag]
    at = 5 if single else 6
    if not field or len(data) < at + field:
        raise Damaged("a frame does not state its content size", subject=subject)
    content = int.from_bytes(data[at : at + field], "little") + (256 if field == 2 else 0)
    if (content if single else _window(data[5])) > _LARGEST_WINDOW:
        raise Damaged("a frame has a larger window than any that Logkeep writes", subject=subject)
    if not 0 < content <= LARGEST_BATCH:
        raise Damaged(f"a frame says that it holds {content} bytes", subject=subject)
    return FrameHead(at + field, content)


def window_bytes(head: memoryview) -> int:
    """The window that any frame needs, by its head, of which six bytes at least are there."""
    single, flag = bool(head[4] & 0x20), head[4] >> 6
    if not single:
        return _window(head[5])
    at, field = 5 + _DICTIONARY_FIELD[head[4] & 3], _CONTENT_FIELD[flag] or 1
    return int.from_bytes(head[at : at + field], "little") + (256 if field == 2 else 0)


def _window(descriptor: int) -> int:
    base = 1 << (10 + (descriptor >> 3))
    return base + (base >> 3) * (descriptor & 7)


def frame_end(data: memoryview, head: FrameHead, subject: str) -> int | None:
    """The byte after the first frame in `data`, by its block heads alone; None if more bytes are needed."""
    at, last = head.size, False
    while not last:
        if at + 3 > len(data):
            return None
        last, kind, size, at = _block(data, at)
        if kind == _RESERVED_BLOCK or size > _BLOCK_BYTES:
            raise Damaged("a block of a frame is impossible", subject=subject)
    return at if at <= len(data) else None


def _block(data: memoryview, at: int) -> tuple[bool, int, int, int]:
    """By the head of a block: whether it is the last one, its type, its size, the byte after it."""
    head = int.from_bytes(data[at : at + 3], "little")
    kind, size = head >> 1 & 3, head >> 3
    return bool(head & 1), kind, size, at + 3 + (1 if kind == _RLE_BLOCK else size)


def most_content(frame: memoryview) -> int:
    """How much a whole frame can hold by its block heads, whatever its own head says; 0 if it is not a frame."""
    if len(frame) < 6 or bytes(frame[:4]) != MAGIC:
        return 0
    single, flag = bool(frame[4] & 0x20), frame[4] >> 6
    dictionary = _DICTIONARY_FIELD[frame[4] & 3]
    at = 5 + (not single) + dictionary + (1 if single and flag == 0 else _CONTENT_FIELD[flag])
    most, last = 0, False
    while not last and at + 3 <= len(frame):
        last, kind, size, at = _block(frame, at)
        most += size if kind in (_RAW_BLOCK, _RLE_BLOCK) else _BLOCK_BYTES
    return most


def opened(frame: memoryview, content_bytes: int, subject: str) -> memoryview:
    """The plain bytes of one complete frame; their number must be that of its head."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if content_bytes > most_content(frame):
        raise Damaged("a frame says that it holds more than its blocks can", subject=subject)
    if content_bytes > LARGEST_SHARED and _first_batch(frame) != content_bytes:
        raise Damaged("a frame is larger than the batch in it", subject=subject)
    try:
        return memoryview(pa.Codec("zstd").decompress(frame, content_bytes)).cast("B")
    except (OSError, pa.ArrowException) as error:
        raise Damaged("a frame cannot be unpacked", subject=subject) from error


def blocks_before_damage(data: memoryview, head: FrameHead) -> tuple[memoryview, int]:
    """The content of the first blocks of a frame, as many as can be unpacked; it need not end in `data`.

    Also returns how far their heads could be read.
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
    """Some blocks as a frame of their own; None if one of them is damaged."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    frame = b"".join((_UNTOLD_HEAD, before, bytes((last[0] | 1,)), last[1:]))
    try:
        return memoryview(next(unpacked_pieces(frame, "zstd", LARGEST_SHARED), b""))
    except (OSError, pa.ArrowException):
        return None


def _block_ends(data: memoryview, head: FrameHead) -> list[int]:
    """The byte after each complete block, as far as their heads can be read."""
    ends, at, last = list[int](), head.size, False
    while not last and at + 3 <= len(data):
        last, kind, size, at = _block(data, at)
        if kind == _RESERVED_BLOCK or size > _BLOCK_BYTES or at > len(data):
            break
        ends.append(at)
    return ends


def _first_batch(frame: memoryview) -> int:
    """The size of the first batch of a frame, from its first bytes alone; -1 if unreadable."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    from logkeep.formats.kafka.batches import OVERHEAD_BYTES  # noqa: PLC0415 - imports numpy

    try:
        start = next(unpacked_pieces(frame, "zstd", OVERHEAD_BYTES), b"")
    except (OSError, pa.ArrowException):
        return -1
    return int.from_bytes(start[8:12], "big") + OVERHEAD_BYTES if len(start) == OVERHEAD_BYTES else -1
