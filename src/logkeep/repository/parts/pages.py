"""Checks the footer and page headers of a Parquet file before the Parquet reader sees it. Pure.

A footer's sizes are claims. A page's own header decides what a reader allocates, with some encodings a few bytes decode
to gigabytes, and an unknown codec number ends the whole process inside pyarrow. So footer and page headers are read
here first, and only files with the features that our writer uses are accepted: all columns in each row group, ZSTD,
version 1 data pages, plain or dictionary encoded, one dictionary at the front, as many values as rows, no attached
schema, sizes within the budget. Everything else is `Damaged`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from logkeep.errors import Damaged
from logkeep.formats.thrift import I64, Reader, Struct
from logkeep.formats.zstd_frames import most_content

_ZSTD = 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_DICTIONARY_ENCODINGS = frozenset({0, 2})
_DATA_ENCODINGS = frozenset({0, 2, 8})
"""PLAIN, PLAIN_DICTIONARY (old name), RLE_DICTIONARY: none of them can repeat a long prefix for each value."""

_FOOTER_FIELDS = frozenset({1, 2, 3, 4, 6, 7})
"""Version, schema, rows, row groups, writer, column orders; neither attached metadata nor encryption."""
_COLUMN_FIELDS = frozenset({2, 3})
"""Offset and details; neither a path to another file nor indexes nor encryption."""


@dataclass(frozen=True)
class ColumnChunk:
    """Position and number of values of the pages of one column in one row group, by the footer."""

    start: int
    size_bytes: int
    values: int


@dataclass(frozen=True)
class Footer:
    """What the footer claims."""

    rows: int
    chunks: tuple[ColumnChunk, ...]


def read_footer(data: memoryview, columns: int) -> Footer:
    """Read the bytes of a footer whose row groups must have this many columns."""
    reader = Reader(data)
    footer = reader.struct()
    if reader.at != len(data) or not footer.keys() <= _FOOTER_FIELDS:
        raise Damaged("the footer holds more than a part needs")
    rows = footer.number(3, I64)
    groups = footer.structs(4)
    counts = [group.number(3, I64) for group in groups]
    if any(count <= 0 for count in counts) or sum(counts) != rows:
        raise Damaged("the row groups do not add up to the rows")
    chunks = [_chunk(column, group.number(3, I64)) for group in groups for column in _columns(group, columns)]
    return Footer(rows, tuple(chunks))


def decoded_bytes(data: memoryview, chunks: Iterable[ColumnChunk], budget_bytes: int) -> int:
    """The sum of all pages' plain sizes; `Damaged` if it exceeds the budget or a page has other features."""
    total = 0
    for chunk in chunks:
        if chunk.start < 4 or chunk.size_bytes < 0 or chunk.start + chunk.size_bytes > len(data):
            raise Damaged("a column is outside of the file")
        for size in _page_sizes(data[chunk.start : chunk.start + chunk.size_bytes], chunk.values):
            total += size
            if total > budget_bytes:
                raise Damaged(f"decoded pages are larger than {budget_bytes} bytes")
    return total


def _columns(group: Struct, expected: int) -> list[Struct]:
    columns = group.structs(1)
    if len(columns) != expected:
        raise Damaged("a row group has other columns")
    return columns


def _chunk(column: Struct, rows: int) -> ColumnChunk:
    if not column.keys() <= _COLUMN_FIELDS:
        raise Damaged("a column is in another file or encrypted")
    details = column.struct(3)
    if details.number(4) != _ZSTD or details.number(5, I64) != rows:
        raise Damaged("a column of unexpected compression or length")
    first = details.number(9, I64)
    dictionary = details.number(11, I64) if 11 in details else 0
    # The same choice as the reader's, which uses the dictionary's position only if it is before the data.
    return ColumnChunk(dictionary if 0 < dictionary < first else first, details.number(7, I64), rows)


def _page_sizes(data: memoryview, values: int) -> Iterable[int]:
    reader = Reader(data)
    seen, first = 0, True
    while reader.at < len(data):
        header = reader.struct()
        plain, stored = header.number(2), header.number(3)
        if plain < 0 or not 0 <= stored <= len(data) - reader.at:
            raise Damaged("a page does not fit into its column")
        if header.number(1) == _DICTIONARY_PAGE and first:
            _check_dictionary(header.struct(7), values)
        elif header.number(1) == _DATA_PAGE:
            seen += _data_values(header.struct(5))
        else:
            raise Damaged("a page of an unexpected kind")
        if plain > most_content(data[reader.at : reader.at + stored]):
            raise Damaged("a page claims more bytes than it can hold")
        yield plain
        reader.skip(stored)
        first = False
    if seen != values:
        raise Damaged(f"pages hold {seen} values instead of the {values} of the footer")


def _check_dictionary(header: Struct, values: int) -> None:
    if header.number(2) not in _DICTIONARY_ENCODINGS or not 0 <= header.number(1) <= values:
        raise Damaged("a dictionary page of an unexpected encoding or length")


def _data_values(header: Struct) -> int:
    count = header.number(1)
    if header.number(2) not in _DATA_ENCODINGS or count < 0:
        raise Damaged("a data page of an unexpected encoding or length")
    return count
