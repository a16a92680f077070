"""Snapshots that a server packed, as the plain bytes within: gzip, and snappy in the framing of Java's library.

`opened` gives a stream that unpacks while it is read, and holds no more than a block. Whatever is not what a server
writes raises Damaged: a stream that ends too early, bytes that cannot be unpacked, anything behind the end. Snappy has
no end of its own: one that was cut between two blocks is whole here, and the seals of the snapshot tell.
"""

import io
import struct
import zlib
from abc import abstractmethod
from typing import Any, BinaryIO, Final, cast

from logkeep.errors import Damaged
from logkeep.formats.kafka.compression import XERIAL_MAGIC, snappy_block
from logkeep.formats.zookeeper.names import SnapshotPacking

LARGEST_BLOCK: Final = 16 << 20
"""What one block of snappy may unpack to. Java's library makes them of 32 KiB unless told otherwise."""
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
    """Hands out pieces that a subclass unpacks one after the other."""

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
    """One member of gzip, with its checksum and length compared, and nothing behind it."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__(packed)
        self._unpacking = zlib.decompressobj(_GZIP)

    def _piece(self) -> bytes | None:
        unpacking = self._unpacking
        if unpacking.eof:
            if unpacking.unused_data or self._packed.read(1):
                raise Damaged("there is something behind the end of the gzip stream")
            return None
        more = unpacking.unconsumed_tail or self._packed.read(_PIECE_BYTES)
        if not more:
            raise Damaged("the gzip stream ends too early")
        try:
            return unpacking.decompress(more, _PIECE_BYTES)
        except zlib.error:
            raise Damaged("the gzip stream cannot be unpacked") from None


class _Unsnapped(_Unpacked):
    """A header, then blocks with their length in front."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__(packed)
        if packed.read(len(_XERIAL_HEADER)) != _XERIAL_HEADER:
            raise Damaged("this is no snappy stream as a server writes it")

    def _piece(self) -> memoryview | None:
        prefix = self._packed.read(4)
        if not prefix:
            return None
        size = int.from_bytes(prefix, signed=True)
        block = self._packed.read(size) if len(prefix) == 4 and 0 < size <= LARGEST_BLOCK else b""
        if not block or len(block) != size:
            raise Damaged("the snappy stream ends too early, or a block has an impossible length")
        try:
            return memoryview(snappy_block(memoryview(block), LARGEST_BLOCK))
        except OSError:
            raise Damaged("a block of the snappy stream cannot be unpacked") from None
