"""Segment rows as the bytes of a part, and back.

A part is a plain Parquet file (ZSTD, row groups of 32,768 rows sorted by log with statistics, page checksums) that any
Parquet reader opens. Ours has one thing more: a seal of 36 bytes, the mark `LKP1` and a sha256 of all other bytes,
between the last page and the footer, where the format leaves room. It is checked before anything is parsed, so
accidental damage never reaches the Parquet reader, not even when no manifest is at hand to name the part's hash.

A seal can be forged. So sizes and encodings are checked from the page headers before the first page is decoded, and
rows are checked after it. Bytes become equal rows or `Damaged`.
"""

import hashlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from logkeep.errors import Damaged, LogkeepError
from logkeep.repository.parts.pages import ColumnChunk, decoded_bytes
from logkeep.repository.parts.table import SCHEMA, TEXT_COLUMNS, SegmentTable

_ROW_GROUP_ROWS = 32_768
"""A log's rows are found by statistics in one or two groups; a group decodes in a few milliseconds."""
_LARGEST_ROW_BYTES = 1024
"""A row's texts (at most 9 + 249 + 64 + 4 + 128) and numbers, with room to spare."""
_FIXED_BYTES = 65_536
_LARGEST_FOOTER_BYTES = 64 * 2**20
_LARGEST_THRIFT_LIST = 1_000_000

_MAGIC = b"PAR1"
_SEAL_MARK = b"LKP1"
_SEAL_BYTES = len(_SEAL_MARK) + 32
_TAIL_BYTES = 8

_STATISTICS = ["collection", "name", "history", "partition", "start", "end", "base_time_ms", "max_time_ms"]
_FILE_SCHEMA = pa.schema([f.with_type(pa.string()) if f.name in TEXT_COLUMNS else f for f in SCHEMA])


def encode(table: SegmentTable) -> bytes:
    """The same rows give the same bytes with the same pyarrow."""
    sink = pa.BufferOutputStream()
    # Written from text, so that the bytes do not depend on how the dictionaries in memory came about.
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
    return _sealed(sink.getvalue())


def decode(data: bytes, max_rows: int) -> SegmentTable:
    """The rows of a part, at most `max_rows`; `Damaged` for any other bytes, before much memory is used."""
    _check_seal(memoryview(data))
    try:
        file = _opened(data)
        _check_claims(file.metadata, max_rows)
        _check_schema(file)
        chunks = list(_column_chunks(file.metadata))
        decoded_bytes(memoryview(data), chunks, max_rows * _LARGEST_ROW_BYTES + _FIXED_BYTES)
        # One thread: at most one column's pages are in memory beside the result.
        table = file.read(use_threads=False)
    except MemoryError:
        raise LogkeepError("not enough memory to read a part", remedy="run on a machine with more memory") from None
    except (pa.ArrowException, OSError, ValueError, OverflowError, KeyError, IndexError, TypeError) as error:
        # Arrow reports damage through many types, among them builtins; whatever it says, the bytes are not a part.
        raise Damaged(f"not a readable part: {_one_line(error)}") from None
    return SegmentTable.validated(table.replace_schema_metadata(None))


def _sealed(file: pa.Buffer) -> bytes:
    data = memoryview(file)
    footer = len(data) - _TAIL_BYTES - int.from_bytes(data[-8:-4], "little")
    digest = hashlib.sha256(data).digest()
    return b"".join((data[:footer], _SEAL_MARK, digest, data[footer:]))


def _check_seal(data: memoryview) -> None:
    if len(data) < len(_MAGIC) + _SEAL_BYTES + _TAIL_BYTES or data[:4] != _MAGIC or data[-4:] != _MAGIC:
        raise Damaged("not a part, or cut off")
    footer_bytes = int.from_bytes(data[-8:-4], "little")
    footer = len(data) - _TAIL_BYTES - footer_bytes
    seal = footer - _SEAL_BYTES
    if footer_bytes > _LARGEST_FOOTER_BYTES or seal < len(_MAGIC) or data[seal : seal + 4] != _SEAL_MARK:
        raise Damaged("the part has no seal where one should be")
    content = hashlib.sha256(data[:seal])
    content.update(data[footer:])
    if content.digest() != data[seal + 4 : footer]:
        raise Damaged("the part's bytes are not those that were sealed")


def _opened(data: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(
        pa.BufferReader(data),
        read_dictionary=list(TEXT_COLUMNS),
        thrift_string_size_limit=_LARGEST_FOOTER_BYTES,
        thrift_container_size_limit=_LARGEST_THRIFT_LIST,
    )


def _check_claims(metadata: pq.FileMetaData, max_rows: int) -> None:
    if not 0 <= metadata.num_rows <= max_rows:
        raise Damaged(f"the part claims {metadata.num_rows} rows where at most {max_rows} are expected")
    groups = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    if any(rows < 0 for rows in groups) or sum(groups) != metadata.num_rows:
        raise Damaged("the part's row groups do not add up to its rows")


def _check_schema(file: pq.ParquetFile) -> None:
    # Without a stored Arrow schema the Parquet types alone say what is read; with one, a file could ask for others.
    if file.metadata.metadata is not None or not file.schema_arrow.equals(SCHEMA):
        raise Damaged("the columns are not those of segment rows")


def _column_chunks(metadata: pq.FileMetaData) -> Iterator[ColumnChunk]:
    for group in (metadata.row_group(index) for index in range(metadata.num_row_groups)):
        if group.num_columns != len(SCHEMA):
            raise Damaged("a row group lacks columns")
        for column in (group.column(index) for index in range(len(SCHEMA))):
            if column.compression != "ZSTD" or column.num_values != group.num_rows or column.file_path:
                raise Damaged("a column of unexpected compression or length")
            first = column.data_page_offset
            if column.has_dictionary_page and 0 < column.dictionary_page_offset < first:
                first = column.dictionary_page_offset
            yield ColumnChunk(first, column.total_compressed_size, column.num_values)


def _one_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0][:200]
