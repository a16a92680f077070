"""Reads the plain bytes of a stored object with any codec: whole, in pieces, or a range.

Verify, restore and merge read objects through this module and see no difference between `.log` and `.log.zst`. Memory
is bounded: one read of 8 MiB and one frame. Stored bytes are not trusted: they must unpack to exactly the size in the
segment row; otherwise Damaged is raised, at the latest after the last piece. Bytes before the damage are yielded first.
`damaged_bytes` reads the bytes after it.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from logkeep.errors import Damaged, FormatTooNew, ObjectMissing
from logkeep.formats.kafka.batch_index import BatchIndex, decode
from logkeep.formats.zstd_frames import opened
from logkeep.formats.zstd_reader import unpacked_frames
from logkeep.model.segments import Codec, Segment
from logkeep.model.work import Progress
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.base import Store

if TYPE_CHECKING:
    from logkeep.repository.parts import Expected  # loads pyarrow, which readers of one segment do without

_CHUNK = 8 << 20
_LARGEST_INDEX = 256 << 20
_GZIP = 16 + zlib.MAX_WBITS
_STEP = 64 << 10
"""How many packed bytes are unpacked in one step: after an error, the output of its step is unpacked again."""
_STEP_PLAIN = 256 << 10

Watch = Callable[[bytes], object]
"""Called with every stored byte once, in order: for its hash and for progress."""


def _unwatched(_: bytes) -> None: ...


@dataclass(frozen=True)
class StoredLog:
    """One object, with what its segment row states about it."""

    store: Store
    name: str
    codec: Codec
    stored_bytes: int
    plain_bytes: int

    @classmethod
    def of(cls, place: SourceRef, segment: Segment) -> "StoredLog":
        name = layout.segment(place.source, segment)
        return cls(place.store, name, segment.codec, segment.stored_bytes, segment.plain_bytes)

    @classmethod
    def expected(cls, store: Store, what: "Expected") -> "StoredLog":
        return cls(store, what.name, what.codec, what.stored_bytes, what.plain_bytes)

    def pieces(self, watch: Watch = _unwatched, piece_bytes: int = _CHUNK) -> Iterator[memoryview]:
        """All plain bytes, in order; `piece_bytes` stored bytes are read at a time."""
        return _measured(self._pieces(0, self.stored_bytes, watch, piece_bytes), self.plain_bytes, self.name)

    def again_from(self, put_back: Callable[[], int], piece_bytes: int) -> Iterator[memoryview]:
        """All bytes of an object without a codec. After each piece but the last, `put_back` returns how many of its
        last bytes, never all, begin the next piece again."""
        at = 0
        while at < self.stored_bytes:
            piece = self.store.get_range(self.name, at, min(piece_bytes, self.stored_bytes - at))
            at += len(piece)
            yield memoryview(piece)
            at -= put_back() if at < self.stored_bytes else 0
        if at != self.plain_bytes:
            raise Damaged(f"holds {at} bytes of the log instead of {self.plain_bytes}", subject=self.name)

    def whole(self, limit: int) -> bytes:
        """All plain bytes; raises Damaged if they are more than `limit`."""
        if self.plain_bytes > limit:
            raise Damaged(f"holds {self.plain_bytes} bytes, more than {limit}", subject=self.name)
        return b"".join(self.pieces())

    def range(self, start: int, length: int, index: BatchIndex | None = None) -> Iterator[memoryview]:
        """Plain bytes `[start, start + length)`, in pieces. With an index only the frames around them are read."""
        if start < 0 or length < 0 or start + length > self.plain_bytes:
            raise Damaged(f"bytes [{start}, {start + length}) are not all in the object", subject=self.name)
        if self.codec is Codec.NONE:
            return self._pieces(start, start + length, _unwatched)
        span = _span(index, start, length) if index is not None and self.fits(index) else None
        if span is None:
            return _cut(self.pieces(), start, length)
        first, last, skipped, plain = span
        return _cut(_measured(self._pieces(first, last, _unwatched), plain, self.name), start - skipped, length)

    def is_stored_as(self, sha256: str) -> bool:
        """Whether the stored bytes have this hash."""
        summed = hashlib.sha256()
        for chunk in self.chunks(0, self.stored_bytes, _CHUNK):
            summed.update(chunk)
        return summed.hexdigest() == sha256 and self.store.head(self.name).size == self.stored_bytes

    def fits(self, index: BatchIndex) -> bool:
        """Whether the frames of an index fit this object. An index proves nothing: it only saves reading."""
        plain, stored = (int(index.frames[c].sum(dtype=np.int64)) for c in ("plain_bytes", "stored_bytes"))
        return (plain, stored) == (self.plain_bytes, self.stored_bytes)

    def _pieces(self, start: int, end: int, watch: Watch, piece_bytes: int = _CHUNK) -> Iterator[memoryview]:
        chunks = self.chunks(start, end, piece_bytes, watch)
        if self.codec is Codec.NONE:
            return (memoryview(chunk) for chunk in chunks)
        if self.codec is Codec.ZSTD:
            return unpacked_frames(chunks, self.plain_bytes, self.name, opened)
        return inflated(chunks, self.plain_bytes, self.name)

    def chunks(self, start: int, end: int, piece_bytes: int, watch: Watch = _unwatched) -> Iterator[bytes]:
        """Stored bytes `[start, end)`, at most `piece_bytes` at a time."""
        for at in range(start, end, piece_bytes):
            chunk = self.store.get_range(self.name, at, min(piece_bytes, end - at))
            watch(chunk)
            yield chunk


def proven_pieces(place: SourceRef, segment: Segment, progress: Progress) -> Iterator[memoryview]:
    """All plain bytes of a segment; the hash of its object is compared at the end. Raises Damaged."""
    digest = hashlib.sha256()

    def watch(chunk: bytes) -> None:
        digest.update(chunk)
        progress(len(chunk))

    stored = StoredLog.of(place, segment)
    yield from stored.pieces(watch)
    if digest.hexdigest() != segment.sha256:
        raise Damaged("the bytes are not those that were written", subject=stored.name)


def joined(pieces: Iterator[memoryview]) -> memoryview | bytes:
    """All bytes of some pieces in one buffer. A single piece is not copied."""
    some = list(pieces)
    return some[0] if len(some) == 1 else b"".join(some)


def read_index(place: SourceRef, segment: Segment) -> BatchIndex | None:
    """The index of a segment; None if it is lost or damaged: it only saves reading."""
    name = layout.index_of(place.source, segment.log, segment.first, segment.token)
    try:
        return decode(place.store.get(name, _LARGEST_INDEX), name)
    except (ObjectMissing, Damaged, FormatTooNew):
        return None


def inflated(chunks: Iterator[bytes], most: int, name: str) -> Iterator[memoryview]:
    """The content of one gzip member, at most 256 KiB at a time and at most `most` in total. Checks its checksum."""
    inflate = zlib.decompressobj(_GZIP)
    for step in (chunk[at : at + _STEP] for chunk in chunks for at in range(0, len(chunk), _STEP)):
        rest = step
        if inflate.eof:
            raise Damaged("there is data after the end of the gzip stream", subject=name)
        while rest and not inflate.eof:
            before = inflate.copy()
            try:
                piece = inflate.decompress(rest, min(_STEP_PLAIN, most + 1))
            except zlib.error as error:
                if good := _before_error(before, rest)[:most]:
                    yield memoryview(good)
                raise Damaged("the gzip stream cannot be unpacked", subject=name) from error
            most -= len(piece)
            if most < 0:
                raise Damaged("the gzip stream holds more bytes than were written", subject=name)
            if piece:
                yield memoryview(piece)
            rest = inflate.unconsumed_tail
        if inflate.unused_data:
            raise Damaged("there is data after the end of the gzip stream", subject=name)
    if not inflate.eof:
        raise Damaged("the gzip stream is truncated", subject=name)


def _before_error(inflate: "zlib._Decompress", packed: bytes) -> bytes:
    """The output before the first bad byte, which is found byte by byte."""
    plain = bytearray()
    try:
        for at in range(len(packed)):
            plain += inflate.decompress(packed[at : at + 1])
    except zlib.error:
        pass
    return bytes(plain)


def _measured(pieces: Iterator[memoryview], expected: int, name: str) -> Iterator[memoryview]:
    seen = 0
    for piece in pieces:
        seen += len(piece)
        yield piece
    if seen != expected:
        raise Damaged(f"holds {seen} bytes of the log instead of {expected}", subject=name)


def _span(index: BatchIndex, start: int, length: int) -> tuple[int, int, int, int] | None:
    """Stored bytes `[first, last)` of the frames around a range, the plain bytes before them and in them."""
    plain, stored = (np.cumsum(index.frames[c], dtype=np.int64) for c in ("plain_bytes", "stored_bytes"))
    if not length or not len(plain):
        return None
    low = int(np.searchsorted(plain, start, side="right"))
    high = int(np.searchsorted(plain, start + length, side="left"))
    before = (int(plain[low - 1]), int(stored[low - 1])) if low else (0, 0)
    return before[1], int(stored[high]), before[0], int(plain[high]) - before[0]


def _cut(pieces: Iterator[memoryview], start: int, length: int) -> Iterator[memoryview]:
    at, end = 0, start + length
    for piece in pieces:
        if at < end and at + len(piece) > start:
            yield piece[max(start - at, 0) : end - at]
        at += len(piece)
