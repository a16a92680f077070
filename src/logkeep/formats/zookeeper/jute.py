"""Jute, the encoding of everything ZooKeeper writes: big-endian numbers, lengths before bytes, -1 for null."""

import struct
from typing import Final

from logkeep.errors import Damaged

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
NULL: Final = _INT.pack(-1)


class JuteReader:
    """Reads values one after the other from bytes that may be hostile: no length is believed that does not fit."""

    __slots__ = ("_data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data, self.position = data, position

    @property
    def left(self) -> int:
        return len(self._data) - self.position

    def int_(self) -> int:
        return int(self._unpacked(_INT))

    def long(self) -> int:
        return int(self._unpacked(_LONG))

    def bool_(self) -> bool:
        return self._taken(1) != b"\0"

    def buffer(self) -> bytes | None:
        """Bytes, or None where null was written: an empty buffer is another thing."""
        size = self.int_()
        if size < -1:
            raise Damaged(f"a length of {size} bytes")
        return None if size == -1 else self._taken(size)

    def count(self, smallest: int) -> int:
        """The number of elements of a vector, each of at least so many bytes; null counts as none."""
        number = self.int_()
        if number < -1 or number * smallest > self.left:
            raise Damaged(f"a vector of {number} elements in {self.left} bytes")
        return max(number, 0)

    def _taken(self, size: int) -> bytes:
        taken = self._data[self.position : self.position + size]
        if len(taken) != size:
            raise Damaged(f"{size} bytes are announced and {len(taken)} are there")
        self.position += size
        return taken

    def _unpacked(self, number: struct.Struct) -> int:
        try:
            (value,) = number.unpack_from(self._data, self.position)
        except struct.error:
            raise Damaged(f"{number.size} bytes are missing at the end") from None
        self.position += number.size
        return int(value)


def packed_int(value: int) -> bytes:
    return _INT.pack(value)


def packed_long(value: int) -> bytes:
    return _LONG.pack(value)


def packed_buffer(value: bytes | None) -> bytes:
    return NULL if value is None else _INT.pack(len(value)) + value
