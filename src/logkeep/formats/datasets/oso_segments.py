"""Segments of OSO kafka-backup archives: bytes in, records out.

    0   "KBAK" | version 1 | codec: 0 none, 1 zstd, 2 lz4 | 2 bytes | records u64 | first offset i64 | last offset i64
    32  all records as one block: a zstd frame, or a size u32 and one block of lz4
    -8  CRC-32 of everything before | "BKAE"

All numbers are little-endian. A zstd frame does not say its size: it is unpacked up to a limit.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from logkeep.errors import Damaged, FormatTooNew, UsageError
from logkeep.formats.arrow_streams import unpacked_pieces
from logkeep.formats.datasets import oso_kernels as k
from logkeep.formats.datasets.kafka_backup_v1 import v1_reader_kernels as columns
from logkeep.formats.datasets.record_parts import BytesAt, headers_column, record_batch
from logkeep.formats.kafka.record_kernels import Bytes, Longs

MAGIC, END_MAGIC = b"KBAK", b"BKAE"
_HEAD = struct.Struct("<4sBBHQqq")
_ROWS = 1 << 16
_STEP_BYTES = 4 << 20
_LZ4_RATIO = 255
"""A block of lz4 unpacks to less than this many times its size."""
_MARKER_VALUE_BYTES = 6
_REMEDY = "copy the archive again, or take it from another backup of the tool"


@dataclass(frozen=True)
class OsoSegment:
    """A segment whose frame is right: CRC, version, offsets. Its body is still packed."""

    where: str
    codec: int
    records: int
    first: int
    last: int
    packed: memoryview


def open_segment(data: bytes, where: str) -> OsoSegment:
    """Check the frame. Raises Damaged, FormatTooNew or UsageError."""
    if data[:4] != MAGIC:
        raise UsageError("it does not begin with KBAK: not a segment of this tool", subject=where, remedy=_REMEDY)
    if len(data) < _HEAD.size + 8 or data[-4:] != END_MAGIC:
        raise Damaged("the segment is cut off", subject=where, remedy=_REMEDY)
    _, version, codec, _, records, first, last = _HEAD.unpack_from(data)
    if version > 1:
        raise FormatTooNew(f"the segment has version {version}; this release reads version 1", subject=where)
    if zlib.crc32(memoryview(data)[:-8]) != struct.unpack_from("<I", data, len(data) - 8)[0]:
        raise Damaged("the segment fails its checksum", subject=where, remedy=_REMEDY)
    if codec > 2 or version < 1 or (records and not 0 <= first <= last < 2**63 - 1):
        raise Damaged("its header has impossible numbers", subject=where, remedy=_REMEDY)
    return OsoSegment(where, codec, records, first, last, memoryview(data)[_HEAD.size : -8])


def _plain(segment: OsoSegment, most_bytes: int) -> Iterator[bytes | memoryview]:
    """The body in pieces, at most `most_bytes` of it. Raises Damaged."""
    total = 0
    try:
        for piece in _PIECES[segment.codec](segment.packed, most_bytes):
            total += len(piece)
            if total > most_bytes:
                what = f"the segment would unpack to more than the {most_bytes} bytes that it may have"
                raise Damaged(what, subject=segment.where, remedy=_REMEDY)
            yield piece
    except (OSError, pa.ArrowException, struct.error) as error:
        raise Damaged("the segment cannot be unpacked", subject=segment.where, remedy=_REMEDY) from error


def _as_it_is(packed: memoryview, _most_bytes: int) -> Iterator[memoryview]:
    yield packed


def _zstd(packed: memoryview, _most_bytes: int) -> Iterator[bytes]:
    if packed:
        yield from unpacked_pieces(packed, "zstd", _STEP_BYTES)


def _lz4(packed: memoryview, most_bytes: int) -> Iterator[bytes]:
    (size,) = struct.unpack_from("<I", packed)
    if size > min(most_bytes, len(packed) * _LZ4_RATIO):
        raise OSError("it claims more bytes than it can hold")
    if size:
        yield pa.Codec("lz4_raw").decompress(packed[4:], size, asbytes=True)


_PIECES = (_as_it_is, _zstd, _lz4)


@dataclass
class OsoCounts:
    """What is doubtful in the records of a segment."""

    markers: int = 0
    stripped: int = 0


def segment_records(segment: OsoSegment, counts: OsoCounts, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """The records in Arrow's form, without the two headers that the tool appended. Raises Damaged."""
    left, above, read = b"", -1, 0
    for piece in _plain(segment, most_bytes):
        data = b"".join((left, piece)) if left else bytes(piece)
        at, why = 0, columns.FULL
        while why == columns.FULL:
            count, at, why, numbers, spans = _walked(data, at, above)
            if count:
                above, read = int(numbers[-1, columns.OFFSET]), read + count
                yield _arrow(np.frombuffer(data, np.uint8), numbers, spans, counts)
        left = data[at:]
        if why == columns.BAD or len(left) > columns.LARGEST_RECORD_BYTES:
            raise Damaged(f"no record follows offset {above}", subject=segment.where, remedy=_REMEDY)
    if left:
        raise Damaged(f"the record after offset {above} is cut off", subject=segment.where, remedy=_REMEDY)
    if read != segment.records or (read and above != segment.last):
        what = f"it has {read} records up to offset {above}, and claims {segment.records} up to {segment.last}"
        raise Damaged(what, subject=segment.where, remedy=_REMEDY)


def _walked(data: bytes, at: int, above: int) -> tuple[int, int, int, Longs, Longs]:
    rows = min(_ROWS, (len(data) - at) // k.LEAST_RECORD_BYTES + 1)
    numbers = np.empty((rows, columns.NUMBER_COLUMNS), np.int64)
    spans = np.empty((rows, columns.SPAN_COLUMNS), np.int64)
    count, stopped, why = k.walk_oso(np.frombuffer(data, np.uint8), at, above, numbers, spans)
    return count, stopped, why, numbers[:count], spans[:count]


def _arrow(data: Bytes, numbers: Longs, spans: Longs, counts: OsoCounts) -> pa.RecordBatch:
    room = int(spans[:, columns.HEADERS].sum())
    names, name_sizes, values, value_sizes = places = tuple(np.empty(room, np.int64) for _ in range(4))
    k.oso_header_places(data, spans, names, name_sizes, values, value_sizes)
    kept = np.empty(room, np.bool_)
    counts.stripped += k.appended_headers(
        data, numbers, spans, names, name_sizes, values, value_sizes, k.OFFSET_NAME, k.TIME_NAME, kept
    )
    counts.markers += _markers(data, spans)
    name_at, name_size, value_at, value_size = (np.ascontiguousarray(column[kept]) for column in places)
    headers = headers_column(
        data, spans[:, columns.HEADERS].copy(), BytesAt(name_at, name_size), BytesAt(value_at, value_size)
    )
    return record_batch(
        data,
        numbers[:, columns.OFFSET].copy(),
        numbers[:, columns.TIME].copy(),
        np.zeros(len(numbers), np.int8),
        BytesAt(spans[:, columns.KEY_AT], spans[:, columns.KEY_SIZE]),
        BytesAt(spans[:, columns.VALUE_AT], spans[:, columns.VALUE_SIZE]),
        headers,
    )


def _markers(data: Bytes, spans: Longs) -> int:
    """Records that look like transaction markers: key of a version and 0 or 1, a value of six bytes, no own header."""
    sized = (spans[:, columns.KEY_SIZE] == 4) & (spans[:, columns.VALUE_SIZE] == _MARKER_VALUE_BYTES)
    starts = spans[sized & (spans[:, columns.HEADERS] == 0), columns.KEY_AT]
    if not len(starts):
        return 0
    keys = data[starts[:, None] + np.arange(4)]
    return int(((keys[:, :3] == 0).all(axis=1) & (keys[:, 3] <= 1)).sum())


def warm() -> None:
    """Call every kernel once."""
    record = struct.pack("<Iqqiih", 26, 0, 0, -1, -1, 0)
    data = _HEAD.pack(MAGIC, 1, 0, 0, 1, 0, 0) + record
    opened = open_segment(data + struct.pack("<I", zlib.crc32(data)) + END_MAGIC, "")
    list(segment_records(opened, OsoCounts(), len(record)))
