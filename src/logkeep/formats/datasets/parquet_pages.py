"""Checks the footer and page headers of a Parquet file of records before the Parquet reader sees it.

A footer's sizes are claims, a page's own header decides what a reader allocates, and an unknown codec number ends the
whole process inside pyarrow. So only what our writer writes is accepted: zstd, version 1 data pages, plain or
dictionary encoded, one dictionary at the front of a column, no page larger than `LARGEST_PAGE`, none that claims more
than its zstd frame can hold. Everything else is `Damaged`.
"""

from typing import BinaryIO

from logkeep.errors import Damaged
from logkeep.formats.thrift import I64, Reader, Struct
from logkeep.formats.zstd_frames import most_content

LARGEST_PAGE = 256 << 20
_LARGEST_FOOTER = 64 << 20
_TAIL_BYTES = 8
_ZSTD = 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_ENCODINGS = frozenset({0, 2, 3, 8})
"""PLAIN, PLAIN_DICTIONARY (old name), RLE (of levels), RLE_DICTIONARY."""
_COLUMN_FIELDS = frozenset({2, 3, 4, 5, 6, 7})
"""Offset, details and page index; neither a path to another file nor encryption."""
_FOOTER_FIELDS = frozenset({1, 2, 3, 4, 5, 6, 7})


def check_file(file: BinaryIO, leaves: int, subject: str) -> None:
    """Every row group must have this many columns without children. Raises Damaged."""
    try:
        for group in _row_groups(file):
            _check_group(file, group.structs(1), leaves)
    except Damaged as error:
        raise Damaged(f"this Parquet file cannot be read: {error.what}", subject=subject) from None


def _check_group(file: BinaryIO, columns: list[Struct], leaves: int) -> None:
    if len(columns) != leaves:
        raise Damaged("a row group has other columns")
    for column in columns:
        _check_column(file, column)


def _row_groups(file: BinaryIO) -> list[Struct]:
    size = file.seek(0, 2)
    file.seek(max(size - _TAIL_BYTES, 0))
    tail = file.read(_TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or length > min(size - _TAIL_BYTES - 4, _LARGEST_FOOTER):
        raise Damaged("it ends without a footer")
    file.seek(size - _TAIL_BYTES - length)
    reader = Reader(memoryview(file.read(length)))
    footer = reader.struct()
    groups = footer.structs(4) if 4 in footer else []
    if reader.at != length or not footer.keys() <= _FOOTER_FIELDS:
        raise Damaged("its footer holds more than records need")
    if sum(group.number(3, I64) for group in groups) != footer.number(3, I64):
        raise Damaged("the row groups do not add up to the rows")
    if any(group.number(3, I64) <= 0 for group in groups):
        raise Damaged("a row group has no rows")
    return groups


def _check_column(file: BinaryIO, column: Struct) -> None:
    details = column.struct(3)
    if not column.keys() <= _COLUMN_FIELDS or details.number(4) != _ZSTD:
        raise Damaged("a column is in another file, encrypted, or not compressed with zstd")
    first, dictionary = details.number(9, I64), details.number(11, I64) if 11 in details else 0
    # The same choice as the reader's, which uses the dictionary's position only if it is before the data.
    start, size = dictionary if 0 < dictionary < first else first, details.number(7, I64)
    if start < 4 or size < 0 or start + size > file.seek(0, 2):
        raise Damaged("a column is outside of the file")
    file.seek(start)
    values = _check_pages(memoryview(file.read(size)))
    if values != details.number(5, I64):
        raise Damaged("the pages of a column hold another number of values")


def _check_pages(data: memoryview) -> int:
    """How many values the pages of a column hold."""
    reader = Reader(data)
    values, is_first = 0, True
    while reader.at < len(data):
        header = reader.struct()
        plain, stored, kind = header.number(2), header.number(3), header.number(1)
        if not 0 <= plain <= LARGEST_PAGE or not 0 <= stored <= len(data) - reader.at:
            raise Damaged("a page does not fit into its column, or is too large")
        if kind != _DATA_PAGE and not (kind == _DICTIONARY_PAGE and is_first):
            raise Damaged("a page is of an unexpected kind")
        details = header.struct(5 if kind == _DATA_PAGE else 7)
        if details.number(2) not in _ENCODINGS or details.number(1) < 0:
            raise Damaged("a page has an unexpected encoding or length")
        if plain > most_content(data[reader.at : reader.at + stored]):
            raise Damaged("a page claims more bytes than it can hold")
        values += details.number(1) if kind == _DATA_PAGE else 0
        reader.skip(stored)
        is_first = False
    return values


def one_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0][:200]
