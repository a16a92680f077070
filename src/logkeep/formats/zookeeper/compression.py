"""Unpacks snapshots that a server compressed: gzip, and snappy in the framing of Java's library.

`opened` returns a stream that unpacks while it is read and holds no more than a block. Truncated or invalid streams,
and bytes after the end, raise Damaged. Snappy has no end mark: a stream truncated between two blocks is accepted here;
the checksums of the snapshot detect it.
"""

import io
import struct
import zlib
from abc import abstractmethod
from typing import Any, BinaryIO, Final, cast

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import XERIAL_MAGIC
from logkeep.formats.zookeeper.names import SnapshotPacking

LARGEST_BLOCK: Final = 16 << 20
"""Limit for one unpacked block of snappy. Java's library uses 32 KiB by default."""
_PIECE_BYTES: Final = 256 << 10
_GZIP: Final = 16 + zlib.MAX_WBITS
_XERIAL_HEADER: Final = XERIAL_MAGIC + struct.pack(">ii", 1, 1)


def opened(stream: BinaryIO, packing: SnapshotPacking) -> BinaryIO:
    """The plain bytes of a file that was opened. Closing what is returned closes the file."""
    if packing is SnapshotPacking.PLAIN:
        return stream
    unpacking = _Gunzipped(stream) if packing is SnapshotPacking.GZIP else _Unsnapped(stream)
    return cast(BinaryIO, io.BufferedReader(unpacking, _PIECE_BYTES))


class _Unpacked(io.RawIOBase):
    """A stream of pieces that a subclass unpacks."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__()
        self._packed, self._ready = packed, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        while not self._ready:
            piece = self._piece()
            if piece is None:
                return 0
            self._ready = memoryview(piece).cast("B")
        size = min(len(room), len(self._ready))
        room[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            self._packed.close()
        super().close()

    @abstractmethod
    def _piece(self) -> bytes | memoryview | None:
        """The next plain bytes, which may be none; None at the end."""


class _Gunzipped(_Unpacked):
    """One gzip member with checksum and length checked, and nothing after it."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__(packed)
        self._unpacking = zlib.decompressobj(_GZIP)

    def _piece(self) -> bytes | None:
        unpacking = self._unpacking
        if unpacking.eof:
            if unpacking.unused_data or self._packed.read(1):
                raise Damaged("there are bytes after the end of the gzip stream")
            return None
        more = unpacking.unconsumed_tail or self._packed.read(_PIECE_BYTES)
        if not more:
            raise Damaged("the gzip stream ends too early")
        try:
            return unpacking.decompress(more, _PIECE_BYTES)
        except zlib.error:
            raise Damaged("the gzip stream cannot be unpacked") from None


class _Unsnapped(_Unpacked):
    """A header, then blocks preceded by their length."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__(packed)
        if packed.read(len(_XERIAL_HEADER)) != _XERIAL_HEADER:
            raise Damaged("not a snappy stream as a server writes it")

    def _piece(self) -> memoryview | None:
        prefix = self._packed.read(4)
        if not prefix:
            return None
        size = int.from_bytes(prefix, signed=True)
        block = self._read(size) if len(prefix) == 4 and 0 < size <= LARGEST_BLOCK else b""
        if not block or len(block) != size:
            raise Damaged("the snappy stream ends too early, or a block has an impossible length")
        from logkeep.formats.kafka.compression import snappy_block  # noqa: PLC0415 - loads pyarrow

        try:
            return memoryview(snappy_block(memoryview(block), LARGEST_BLOCK))
        except OSError:
            raise Damaged("a block of the snappy stream cannot be unpacked") from None

    def _read(self, size: int) -> bytes:
        """In pieces: a read allocates all that is asked for."""
        pieces, left = [], size
        while left and (piece := self._packed.read(min(left, _PIECE_BYTES))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)
