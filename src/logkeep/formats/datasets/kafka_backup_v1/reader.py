"""Reads the files of kafka-backup-v1: names, indexes and records. Pure: bytes in, values out.

All numbers are big-endian; every file begins with the byte 01:

    index_partition_%03d                               { size of name i32 | name | first offset i64 }
    segment_partition_%03d_from_offset_%010d_records   { offset i64 | type i32 | [time i64] | key | value | headers }
    segment_partition_%03d_from_offset_%010d_index     { offset i64 | position i64 | length i64 }
    consumer_offsets_partition_%03d                    a JSON map of groups to offsets

Widths of numbers in names are minimum widths. A name in a partition index is the segment's without `_records`. Names
are read as numbers and never used as a path.
"""

import re
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from logkeep.errors import Damaged, FormatTooNew, UsageError
from logkeep.formats.datasets.arrow import APPEND_TIME, CREATE_TIME
from logkeep.formats.datasets.kafka_backup_v1 import v1_reader_kernels as k
from logkeep.formats.datasets.kafka_backup_v1.files import index_entries
from logkeep.formats.datasets.record_parts import BytesAt, headers_column, record_batch
from logkeep.formats.kafka.record_kernels import Bytes, Longs

MAGIC = 1
_LATEST_MAGIC = 8
"""Larger first bytes are those of text and of other formats, not of a later version."""
ENTRY_BYTES = 24
_SEGMENT = re.compile(r"segment_partition_(\d{3,10})_from_offset_(\d{10,19})(_records|_index|)")
_OTHER = re.compile(r"(index|consumer_offsets)_partition_(\d{3,10})")
_MOST_PARTITION = 2**31 - 1
_LONGEST_NAME = 4096
ROWS = 1 << 16
"""Records that are decoded at a time."""


@dataclass(frozen=True)
class V1FileName:
    """What the name of a file says."""

    kind: str
    """`records`, `index` (of a segment), `partition-index` or `groups`."""
    partition: int
    start: int = 0


def file_name(name: str) -> V1FileName | None:
    """What a file is, by its name without directories; None: not a file of this format."""
    if found := _SEGMENT.fullmatch(name):
        kind = found[3].removeprefix("_")
        parsed = V1FileName(kind, int(found[1]), int(found[2])) if kind else None
    elif found := _OTHER.fullmatch(name):
        parsed = V1FileName({"index": "partition-index"}.get(found[1], "groups"), int(found[2]))
    else:
        return None
    return parsed if parsed and parsed.partition <= _MOST_PARTITION and parsed.start < 2**63 - 1 else None


def check_magic(data: bytes, where: str) -> None:
    """Raises FormatTooNew for a later version, UsageError for another format, Damaged for no byte at all."""
    if not data:
        raise Damaged("the file is empty: it lacks its first byte", subject=where, remedy=_REMEDY)
    if MAGIC < data[0] <= _LATEST_MAGIC:
        what = f"its version is {data[0]}; this release reads version {MAGIC} of kafka-backup-v1"
        raise FormatTooNew(what, subject=where)
    if data[0] != MAGIC:
        remedy = "name the directory that holds the directories of topics"
        raise UsageError("its first byte is not 01: not a file of kafka-backup-v1", subject=where, remedy=remedy)


_REMEDY = "copy the file again from where it was written"


@dataclass(frozen=True)
class IndexedSegment:
    """A segment as the partition index lists it: by the offset in its name, and its first offset."""

    named: int
    first: int


def listed_segments(data: bytes, partition: int, where: str) -> tuple[list[IndexedSegment], int]:
    """The segments in a partition index, and the bytes of a torn last entry. Raises Damaged for any other name."""
    check_magic(data, where)
    listed, end = list[IndexedSegment](), 1
    for entry in index_entries(data, _LONGEST_NAME, where, _REMEDY):
        found = _SEGMENT.fullmatch(entry.name.decode("utf-8", "replace"))
        if not found or found[3] or int(found[1]) != partition:
            what = f"the entry at byte {entry.at} names no segment of this partition"
            raise Damaged(what, subject=where, remedy=_REMEDY)
        if entry.start < 0 or (listed and entry.start <= listed[-1].first):
            what = f"the first offset of the entry at byte {entry.at} does not rise"
            raise Damaged(what, subject=where, remedy=_REMEDY)
        listed.append(IndexedSegment(int(found[2]), entry.start))
        end = entry.end
    return listed, len(data) - end


def segment_entries(data: bytes, at: int = 1) -> Longs:
    """Whole entries (offset, position, length) from a byte on, unchecked."""
    count = max(len(data) - at, 0) // ENTRY_BYTES
    return np.frombuffer(data, ">i8", 3 * count, at if count else 0).astype(np.int64).reshape(-1, 3)


def group_offsets(data: bytes, where: str) -> dict[str, int]:
    """Groups and their offsets. A file of 0 bytes has none: the tool creates it so. Raises Damaged."""
    if not data.strip():
        return {}
    try:
        found = msgspec.json.decode(data, type=dict[str, int])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Damaged(f"not a JSON map of groups to offsets ({error})", subject=where, remedy=_REMEDY) from error
    if wrong := [group for group, offset in found.items() if not (group and 0 <= offset < 2**63)]:
        raise Damaged(f"the offset of group {wrong[0]!r} is impossible", subject=where, remedy=_REMEDY)
    return found


@dataclass(frozen=True)
class V1Records:
    """Records in a part of a file, as columns of the kernels."""

    data: Bytes
    numbers: Longs
    spans: Longs

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def offsets(self) -> Longs:
        return self.numbers[:, k.OFFSET]

    def __getitem__(self, rows: slice) -> "V1Records":
        return V1Records(self.data, self.numbers[rows], self.spans[rows])

    def arrow(self) -> pa.RecordBatch:
        """The records in the Arrow form of all formats."""
        spans, kinds = self.spans, self.numbers[:, k.KIND]
        return record_batch(
            self.data,
            np.ascontiguousarray(self.offsets),
            np.ascontiguousarray(self.numbers[:, k.TIME]),
            np.where(kinds == APPEND_TIME, APPEND_TIME, CREATE_TIME).astype(np.int8),
            BytesAt(spans[:, k.KEY_AT], spans[:, k.KEY_SIZE]),
            BytesAt(spans[:, k.VALUE_AT], spans[:, k.VALUE_SIZE]),
            self._headers(),
        )

    def _headers(self) -> pa.Array:
        spans = np.ascontiguousarray(self.spans)
        counts = np.ascontiguousarray(spans[:, k.HEADERS])
        places = [np.empty(int(counts.sum()), np.int64) for _ in range(4)]
        k.header_places(self.data, spans, *places)
        return headers_column(self.data, counts, BytesAt(places[0], places[1]), BytesAt(places[2], places[3]))


@dataclass(frozen=True)
class Walked:
    """Records that follow each other, up to where the walk ended."""

    records: V1Records
    at: int
    why: int
    """One of END, FULL, TORN, BAD of the kernels."""


def walk(data: bytes, at: int, end: int, above: int) -> Walked:
    """Records from byte `at` on, with rising offsets above `above`; at most `ROWS`."""
    rows = min(ROWS, max(end - at, 0) // k.LEAST_RECORD_BYTES + 1)
    array, numbers, spans = np.frombuffer(data, np.uint8), *_room(rows)
    count, stopped, why = k.walk_records(array, at, end, above, numbers, spans)
    return Walked(V1Records(array, numbers[:count], spans[:count]), stopped, why)


def read_at(data: bytes, base: int, entries: Longs) -> tuple[V1Records, Longs]:
    """The records that entries of an index name, of data that begins at byte `base` of the file.

    Also the rows of those entries that do not fit their record.
    """
    array, (numbers, spans) = np.frombuffer(data, np.uint8), _room(len(entries))
    good = np.empty(len(entries), np.bool_)
    starts, lengths = np.ascontiguousarray(entries[:, 1] - base), np.ascontiguousarray(entries[:, 2])
    offsets = np.ascontiguousarray(entries[:, 0])
    count = k.read_entries(array, starts, lengths, offsets, numbers, spans, good)
    return V1Records(array, numbers[:count], spans[:count]), np.flatnonzero(~good)


def _room(rows: int) -> tuple[Longs, Longs]:
    return np.empty((rows, k.NUMBER_COLUMNS), np.int64), np.empty((rows, k.SPAN_COLUMNS), np.int64)


def warm() -> None:
    """Call every kernel once."""
    data = bytes(11) + b"\x01" + bytes(8) + b"\xff" * 8 + bytes(4)
    entries = segment_entries(b"".join(n.to_bytes(8, "big") for n in (0, 0, len(data))), 0)
    k.fitting_entries(entries, len(data), -1, 0)
    walk(data, 0, len(data), -1).records.arrow()
    read_at(data, 0, entries)
