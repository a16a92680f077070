"""What a Parquet file would make a reader allocate, found out before any page is decoded.

The footer's sizes are claims. A page's own header decides what a reader allocates, and with some encodings a few
bytes decode to gigabytes. So every page header is read here first (it is a small Thrift struct in the compact
protocol), and only files that consist of the few things our writer makes go on: ZSTD, version 1 data pages, plain or
dictionary encoded, one dictionary at the front, as many values as the footer says, sizes within the budget.
Everything else is `Damaged`. Pure: bytes in, a number out.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from logkeep.errors import Damaged

_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_DICTIONARY_ENCODINGS = frozenset({0, 2})
_DATA_ENCODINGS = frozenset({0, 2, 8})
"""PLAIN, PLAIN_DICTIONARY (old name), RLE_DICTIONARY: none of them can repeat a long prefix for each value."""

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 12
_DEEPEST = 3
_LARGEST_FIELD_ID = 64

_Fields = dict[int, "tuple[int, int | _Fields]"]
"""Thrift type and value by field id; binary values are passed over and count as 0."""


@dataclass(frozen=True)
class ColumnChunk:
    """Where the footer says that the pages of one column of one row group lie, and how many values they hold."""

    start: int
    size_bytes: int
    values: int


def decoded_bytes(data: memoryview, chunks: Iterable[ColumnChunk], budget_bytes: int) -> int:
    """The sum of all pages' plain sizes; `Damaged` when it passes the budget or a page is not of our making."""
    total = 0
    for chunk in chunks:
        if chunk.start < 4 or chunk.size_bytes < 0 or chunk.start + chunk.size_bytes > len(data):
            raise Damaged("a column lies outside the file")
        for size in _page_sizes(data[chunk.start : chunk.start + chunk.size_bytes], chunk.values):
            total += size
            if total > budget_bytes:
                raise Damaged(f"decoded pages are larger than {budget_bytes} bytes")
    return total


def _page_sizes(data: memoryview, values: int) -> Iterable[int]:
    reader = _ThriftReader(data)
    seen, first = 0, True
    while reader.at < len(data):
        header = reader.struct()
        plain, stored = _number(header, 2), _number(header, 3)
        if plain < 0 or not 0 <= stored <= len(data) - reader.at:
            raise Damaged("a page does not fit into its column")
        if _number(header, 1) == _DICTIONARY_PAGE and first:
            _check_dictionary(_inner(header, 7), values)
        elif _number(header, 1) == _DATA_PAGE:
            seen += _data_values(_inner(header, 5))
        else:
            raise Damaged("a page of an unexpected kind")
        yield plain
        reader.at += stored
        first = False
    if seen != values:
        raise Damaged(f"pages hold {seen} values where the footer says {values}")


def _check_dictionary(header: _Fields, values: int) -> None:
    if _number(header, 2) not in _DICTIONARY_ENCODINGS or not 0 <= _number(header, 1) <= values:
        raise Damaged("a dictionary page of an unexpected encoding or length")


def _data_values(header: _Fields) -> int:
    count = _number(header, 1)
    if _number(header, 2) not in _DATA_ENCODINGS or count < 0:
        raise Damaged("a data page of an unexpected encoding or length")
    return count


def _number(fields: _Fields, field_id: int) -> int:
    kind, value = fields.get(field_id, (0, 0))
    if kind != _I32 or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise Damaged("a page header lacks a number")
    return value


def _inner(fields: _Fields, field_id: int) -> _Fields:
    _, value = fields.get(field_id, (0, 0))
    if not isinstance(value, dict):
        raise Damaged("a page header lacks its details")
    return value


class _ThriftReader:
    """Reads structs of the Thrift compact protocol, as far as page headers use it: no lists, sets or maps."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int = 1) -> _Fields:
        if depth > _DEEPEST:
            raise Damaged("a page header is nested too deep")
        fields: _Fields = {}
        field_id = 0
        while lead := self._byte():
            field_id = field_id + (lead >> 4) if lead >> 4 else _unzigzag(self._varint())
            if not 0 < field_id <= _LARGEST_FIELD_ID or field_id in fields:
                raise Damaged("a page header has a field that cannot be")
            kind = lead & 15
            fields[field_id] = (kind, self.struct(depth + 1) if kind == _STRUCT else self._scalar(kind))
        return fields

    def _scalar(self, kind: int) -> int:
        if kind in {_TRUE, _FALSE}:
            return int(kind == _TRUE)
        if kind in {_I16, _I32, _I64}:
            return _unzigzag(self._varint())
        sizes = {_BYTE: 1, _DOUBLE: 8}
        if kind not in sizes and kind != _BINARY:
            raise Damaged("a page header has a field of an unexpected type")
        self._skip(self._varint() if kind == _BINARY else sizes[kind])
        return 0

    def _skip(self, count: int) -> None:
        if count > len(self._data) - self.at:
            raise Damaged("a page header is cut off")
        self.at += count

    def _byte(self) -> int:
        self._skip(1)
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise Damaged("a page header has a number without end")


def _unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
