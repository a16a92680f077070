"""Reads structs of Thrift's compact protocol, strictly, from untrusted bytes.

Parquet's footer and page headers are such structs. Fields come back by id with their type, so that a caller can insist
on both; a duplicate field, an endless number, deep nesting or a length beyond the bytes is `Damaged`.
"""

from typing import NamedTuple

from logkeep.errors import Damaged

_TRUE, _FALSE, _BYTE, I16, I32, I64, _DOUBLE, _BINARY, LIST, _SET, _MAP, STRUCT = range(1, 13)
_FIXED_BYTES = {_BYTE: 1, _DOUBLE: 8, _TRUE: 1, _FALSE: 1}
_NUMBERS, _TRUTHS = frozenset({I16, I32, I64}), frozenset({_TRUE, _FALSE})
_DEEPEST = 12
_LARGEST_FIELD_ID = 64


class Field(NamedTuple):
    """A value and its type. Texts and doubles are skipped: their value is 0."""

    kind: int
    value: "int | Struct | list[Field]"


class Struct(dict[int, Field]):
    """Fields by id, with accessors that insist on the type."""

    def number(self, field_id: int, kind: int = I32) -> int:
        field = self.get(field_id)
        limit = 2**31 if kind == I32 else 2**63
        if field is None or field.kind != kind or not isinstance(field.value, int) or not -limit <= field.value < limit:
            raise Damaged("a header lacks a number")
        return field.value

    def struct(self, field_id: int) -> "Struct":
        field = self.get(field_id)
        if field is None or not isinstance(field.value, Struct):
            raise Damaged("a header lacks its details")
        return field.value

    def structs(self, field_id: int) -> "list[Struct]":
        field = self.get(field_id)
        if field is None or not isinstance(field.value, list):
            raise Damaged("a header lacks a list")
        inner = [item.value for item in field.value if isinstance(item.value, Struct)]
        if len(inner) != len(field.value):
            raise Damaged("a header has a list of something else")
        return inner


class Reader:
    """A place in bytes that moves forward."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int = 1) -> Struct:
        fields = Struct()
        field_id = 0
        while lead := self._byte():
            field_id = field_id + (lead >> 4) if lead >> 4 else _unzigzag(self._varint())
            if not 0 < field_id <= _LARGEST_FIELD_ID or field_id in fields:
                raise Damaged("a header has a field that cannot be")
            kind = lead & 15
            # A truth value in a struct is its type; only in lists does it take a byte.
            fields[field_id] = Field(kind, 0) if kind in _TRUTHS else self._value(kind, depth)
        return fields

    def skip(self, count: int) -> None:
        if not 0 <= count <= len(self._data) - self.at:
            raise Damaged("a header is cut off")
        self.at += count

    def _value(self, kind: int, depth: int) -> Field:
        if depth >= _DEEPEST:
            raise Damaged("a header is nested too deep")
        if kind in _NUMBERS:
            return Field(kind, _unzigzag(self._varint()))
        if kind == STRUCT:
            return Field(kind, self.struct(depth + 1))
        if kind == LIST:
            return Field(kind, self._list(depth + 1))
        if kind != _BINARY and kind not in _FIXED_BYTES:
            raise Damaged("a header has a field of an unexpected type")
        self.skip(self._varint() if kind == _BINARY else _FIXED_BYTES[kind])
        return Field(kind, 0)

    def _list(self, depth: int) -> list[Field]:
        lead = self._byte()
        count = self._varint() if lead >> 4 == 15 else lead >> 4
        if count > len(self._data) - self.at:  # an element takes a byte at least
            raise Damaged("a header is cut off")
        return [self._value(lead & 15, depth) for _ in range(count)]

    def _byte(self) -> int:
        try:
            byte = self._data[self.at]
        except IndexError:
            raise Damaged("a header is cut off") from None
        self.at += 1
        return byte

    def _varint(self) -> int:
        byte = self._byte()
        if byte < 128:  # nearly always
            return byte
        value = byte & 127
        for shift in range(7, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise Damaged("a header has a number without end")


def _unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
