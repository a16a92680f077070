"""kafka-backup-v1: files that hold the records of one partition, as bytes. Pure.

All numbers are big-endian. Every file but that of the groups begins with the byte 01, then entries follow without a
delimiter:

    index_partition_%03d                               { name length i32 | name | start offset i64 }*
    segment_partition_%03d_from_offset_%010d_records   { offset i64 | time type i32 | [time i64] | key | value
                                                         | headers i32 | { name | value }* }*
    segment_partition_%03d_from_offset_%010d_index     { offset i64 | position i64 | length i64 }*
    consumer_offsets_partition_%03d                    {"group":42,"other":7}

A key, value, name or header value is its length (i32) and its bytes; a length of -1 is null. A name in the partition
index is that of the segment without `_records`. Types of times: -1 none, 0 CreateTime, 1 LogAppendTime, -2 CreateTime
whose time is -1; only 0 and 1 are followed by a time. Widths of numbers in names are minimum widths.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from logkeep.errors import Damaged
from logkeep.formats.datasets.binary_spans import binary_spans, list_borders, numbers
from logkeep.formats.datasets.kafka_backup_v1.v1_writer_kernels import write_records
from logkeep.formats.kafka.record_kernels import Bytes, Longs

NAME: Final = "kafka-backup-v1"
MAGIC: Final = b"\x01"
CREATE_TIME, APPEND_TIME, NO_TIME, CREATE_WITHOUT_TIME = 0, 1, -1, -2
ENTRY_BYTES: Final = 24
"""Of a segment index."""
_LENGTH: Final = struct.Struct(">i")
_START: Final = struct.Struct(">q")
_ENTRY = np.dtype(">i8")
_FIXED_BYTES: Final = 8 + 4 + 4 + 4 + 4


def partition_index_name(partition: int) -> str:
    return f"index_partition_{partition:03d}"


def group_file(partition: int) -> str:
    return f"consumer_offsets_partition_{partition:03d}"


def segment_name(partition: int, start: int) -> str:
    """Without the ending."""
    return f"segment_partition_{partition:03d}_from_offset_{start:010d}"


@dataclass(frozen=True)
class EncodedRecords:
    """Records one after the other; record `i` ends at `ends[i]`."""

    data: Bytes
    offsets: Longs
    ends: Longs

    @property
    def starts(self) -> Longs:
        found: Longs = np.concatenate((np.zeros(min(len(self.ends), 1), np.int64), self.ends[:-1]))
        return found

    def index(self, first: int, after: int, position: int) -> bytes:
        """Entries of these records, if the first of them is at `position` of its file."""
        starts, ends = self.starts[first:after], self.ends[first:after]
        moved = starts - (starts[0] if len(starts) else 0) + position
        return np.column_stack((self.offsets[first:after], moved, ends - starts)).astype(_ENTRY).tobytes()


def encode(records: pa.RecordBatch) -> EncodedRecords:
    """Records in the form of `arrow.SCHEMA`."""
    offsets, times, types = numbers(records, "offset"), numbers(records, "timestamp"), _types(records)
    keys, values = binary_spans(records.column("key")), binary_spans(records.column("value"))
    borders = list_borders(records.column("headers"))
    pairs = records.column("headers").values
    names, header_values = binary_spans(pairs.field("key")), binary_spans(pairs.field("value"))
    each = 8 + np.maximum(names.sizes, 0) + np.maximum(header_values.sizes, 0)
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(each)))
    timed = np.where(types >= 0, 8, 0)
    sizes = _FIXED_BYTES + timed + np.maximum(keys.sizes, 0) + np.maximum(values.sizes, 0) + np.diff(sums[borders])
    ends = np.cumsum(sizes)
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    if write_records(offsets, types, times, *keys, *values, borders, *names, *header_values, out, ends) < len(ends):
        raise Damaged("a record's columns do not fit together", subject=NAME)
    return EncodedRecords(out, offsets, ends)


def _types(records: pa.RecordBatch) -> Longs:
    types = numbers(records, "timestamp_type")
    without = (types == CREATE_TIME) & (numbers(records, "timestamp") == -1)
    found: Longs = np.where(without, np.int64(CREATE_WITHOUT_TIME), types)
    return found


class ListedSegment(NamedTuple):
    """An entry of a partition index."""

    name: str
    start: int

    def encoded(self) -> bytes:
        name = self.name.encode()
        return _LENGTH.pack(len(name)) + name + _START.pack(self.start)


class IndexEntry(NamedTuple):
    """A whole entry of a partition index, as its bytes have it."""

    at: int
    name: bytes
    start: int
    end: int
    """The position after the entry."""


def index_entries(data: bytes, longest_name: int, where: str, remedy: str = "") -> Iterator[IndexEntry]:
    """All whole entries after the first byte of the file; a torn last entry is left out.

    Raises Damaged for a name of no bytes, or of more than `longest_name`.
    """
    at = len(MAGIC)
    while at + _LENGTH.size <= len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        if not 0 < size <= longest_name:
            raise Damaged(f"the name at byte {at} has a length of {size}", subject=where, remedy=remedy)
        after = at + _LENGTH.size + size
        if after + _START.size > len(data):
            return
        (start,) = _START.unpack_from(data, after)
        name = data[at + _LENGTH.size : after]
        end = after + _START.size
        yield IndexEntry(at, name, start, end)
        at = end


def encode_groups(positions: Mapping[str, int]) -> bytes:
    """One line without a line feed."""
    ordered = {name: positions[name] for name in sorted(positions)}
    return json.dumps(ordered, separators=(",", ":"), ensure_ascii=False).encode()
