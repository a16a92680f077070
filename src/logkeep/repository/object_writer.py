"""Writes one stored object: hash the plain bytes, pack them, hash the packed bytes, write them, compare the length.

Every object that holds archived data is written here: segments of Kafka logs, ZooKeeper snapshots and transaction
logs, maps of restores. One pass over the data; memory is bounded by one frame. A codec is one class. Kafka logs are cut
into frames between batches, so their codec lives with them and hands in the packed bytes (`write_packed`).
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

import msgspec

from logkeep.errors import StoreError
from logkeep.model.segments import Codec
from logkeep.store.base import ObjectWriter, Store

FRAME_BYTES: Final = 2 << 20
DEFAULT_LEVEL: Final = 1
"""The fastest level of both codecs: the disk should limit a backup, not the codec."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_LARGEST_GZIP_LEVEL: Final = 9
_LARGEST_ZSTD_LEVEL: Final = 19

Piece = memoryview | bytes


class StoredObject(msgspec.Struct, frozen=True, kw_only=True):
    """One object that was written durably. It belongs to no backup before a commit names it."""

    name: str
    token: str
    codec: Codec
    size_bytes: int
    sha256: str
    """The hash of the stored bytes."""
    plain_bytes: int
    plain_sha256: str


class Packer(Protocol):
    """A codec: plain bytes in, stored bytes out."""

    def pack(self, data: Piece) -> Iterator[Piece]: ...

    def rest(self) -> Iterator[Piece]:
        """What is left at the end of the object."""


class StoredWriter:
    """One object being written. The caller chose `name` and `token`."""

    def __init__(
        self, stream: ObjectWriter, name: str, token: str, codec: Codec = Codec.NONE, level: int = DEFAULT_LEVEL
    ) -> None:
        self._stream, self._name, self._token, self._codec = stream, name, token, codec
        self._packer = _packer(codec, level)
        self._plain, self._stored = hashlib.sha256(), hashlib.sha256()
        self._plain_bytes = self._stored_bytes = 0

    def write(self, data: Piece) -> None:
        """Append plain bytes. The buffer may be used again as soon as the call returns."""
        if self._packer is not None:
            self.write_packed(data, self._packer.pack(data))
            return
        self._add_plain(data)
        self._stream.write(data)

    def write_packed(self, data: Piece, packed: Iterable[Piece]) -> None:
        """Append plain bytes for which the caller hands in the stored ones; they may come later."""
        self._add_plain(data)
        self._put(packed)

    def close(self, rest: Iterable[Piece] = ()) -> StoredObject:
        """Write the end of the object and make it durable. `rest`: what a caller that packs has left."""
        self._put(rest)
        if self._packer is not None:
            self._put(self._packer.rest())
        stored, stored_bytes = self._stored, self._stored_bytes
        if self._codec is Codec.NONE:
            stored, stored_bytes = self._plain, self._plain_bytes
        length = self._stream.close()
        if length != stored_bytes:
            raise StoreError(f"{stored_bytes} bytes were written, but the store kept {length}", subject=self._name)
        return StoredObject(
            name=self._name,
            token=self._token,
            codec=self._codec,
            size_bytes=length,
            sha256=stored.hexdigest(),
            plain_bytes=self._plain_bytes,
            plain_sha256=self._plain.hexdigest(),
        )

    def abort(self) -> None:
        """Discard the object. Harmless after `close` and a second time."""
        self._stream.abort()

    def _add_plain(self, data: Piece) -> None:
        self._plain.update(data)
        self._plain_bytes += len(data)

    def _put(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            self._stored.update(piece)
            self._stored_bytes += len(piece)
            self._stream.write(piece)


def put_object(store: Store, name: str, data: bytes, token: str, codec: Codec = Codec.NONE) -> StoredObject:
    """Write a whole object."""
    writer = StoredWriter(store.open_new(name, len(data)), name, token, codec)
    try:
        writer.write(data)
        return writer.close()
    except BaseException:
        writer.abort()
        raise


class _Gzip:
    def __init__(self, level: int) -> None:
        self._deflate = zlib.compressobj(level, zlib.DEFLATED, _GZIP)

    def pack(self, data: Piece) -> Iterator[bytes]:
        if packed := self._deflate.compress(data):
            yield packed

    def rest(self) -> Iterator[bytes]:
        yield self._deflate.flush()


class _Zstd:
    """Frames of at most 2 MiB of plain bytes, back to back."""

    def __init__(self, level: int) -> None:
        self._level, self._held = level, bytearray()

    def pack(self, data: Piece) -> Iterator[bytes]:
        view = memoryview(data)
        while view:
            taken = view[: FRAME_BYTES - len(self._held)]
            self._held += taken
            view = view[len(taken) :]
            if len(self._held) == FRAME_BYTES:
                yield from self.rest()

    def rest(self) -> Iterator[bytes]:
        if self._held:
            from logkeep.formats.zstd_frames import packed_frame  # noqa: PLC0415 - imports pyarrow

            yield packed_frame(memoryview(bytes(self._held)), self._level)
            self._held.clear()


def _packer(codec: Codec, level: int) -> Packer | None:
    if codec is Codec.GZIP:
        return _Gzip(min(max(level, 1), _LARGEST_GZIP_LEVEL))
    if codec is Codec.ZSTD:
        return _Zstd(min(max(level, 1), _LARGEST_ZSTD_LEVEL))
    return None
