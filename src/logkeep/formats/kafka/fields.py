"""Reads the fields of Kafka's messages: fixed numbers, strings of both styles, tagged fields.

Older message versions write lengths as fixed numbers, "flexible" ones as unsigned varints of length + 1. `FieldReader`
takes any bytes: it raises Damaged if they end early or a length is too large, and reads no byte twice.
"""

import struct
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from logkeep.errors import Damaged

T = TypeVar("T")
_LONGEST_VARINT = 10


class FieldReader:
    """A position in a message."""

    def __init__(self, data: bytes | memoryview, at: int = 0) -> None:
        self._data, self.at = memoryview(data), at

    @property
    def left(self) -> int:
        return len(self._data) - self.at

    def take(self, size: int) -> bytes:
        if size < 0 or size > self.left:
            raise Damaged(f"a field of {size} bytes where {self.left} are left")
        found = bytes(self._data[self.at : self.at + size])
        self.at += size
        return found

    def int8(self) -> int:
        return self._number(">b")

    def int16(self) -> int:
        return self._number(">h")

    def int32(self) -> int:
        return self._number(">i")

    def int64(self) -> int:
        return self._number(">q")

    def float64(self) -> float:
        return float(struct.unpack(">d", self.take(8))[0])

    def boolean(self) -> bool:
        return self.take(1) != b"\0"

    def uuid(self) -> UUID:
        return UUID(bytes=self.take(16))

    def unsigned(self) -> int:
        """An unsigned varint: seven bits per byte, lowest first."""
        value = 0
        for count in range(_LONGEST_VARINT):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * count)
            if byte < 0x80:
                return value
        raise Damaged("a number has no end")

    def signed(self) -> int:
        """A zigzag varint, as records have them."""
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def nullable_bytes(self) -> bytes | None:
        """As records have them, with a zigzag length."""
        length = self.signed()
        return None if length < 0 else self.take(length)

    def text(self, *, compact: bool) -> str:
        found = self.optional_text(compact=compact)
        if found is None:
            raise Damaged("a required text is null")
        return found

    def optional_text(self, *, compact: bool) -> str | None:
        length = self.unsigned() - 1 if compact else self.int16()
        if length < 0:
            return None
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as error:
            raise Damaged("a text is not UTF-8") from error

    def array(self, each: Callable[[], T]) -> list[T]:
        """A compact array; null counts as empty."""
        count = self.unsigned() - 1
        if count > self.left:
            raise Damaged(f"an array of {count} where {self.left} bytes are left")
        return [each() for _ in range(count)]

    def tagged(self) -> dict[int, bytes]:
        """The optional fields at the end of a flexible message."""
        found: dict[int, bytes] = {}
        for _ in range(self.unsigned()):
            tag = self.unsigned()
            found[tag] = self.take(self.unsigned())
        return found

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])
