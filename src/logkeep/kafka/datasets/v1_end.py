"""Where a partition of a kafka-backup-v1 dataset ends, by its indexes. Reads no record but the offset of the last one.

Records are synced before their entries, and a segment's entries before the segment is listed. So a killed run leaves
at most: a torn entry at the end of an index, records after the last entry, a segment that is not listed yet. What is
whole is kept, the rest is cut off or removed by the next writer.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from logkeep.errors import Damaged, FormatTooNew, ObjectMissing, TargetUnsafe, UsageError
from logkeep.formats.datasets.kafka_backup_v1.files import (
    ENTRY_BYTES,
    MAGIC,
    ListedSegment,
    partition_index_name,
    segment_name,
)
from logkeep.formats.datasets.kafka_backup_v1.reader import listed_segments
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_document import DatasetLog

RECORDS, INDEX = "_records", "_index"
REINDEX: Final = "`logkeep kafka dataset verify` says what is wrong; or write to an empty directory"
_ENTRY: Final = struct.Struct(">qqq")
_OFFSET: Final = struct.Struct(">q")


class SegmentEnd(NamedTuple):
    """The whole part of a segment."""

    segment: ListedSegment
    last: int
    """The offset of its last whole record."""
    records_bytes: int
    index_bytes: int
    torn: bool = False
    """Whether its files have more bytes than that."""


@dataclass(frozen=True)
class V1End:
    """What is there of one partition."""

    listed_bytes: int
    """The bytes of whole entries in the partition index; 0: there is no index."""
    final: SegmentEnd | None = None
    unlisted: tuple[ListedSegment, ...] = ()
    """Whole segments that the index does not list yet, in order."""
    leftovers: tuple[str, ...] = ()
    """Objects of a segment without a whole entry, which a killed run left."""
    torn: bool = False
    """Whether the partition index ends with a torn entry."""
    index: bytes | None = None
    """The partition index as it was read."""
    start: int | None = None
    """The first offset of the first segment of which there is a file."""

    @property
    def unfinished(self) -> bool:
        return bool(self.unlisted or self.leftovers or self.torn or (self.final is not None and self.final.torn))


def find_v1_end(target: DatasetTarget, log: DatasetLog) -> V1End:
    """Where a partition ends. Raises TargetUnsafe for files that no run of Logkeep leaves."""
    name = f"{log.topic}/{partition_index_name(log.partition)}"
    data = target.read(name)
    stored = dict(_stored_segments(target, log))
    if not data:
        if stored:
            raise TargetUnsafe("it has segments but no partition index", subject=f"{target.url}/{name}", remedy=REINDEX)
        return V1End(0, index=data)
    try:
        found, torn = listed_segments(data, log.partition, name)
    except (Damaged, FormatTooNew, UsageError) as error:
        raise TargetUnsafe(error.what, subject=f"{target.url}/{name}", remedy=REINDEX) from error
    listed = [ListedSegment(segment_name(log.partition, each.named), each.first) for each in found[-1:]]
    last_start = listed[0].start if listed else -1
    final = _end_of(target, log, listed[0]) if listed else None
    if listed and final is None:
        raise _unsafe(target, log, listed[0], "is listed, but has no whole record")
    later = [ListedSegment(stored[start], start) for start in sorted(stored) if start > last_start]
    end = V1End(len(data) - torn, final, torn=torn > 0, index=data, start=min(stored, default=None))
    return _with_later(target, log, end, later)


def _with_later(target: DatasetTarget, log: DatasetLog, end: V1End, later: list[ListedSegment]) -> V1End:
    """The end with segments that a killed run did not list any more."""
    final, unlisted = end.final, list[ListedSegment]()
    for number, segment in enumerate(later):
        if final is not None and segment.start <= final.last:
            raise _unsafe(target, log, segment, "is not listed and overlaps one that is")
        found = _end_of(target, log, segment)
        if found is None:
            if number + 1 < len(later):
                raise _unsafe(target, log, segment, "has no whole record, and others follow")
            names = tuple(f"{log.topic}/{segment.name}{ending}" for ending in (INDEX, RECORDS))
            return replace(end, final=final, unlisted=tuple(unlisted), leftovers=names)
        final = found
        unlisted.append(segment)
    return replace(end, final=final, unlisted=tuple(unlisted))


def _stored_segments(target: DatasetTarget, log: DatasetLog) -> Iterator[tuple[int, str]]:
    """Start and name of each segment of which there is a file."""
    begin = f"{log.topic}/{segment_name(log.partition, 0).removesuffix('0' * 10)}"
    shape = re.compile(rf"{re.escape(begin)}([0-9]{{10,19}})(?:{RECORDS}|{INDEX})")
    for info in target.store.list(f"{log.topic}/", after=begin):
        if not info.name.startswith(begin):
            return
        found = shape.fullmatch(info.name)
        if found:
            yield int(found[1]), f"{begin.partition('/')[2]}{found[1]}"


def _end_of(target: DatasetTarget, log: DatasetLog, segment: ListedSegment) -> SegmentEnd | None:
    """The last whole indexed record; None if there is none."""
    path = f"{log.topic}/{segment.name}"
    index_bytes, records_bytes = target.size(path + INDEX) or 0, target.size(path + RECORDS) or 0
    for number in range((index_bytes - len(MAGIC)) // ENTRY_BYTES, 0, -1):
        at = len(MAGIC) + (number - 1) * ENTRY_BYTES
        offset, position, length = _ENTRY.unpack(target.store.get_range(path + INDEX, at, ENTRY_BYTES))
        if position < len(MAGIC) or length < _OFFSET.size:
            raise _unsafe(target, log, segment, f"has an index whose entry at byte {at} is invalid")
        if position + length > records_bytes:
            continue
        if _offset_at(target, path, position) != offset:
            raise _unsafe(target, log, segment, f"has an index that is not its own: see the entry at byte {at}")
        whole, entries = position + length, at + ENTRY_BYTES
        return SegmentEnd(segment, offset, whole, entries, records_bytes > whole or index_bytes > entries)
    return None


def last_record(target: DatasetTarget, log: DatasetLog, end: SegmentEnd) -> bytes:
    """The bytes of the last whole record."""
    path = f"{log.topic}/{end.segment.name}"
    entry = target.store.get_range(path + INDEX, end.index_bytes - ENTRY_BYTES, ENTRY_BYTES)
    _, position, length = _ENTRY.unpack(entry)
    return target.store.get_range(path + RECORDS, position, length)


def _offset_at(target: DatasetTarget, path: str, position: int) -> int | None:
    try:
        (offset,) = _OFFSET.unpack(target.store.get_range(path + RECORDS, position, _OFFSET.size))
    except (Damaged, ObjectMissing):
        return None
    return int(offset)


def _unsafe(target: DatasetTarget, log: DatasetLog, segment: ListedSegment, what: str) -> TargetUnsafe:
    return TargetUnsafe(f"the segment {what}", subject=f"{target.url}/{log.topic}/{segment.name}", remedy=REINDEX)
