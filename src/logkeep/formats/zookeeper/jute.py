"""Jute, ZooKeeper's encoding: big-endian numbers, bytes preceded by their length, -1 for null."""

import struct
from typing import Final

from logkeep.errors import Damaged

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
NULL: Final = _INT.pack(-1)


class JuteReader:
    """Reads values from untrusted bytes: every length is checked."""

    __slots__ = ("_data", "_size", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data, self._size, self.position = data, len(data), position

    @property
    def left(self) -> int:
        return self._size - self.position

    def int_(self) -> int:
        at = self.position
        self.position = at + 4
        try:
            value: int = _INT.unpack_from(self._data, at)[0]
        except struct.error:
            raise Damaged("4 bytes are missing at the end") from None
        return value

    def long(self) -> int:
        at = self.position
        self.position = at + 8
        try:
            value: int = _LONG.unpack_from(self._data, at)[0]
        except struct.error:
            raise Damaged("8 bytes are missing at the end") from None
        return value

    def bool_(self) -> bool:
        at = self.position
        if at >= self._size:
            raise Damaged("1 byte is missing at the end")
        self.position = at + 1
        return self._data[at] != 0

    def buffer(self) -> bytes | None:
        """Bytes, or None for null, which is not the same as an empty buffer."""
        begin = self.position + 4
        try:
            size: int = _INT.unpack_from(self._data, begin - 4)[0]
        except struct.error:
            raise Damaged("4 bytes are missing at the end") from None
        end = begin + size
        if size >= 0 and end <= self._size:
            self.position = end
            return self._data[begin:end]
        if size != -1:
            raise Damaged(f"a length of {size} bytes where {self._size - begin} are left")
        self.position = begin
        return None

    def count(self, smallest: int) -> int:
        """The number of elements of a vector, each of at least `smallest` bytes; null counts as empty."""
        number = self.int_()
        if number < -1 or number * smallest > self.left:
            raise Damaged(f"a vector of {number} elements in {self.left} bytes")
        return max(number, 0)

    def skipped(self, expected: bytes) -> bool:
        """Skip these bytes if they come next; returns whether they did."""
        if not self._data.startswith(expected, self.position):
            return False
        self.position += len(expected)
        return True

    def comes(self, expected: bytes) -> bool:
        """Whether exactly these bytes come next."""
        return self._data.startswith(expected, self.position)

    def rest(self) -> bytes:
        """Read all remaining bytes."""
        begin, self.position = self.position, self._size
        return self._data[begin:]


def packed_int(value: int) -> bytes:
    return _INT.pack(value)


def packed_long(value: int) -> bytes:
    return _LONG.pack(value)


def packed_buffer(value: bytes | None) -> bytes:
    return NULL if value is None else _INT.pack(len(value)) + value
