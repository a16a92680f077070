"""Reads what is left of a damaged packed object, for callers that can check the bytes themselves.

Wrong bytes raise nothing: they are left out, or come out as other bytes. After damage gzip yields only what its one
stream still unpacks to; zstd continues with the next frame, because frames are independent. An object without damage
yields exactly its plain bytes. Memory is bounded by one read and one frame, the output by twice the expected size, and
the search for frames by `_EFFORT`.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from logkeep.errors import Damaged
from logkeep.formats.zstd_frames import LARGEST_SHARED, MAGIC, blocks_before_damage, frame_end, frame_head, opened
from logkeep.model.segments import Codec
from logkeep.repository.segments.reader import StoredLog, inflated

_CHUNK: Final = 4 << 20
_LARGEST_FRAME: Final = LARGEST_SHARED + (64 << 10)
"""Packed size: incompressible data takes a little more."""
_AHEAD: Final = _LARGEST_FRAME + len(MAGIC)
_EFFORT: Final = 16 << 20
"""How many bytes are searched without success before the search ends: bytes made to look like frames would take
quadratic time."""
_EFFORT_PER_STEP: Final = 256
_GZIP_HEAD: Final = b"\x1f\x8b\x08\x00"
_NO_TIME: Final = bytes(4)
_NOTHING: Final = memoryview(b"")


def salvaged(stored: StoredLog, effort_bytes: int = _EFFORT) -> Iterator[memoryview]:
    """What can be read of the plain bytes. Raises ObjectMissing. `effort_bytes`: see `_EFFORT`."""
    size = min(stored.store.head(stored.name).size, stored.stored_bytes)
    chunks = stored.chunks(0, size, _CHUNK)
    if stored.codec is Codec.NONE:
        return (memoryview(chunk) for chunk in chunks)
    most = 2 * stored.plain_bytes + LARGEST_SHARED
    if stored.codec is Codec.ZSTD:
        return _at_most(_Frames(chunks, effort_bytes, stored.name).plain(), most)
    return _inflatable(chunks, most, stored.name)


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
    """Objects that we write have no time and no flags, so the first four bytes are always the same."""
    for number, chunk in enumerate(chunks):
        ours = number == 0 and chunk[4:8] == _NO_TIME
        yield _GZIP_HEAD + chunk[4:] if ours else chunk


class _Frames:
    """Frames in the bytes read. An offset advances; bytes are moved only when more are read."""

    def __init__(self, chunks: Iterator[bytes], effort_bytes: int, name: str) -> None:
        self._chunks, self._effort, self._name = chunks, effort_bytes, name
        self._held, self._at, self._ended = b"", 0, False

    def plain(self) -> Iterator[memoryview]:
        while self._effort >= 0 and self._filled():
            found = _frame(memoryview(self._held)[self._at : self._at + _AHEAD], self._name)
            if len(found.plain):
                yield found.plain
            if found.end:
                self._at += found.end
            else:
                self._seek(found.walked)

    def _filled(self) -> bool:
        """Read until a whole frame and the start of the next are in memory; False at the end."""
        if not self._ended and len(self._held) - self._at < _AHEAD:
            held = [self._held[self._at :]]
            while not self._ended and sum(map(len, held)) < _AHEAD:
                held.append(next(self._chunks, b""))
                self._ended = not held[-1]
            self._held, self._at = b"".join(held), 0
        return self._at < len(self._held)

    def _seek(self, walked: int) -> None:
        """Go to the next possible frame. Bytes that were searched without success reduce the remaining effort."""
        found = self._held.find(MAGIC, self._at + 1)
        after = found if found > 0 else max(len(self._held) - len(MAGIC) + 1, self._at + 1)
        self._effort -= max(walked - (after - self._at), 0) + _EFFORT_PER_STEP
        self._at = after


@dataclass(frozen=True)
class _Found:
    plain: memoryview = _NOTHING
    """What can be read of the frame that should begin here."""
    end: int = 0
    """The byte after it; 0 if unknown."""
    walked: int = 0
    """How many bytes of its blocks were read."""


def _frame(data: memoryview, name: str) -> _Found:
    end = None
    try:
        head = frame_head(data, name)
        if head.content_bytes > LARGEST_SHARED:
            return _Found()
    except Damaged:
        return _Found()
    with suppress(Damaged):
        end = frame_end(data, head, name)
        if end is not None:
            return _Found(opened(data[:end], head.content_bytes, name), end)
    follows = end is not None and bytes(data[end : end + len(MAGIC)]) in (MAGIC, b"")
    plain, walked = blocks_before_damage(data[: end if follows else None], head)
    return _Found(plain, end or 0 if follows else 0, walked)
