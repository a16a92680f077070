"""Records in Arrow's form as batches of Kafka's log: how other formats become an archived log.

Version 2, no producer, leader epoch 0, zstd, at most 1 MiB of plain records. The base offset is the first record's, and
offset deltas keep the holes. Records without a time have -1; append times are those of the whole batch.
"""

from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from logkeep.formats.datasets import native_batch_kernels as kernels
from logkeep.formats.datasets.arrow import APPEND_TIME as APPENDED
from logkeep.formats.kafka.batches import (
    APPEND_TIME,
    CODECS,
    CRC_FROM,
    HEADER,
    HEADER_BYTES,
    OVERHEAD_BYTES,
    Batches,
    Headers,
    Longs,
)
from logkeep.formats.kafka.compression import pack
from logkeep.formats.kafka.encode_kernels import MOST_BEFORE_BODY
from logkeep.formats.kafka.producer_stamp import header_bytes
from logkeep.formats.kafka.record_kernels import Bytes, Ints

BATCH_BYTES = 1 << 20
_ZSTD = CODECS.index("zstd")


@dataclass(frozen=True)
class _Strings:
    """A column of byte strings: borders in the data, and which are not null."""

    borders: Ints
    data: Bytes
    there: npt.NDArray[np.bool_]


def native_batches(records: pa.RecordBatch, most_bytes: int = BATCH_BYTES) -> tuple[memoryview, Batches]:
    """Batches back to back. The records have the schema of `formats.datasets.arrow`, and their offsets rise."""
    if not len(records):
        return memoryview(b""), Batches(np.zeros(0, HEADER), np.zeros(0, np.int64))
    offsets, times = _numbers(records.column("offset"), np.int64), _numbers(records.column("timestamp"), np.int64)
    appended = _numbers(records.column("timestamp_type"), np.int8) == APPENDED
    keys, values = _strings(records.column("key")), _strings(records.column("value"))
    firsts, names, header_values = _headers(records.column("headers"))
    sizes = np.empty(len(offsets), np.int64)
    plain_bytes = kernels.body_sizes(
        keys.borders, keys.there, values.borders, values.there, firsts, names.borders, header_values.borders,
        header_values.there, sizes,
    )  # fmt: skip
    groups = np.empty((len(offsets), 2), np.int64)
    count = kernels.batch_borders(offsets, times, appended, sizes, most_bytes, MOST_BEFORE_BODY, groups)
    groups = np.ascontiguousarray(groups[:count])
    out = np.empty(plain_bytes + len(offsets) * MOST_BEFORE_BODY + count * HEADER_BYTES, np.uint8)
    ends, latest = np.empty(count, np.int64), np.empty(count, np.int64)
    end = kernels.encode_rows(
        offsets, times, groups, sizes, keys.borders, keys.data, keys.there, values.borders, values.data, values.there,
        firsts, names.borders, names.data, header_values.borders, header_values.data, header_values.there,
        HEADER_BYTES, out, ends, latest,
    )  # fmt: skip
    if end == kernels.NO_ROOM:
        raise ValueError("the columns of records do not fit each other")
    headers = _first_headers(offsets, times, appended, groups, latest)
    return _packed(out, headers, np.concatenate(([0], ends[:-1])) + HEADER_BYTES, ends)


def _first_headers(
    offsets: Longs, times: Longs, appended: npt.NDArray[np.bool_], groups: Longs, latest: Longs
) -> Headers:
    headers, first, last = np.zeros(len(groups), HEADER), groups[:, 0], groups[:, 1] - 1
    headers["base_offset"], headers["magic"], headers["leader_epoch"] = offsets[first], 2, 0
    headers["last_offset_delta"], headers["records"] = offsets[last] - offsets[first], last - first + 1
    headers["attributes"] = np.where(appended[first], _ZSTD | APPEND_TIME, _ZSTD)
    headers["base_time_ms"], headers["max_time_ms"] = times[first], latest
    headers["producer_id"], headers["producer_epoch"], headers["base_sequence"] = -1, -1, -1
    return headers


def _packed(plain: Bytes, headers: Headers, starts: Longs, ends: Longs) -> tuple[memoryview, Batches]:
    """Compress each section, complete its header with length and CRC-32C, and join them."""
    blocks = [pack(_ZSTD, plain[a:b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    headers["length"] = [len(block) + HEADER_BYTES - OVERHEAD_BYTES for block in blocks]
    heads = header_bytes(headers)
    crc_of, extended = google_crc32c.value, google_crc32c.extend
    headers["crc"] = [
        extended(crc_of(head[CRC_FROM:].tobytes()), block.tobytes()) for head, block in zip(heads, blocks, strict=True)
    ]
    joined = b"".join(piece for pair in zip(heads, blocks, strict=True) for piece in (pair[0].data, pair[1].data))
    sizes = headers["length"].astype(np.int64) + OVERHEAD_BYTES
    return memoryview(joined), Batches(headers, np.cumsum(sizes) - sizes)


def _numbers(column: pa.Array, kind: type[np.generic]) -> Any:
    """Read-only, whatever the column was made of: numba compiles for each of the two."""
    return _view(column.buffers()[1], kind, len(column), column.offset)


def _view(buffer: pa.Buffer | None, kind: type[np.generic], count: int, first: int = 0) -> Any:
    found = np.frombuffer(buffer, kind, count, first * np.dtype(kind).itemsize) if buffer else np.zeros(count, kind)
    found.flags.writeable = False
    return found


def _borders(column: pa.Array) -> Ints:
    borders: Ints = _view(column.buffers()[1] if len(column) else None, np.int32, len(column) + 1, column.offset)
    return borders


def _strings(column: pa.Array) -> _Strings:
    valid, data = column.buffers()[0], column.buffers()[2] if len(column) else None
    there = np.ones(len(column), np.bool_)
    if valid is not None and column.null_count:
        bits = np.unpackbits(np.frombuffer(valid, np.uint8), count=column.offset + len(column), bitorder="little")
        there = bits[column.offset :].astype(np.bool_)
    return _Strings(_borders(column), _view(data, np.uint8, data.size if data else 0), there)


def _headers(column: pa.Array) -> tuple[Ints, _Strings, _Strings]:
    pairs = column.values
    return _borders(column), _strings(pairs.field(0)), _strings(pairs.field(1))
