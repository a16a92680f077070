"""Segment rows as the bytes of a part, and back.

A part is a plain Parquet file (ZSTD, row groups of 32,768 rows sorted by log with statistics, page checksums) that any
Parquet reader opens. It also has a hash block of 36 bytes, the mark `LKP1` and a SHA-256 of all other bytes, between
the last page and the footer, where the format leaves room. The hash is checked before anything is parsed, so accidental
damage never reaches the Parquet reader, even if no manifest is available with the part's hash.

A hash can be forged. So footer and page headers are checked (`pages`) before the Parquet reader sees them, and rows
are checked after it. Bytes become equal rows or `Damaged`.
"""

import hashlib

import pyarrow as pa
import pyarrow.parquet as pq

from logkeep.errors import Damaged, HostFailed
from logkeep.repository.parts.pages import decoded_bytes, read_footer
from logkeep.repository.parts.table import SCHEMA, TEXT_COLUMNS, SegmentTable

_ROW_GROUP_ROWS = 32_768
"""A log's rows are in one or two groups, found by statistics; a group decodes in a few milliseconds."""
_LARGEST_ROW_BYTES = 1024
"""A row's texts (at most 9 + 249 + 64 + 4 + 128) and numbers, with room to spare."""
_FIXED_BYTES = 65_536
"""Allowed beside the rows: for pages, and for a footer, which takes less than a byte per row in large parts."""

_MAGIC = b"PAR1"
_HASH_MARK = b"LKP1"
_HASH_BYTES = len(_HASH_MARK) + 32
_TAIL_BYTES = 8

_STATISTICS = ["collection", "name", "history", "partition", "start", "end", "base_time_ms", "max_time_ms"]
_FILE_SCHEMA = pa.schema([f.with_type(pa.string()) if f.name in TEXT_COLUMNS else f for f in SCHEMA])


def encode(table: SegmentTable) -> bytes:
    """The same rows give the same bytes with the same pyarrow."""
    sink = pa.BufferOutputStream()
    # Written from text, so that the bytes do not depend on the dictionaries in memory.
    rows = table.arrow.cast(_FILE_SCHEMA).combine_chunks()
    with pq.ParquetWriter(
        sink,
        _FILE_SCHEMA,
        compression="zstd",
        use_dictionary=[*TEXT_COLUMNS, "partition"],
        write_statistics=_STATISTICS,
        write_page_checksum=True,
        store_schema=False,
    ) as writer:
        if len(table):  # no rows, no row group
            writer.write_table(rows, row_group_size=_ROW_GROUP_ROWS)
    return _with_hash(sink.getvalue())


def decode(data: bytes, max_rows: int) -> SegmentTable:
    """The rows of a part, at most `max_rows`; `Damaged` for any other bytes, before much memory is used."""
    _check_contents(memoryview(data), _checked_footer(memoryview(data), max_rows), max_rows)
    try:
        file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=list(TEXT_COLUMNS))
        if not file.schema_arrow.equals(SCHEMA):
            raise Damaged("the columns are not those of segment rows")
        # One thread: at most one column's pages are in memory beside the result.
        table = file.read(use_threads=False)
    except MemoryError:
        raise HostFailed("not enough memory to read a part", remedy="run on a machine with more memory") from None
    except (pa.ArrowException, OSError, ValueError, OverflowError, KeyError, IndexError, TypeError) as error:
        # Arrow reports damage through many types, also builtins.
        raise Damaged(f"not a readable part: {_one_line(error)}") from None
    return SegmentTable.validated(table)


def _with_hash(file: pa.Buffer) -> bytes:
    data = memoryview(file)
    footer = len(data) - _TAIL_BYTES - int.from_bytes(data[-8:-4], "little")
    digest = hashlib.sha256(data).digest()
    return b"".join((data[:footer], _HASH_MARK, digest, data[footer:]))


def _checked_footer(data: memoryview, max_rows: int) -> memoryview:
    """The footer of a part whose hash is right."""
    if len(data) < len(_MAGIC) + _HASH_BYTES + _TAIL_BYTES or data[:4] != _MAGIC or data[-4:] != _MAGIC:
        raise Damaged("not a part, or truncated")
    footer_bytes = int.from_bytes(data[-8:-4], "little")
    footer = len(data) - _TAIL_BYTES - footer_bytes
    block = footer - _HASH_BYTES
    if footer_bytes > max_rows + _FIXED_BYTES or block < len(_MAGIC) or data[block : block + 4] != _HASH_MARK:
        raise Damaged("the part has no hash block")
    content = hashlib.sha256(data[:block])
    content.update(data[footer:])
    if content.digest() != data[block + 4 : footer]:
        raise Damaged("the part does not match its hash")
    return data[footer:-_TAIL_BYTES]


def _check_contents(data: memoryview, footer: memoryview, max_rows: int) -> None:
    claims = read_footer(footer, len(SCHEMA))
    if not 0 <= claims.rows <= max_rows:
        raise Damaged(f"the part claims {claims.rows} rows but at most {max_rows} are expected")
    decoded_bytes(data, claims.chunks, max_rows * _LARGEST_ROW_BYTES + _FIXED_BYTES)


def _one_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0][:200]
