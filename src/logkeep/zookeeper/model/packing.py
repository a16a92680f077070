"""Writers and readers of stored objects: plain bytes, gzip, or zstd frames that any zstd tool reads.

Writing is one pass: every plain byte is hashed and written, or hashed, compressed, hashed again and written. Memory is
bounded by one frame.
"""

import hashlib
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol, cast

from logkeep.errors import StoreError
from logkeep.model.segments import Codec
from logkeep.store.base import ObjectWriter
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.model.sink import StoredObject

FRAME_BYTES: Final = 2 << 20
DEFAULT_LEVEL: Final = 1
"""The fastest level of both codecs, so that a backup waits for the disk and not for the CPU."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_LARGEST_ZSTD_LEVEL: Final = 19
SUFFIXES: Final = {Codec.NONE: "", Codec.GZIP: ".gz", Codec.ZSTD: ".zst"}


class _Packer(Protocol):
    def pack(self, data: memoryview | bytes) -> Iterator[memoryview | bytes]: ...

    def rest(self) -> Iterator[memoryview | bytes]: ...


class StoredWriter:
    """One object being written. `name` and `token` come from the shelf and are only passed on."""

    def __init__(self, stream: ObjectWriter, name: str, token: str, codec: Codec, level: int = DEFAULT_LEVEL) -> None:
        self._stream, self._name, self._token, self._codec = stream, name, token, codec
        self._packer = _packer(codec, level)
        self._plain, self._packed = hashlib.sha256(), hashlib.sha256()
        self._plain_bytes = self._packed_bytes = 0

    def write(self, data: memoryview | bytes) -> None:
        self._plain.update(data)
        self._plain_bytes += len(data)
        if self._packer is None:
            self._stream.write(data)
            return
        for piece in self._packer.pack(data):
            self._put(piece)

    def close(self) -> StoredObject:
        if self._packer is not None:
            for piece in self._packer.rest():
                self._put(piece)
        else:
            self._packed, self._packed_bytes = self._plain, self._plain_bytes
        length = self._stream.close()
        if length != self._packed_bytes:
            raise StoreError(f"{self._packed_bytes} bytes were written and {length} were kept", subject=self._name)
        return StoredObject(
            name=self._name,
            token=self._token,
            codec=self._codec,
            size_bytes=length,
            sha256=self._packed.hexdigest(),
            plain_bytes=self._plain_bytes,
            plain_sha256=self._plain.hexdigest(),
        )

    def abort(self) -> None:
        self._stream.abort()

    def _put(self, piece: memoryview | bytes) -> None:
        self._packed.update(piece)
        self._packed_bytes += len(piece)
        self._stream.write(piece)


@dataclass
class RepairedLog:
    """A log that a repair writes. `done` gets what it holds when it is complete."""

    writer: StoredWriter
    done: Callable[[ArchivedLog, StoredObject], None]

    def write(self, data: memoryview | bytes) -> None:
        self.writer.write(data)

    def close(self, kept: ArchivedLog) -> None:
        self.done(kept, self.writer.close())

    def abort(self) -> None:
        self.writer.abort()


class _Gzip:
    def __init__(self, level: int) -> None:
        self._deflate = zlib.compressobj(level, zlib.DEFLATED, _GZIP)

    def pack(self, data: memoryview | bytes) -> Iterator[bytes]:
        if packed := self._deflate.compress(data):
            yield packed

    def rest(self) -> Iterator[bytes]:
        yield self._deflate.flush()


class _Zstd:
    """Frames of at most 2 MiB of plain bytes, back to back."""

    def __init__(self, level: int) -> None:
        self._level, self._held = level, bytearray()

    def pack(self, data: memoryview | bytes) -> Iterator[bytes]:
        view = memoryview(data)
        while view:
            taken = view[: FRAME_BYTES - len(self._held)]
            self._held += taken
            view = view[len(taken) :]
            if len(self._held) == FRAME_BYTES:
                yield from self.rest()

    def rest(self) -> Iterator[bytes]:
        if self._held:
            from logkeep.formats.zstd_frames import packed_frame  # noqa: PLC0415 - brings pyarrow with it

            yield packed_frame(memoryview(bytes(self._held)), self._level)
            self._held.clear()


def _packer(codec: Codec, level: int) -> _Packer | None:
    if codec is Codec.GZIP:
        return _Gzip(min(max(level, 1), 9))
    if codec is Codec.ZSTD:
        return _Zstd(min(max(level, 1), _LARGEST_ZSTD_LEVEL))
    return None


def unpacked_stream(pieces: Iterator[memoryview]) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(PiecesStream(pieces), 1 << 20))


class PiecesStream(io.RawIOBase):
    """A stream over consecutive pieces; wrap it in a `BufferedReader`."""

    def __init__(self, pieces: Iterator[memoryview]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed's name for a buffer is private
        while not len(self._rest):
            following = next(self._pieces, None)
            if following is None:
                return 0
            self._rest = following
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
