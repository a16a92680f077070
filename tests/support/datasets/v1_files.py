"""Writes kafka-backup-v1 files by hand: field after field, as the format's own table has them."""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class HandRecord:
    offset: int
    key: bytes | None = None
    value: bytes | None = None
    time: int = 0
    kind: int = 0
    headers: Sequence[tuple[bytes, bytes | None]] = field(default_factory=list)


def _sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def record_bytes(record: HandRecord) -> bytes:
    time = struct.pack(">q", record.time) if record.kind >= 0 else b""
    headers = b"".join(_sized(name) + _sized(value) for name, value in record.headers)
    start = struct.pack(">qi", record.offset, record.kind) + time
    return start + _sized(record.key) + _sized(record.value) + struct.pack(">i", len(record.headers)) + headers


def segment_files(records: Sequence[HandRecord], torn: Mapping[int, bytes] | None = None) -> tuple[bytes, bytes]:
    """The record file and its index; `torn` puts bytes of a torn write before the record at a place in the list."""
    data, index = bytearray(b"\x01"), bytearray(b"\x01")
    for place, each in enumerate(records):
        data += (torn or {}).get(place, b"")
        encoded = record_bytes(each)
        index += struct.pack(">qqq", each.offset, len(data), len(encoded))
        data += encoded
    return bytes(data), bytes(index)


def segment_name(partition: int, start: int) -> str:
    return f"segment_partition_{partition:03d}_from_offset_{start:010d}"


def partition_index_bytes(partition: int, starts: Sequence[tuple[int, int]]) -> bytes:
    """Of (offset in the name, first offset)."""
    entries = ((segment_name(partition, named).encode(), first) for named, first in starts)
    return b"\x01" + b"".join(struct.pack(">i", len(n)) + n + struct.pack(">q", first) for n, first in entries)


def write_partition(
    root: Path,
    topic: str,
    partition: int,
    segments: Mapping[int, Sequence[HandRecord]],
    groups: Mapping[str, int] | None = None,
) -> Path:
    """All files of a partition; the first offset of a segment is that of its name."""
    folder = root / topic
    folder.mkdir(parents=True, exist_ok=True)
    for start, records in segments.items():
        data, index = segment_files(records)
        (folder / f"{segment_name(partition, start)}_records").write_bytes(data)
        (folder / f"{segment_name(partition, start)}_index").write_bytes(index)
    listed = partition_index_bytes(partition, [(start, start) for start in segments])
    (folder / f"index_partition_{partition:03d}").write_bytes(listed)
    (folder / f"consumer_offsets_partition_{partition:03d}").write_text(json.dumps(groups or {}))
    return folder
