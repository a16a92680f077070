"""What can still be read of a packed object that is damaged: for who can tell good bytes from bad ones.

Nothing is raised for bytes that are wrong, and nothing is said of them: they are left out, or come out as others.
Behind damage gzip gives only what its one stream still makes; zstd goes on with the next frame, for frames are
independent. Of an object that is not damaged these are the very bytes that were stored. Memory is bounded by one read
and one frame, and no more than twice what was stored is given.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from logkeep.errors import Damaged
from logkeep.formats.zstd_frames import LARGEST_SHARED, MAGIC, blocks_before_damage, frame_end, frame_head, opened
from logkeep.model.segments import Codec
from logkeep.repository.segment_bytes import StoredLog, inflated

_CHUNK: Final = 4 << 20
_LARGEST_FRAME: Final = LARGEST_SHARED + (64 << 10)
"""Packed: what does not shrink takes a little more."""
_GZIP_HEAD: Final = b"\x1f\x8b\x08\x00"
_NO_TIME: Final = bytes(4)


def salvaged(stored: StoredLog) -> Iterator[memoryview]:
    """Raises ObjectMissing."""
    size = min(stored.store.head(stored.name).size, stored.stored_bytes)
    chunks = _chunks(replace(stored, stored_bytes=size))
    if stored.codec is Codec.NONE:
        return (memoryview(chunk) for chunk in chunks)
    most = 2 * stored.plain_bytes + LARGEST_SHARED
    if stored.codec is Codec.ZSTD:
        return _at_most(_frames(chunks, stored.name), most)
    return _inflatable(chunks, most, stored.name)


def _chunks(stored: StoredLog) -> Iterator[bytes]:
    for at in range(0, stored.stored_bytes, _CHUNK):
        yield stored.store.get_range(stored.name, at, min(_CHUNK, stored.stored_bytes - at))


def _at_most(pieces: Iterator[memoryview], most: int) -> Iterator[memoryview]:
    for piece in pieces:
        if most < len(piece):
            return
        most -= len(piece)
        yield piece


def _inflatable(chunks: Iterator[bytes], most: int, name: str) -> Iterator[memoryview]:
    with suppress(Damaged):
        yield from inflated(_with_head(chunks), most, name)


def _with_head(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """What we write has no time and no flags: there is nothing that its first four bytes could say."""
    for number, chunk in enumerate(chunks):
        ours = number == 0 and chunk[4:8] == _NO_TIME
        yield _GZIP_HEAD + chunk[4:] if ours else chunk


def _frames(chunks: Iterator[bytes], name: str) -> Iterator[memoryview]:
    held, ended = b"", False
    while True:
        while not ended and len(held) < _LARGEST_FRAME:
            chunk = next(chunks, b"")
            held, ended = held + chunk, not chunk
        if not held:
            return
        plain, end = _frame(memoryview(held), name)
        if len(plain):
            yield plain
        held = held[end or _next_frame(held) :]


def _frame(data: memoryview, name: str) -> tuple[memoryview, int]:
    """What can be had of the frame that should begin here, and where it ends; 0 when that cannot be told."""
    end = None
    try:
        head = frame_head(data, name)
        if head.content_bytes > LARGEST_SHARED:
            return memoryview(b""), 0
    except Damaged:
        return memoryview(b""), 0
    with suppress(Damaged):
        end = frame_end(data, head, name)
        if end is not None:
            return opened(data[:end], head.content_bytes, name), end
    follows = end is not None and bytes(data[end : end + len(MAGIC)]) in (MAGIC, b"")
    return blocks_before_damage(data[: end if follows else None], head), end or 0 if follows else 0


def _next_frame(held: bytes) -> int:
    found = held.find(MAGIC, 1)
    return found if found > 0 else max(len(held) - len(MAGIC) + 1, 1)
