"""What can still be read of a packed object that is damaged: for who can tell good bytes from bad ones.

Nothing is raised for bytes that are wrong, and nothing is said of them: they are left out, or come out as others.
Behind damage gzip gives only what its one stream still makes; zstd goes on with the next frame, for frames are
independent. Of an object that is not damaged these are the very bytes that were stored. Memory is bounded by one read
and one frame, no more than twice what was stored is given, and the search for frames ends after so much in vain.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from logkeep.errors import Damaged
from logkeep.formats.zstd_frames import LARGEST_SHARED, MAGIC, blocks_before_damage, frame_end, frame_head, opened
from logkeep.model.segments import Codec
from logkeep.repository.backups.segment_bytes import StoredLog, inflated

_CHUNK: Final = 4 << 20
_LARGEST_FRAME: Final = LARGEST_SHARED + (64 << 10)
"""Packed: what does not shrink takes a little more."""
_LOOK: Final = _LARGEST_FRAME + len(MAGIC)
_EFFORT: Final = 16 << 20
"""How many bytes are followed in vain before the search for a good frame is given up: bytes that were made to look like
frames would cost the square of their number."""
_EFFORT_OF_A_LOOK: Final = 256
_GZIP_HEAD: Final = b"\x1f\x8b\x08\x00"
_NO_TIME: Final = bytes(4)
_NOTHING: Final = memoryview(b"")


def salvaged(stored: StoredLog, effort_bytes: int = _EFFORT) -> Iterator[memoryview]:
    """Raises ObjectMissing. `effort_bytes`: see `_EFFORT`."""
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
    """What we write has no time and no flags: there is nothing that its first four bytes could say."""
    for number, chunk in enumerate(chunks):
        ours = number == 0 and chunk[4:8] == _NO_TIME
        yield _GZIP_HEAD + chunk[4:] if ours else chunk


class _Frames:
    """Frame after frame of what is read. An offset goes on; bytes are moved only when more are read."""

    def __init__(self, chunks: Iterator[bytes], effort_bytes: int, name: str) -> None:
        self._chunks, self._effort, self._name = chunks, effort_bytes, name
        self._held, self._at, self._ended = b"", 0, False

    def plain(self) -> Iterator[memoryview]:
        while self._effort >= 0 and self._filled():
            found = _frame(memoryview(self._held)[self._at : self._at + _LOOK], self._name)
            if len(found.plain):
                yield found.plain
            if found.end:
                self._at += found.end
            else:
                self._seek(found.walked)

    def _filled(self) -> bool:
        """Have a whole frame, and what follows it, if there is as much; False at the end."""
        if not self._ended and len(self._held) - self._at < _LOOK:
            held = [self._held[self._at :]]
            while not self._ended and sum(map(len, held)) < _LOOK:
                held.append(next(self._chunks, b""))
                self._ended = not held[-1]
            self._held, self._at = b"".join(held), 0
        return self._at < len(self._held)

    def _seek(self, walked: int) -> None:
        """Where the next frame may begin. What was walked through in vain, and will be again, is paid for."""
        found = self._held.find(MAGIC, self._at + 1)
        after = found if found > 0 else max(len(self._held) - len(MAGIC) + 1, self._at + 1)
        self._effort -= max(walked - (after - self._at), 0) + _EFFORT_OF_A_LOOK
        self._at = after


@dataclass(frozen=True)
class _Found:
    plain: memoryview = _NOTHING
    """What can be had of the frame that should begin here."""
    end: int = 0
    """The byte after it; 0 when that cannot be told."""
    walked: int = 0
    """How far its blocks were followed."""


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
