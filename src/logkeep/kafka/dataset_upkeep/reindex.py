"""Writes the indexes of a kafka-backup-v1 dataset again from its records.

An existing index helps to find records after a torn write, where it fits them. It is kept as it is if it lists records
that cannot be read: without it nothing would show that they are lost. The same holds for a partition index that lists
segments in the middle which are not there, or nothing but such segments. A segment whose records cannot be read stays
in the partition index.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.datasets.kafka_backup_v1 import reader as v1
from logkeep.formats.datasets.kafka_backup_v1 import v1_reader_kernels as k
from logkeep.formats.datasets.kafka_backup_v1.files import MAGIC as FIRST_BYTE
from logkeep.formats.datasets.kafka_backup_v1.files import ListedSegment, partition_index_name, segment_name
from logkeep.kafka.dataset_upkeep.v1_segments import OpenedPartition, open_partition, readable_index
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.importing.kafka_backup_v1 import V1Files
from logkeep.kafka.importing.reader import ReadNotes
from logkeep.kafka.importing.v1_segment import TORN_TAIL, V1SegmentReader
from logkeep.model.findings import Finding, Severity, error_finding
from logkeep.model.plurals import plural

_ENTRY = np.dtype(">i8")


@dataclass(frozen=True)
class IndexResult:
    """One index: what it has now, or would have."""

    name: str
    entries: int
    written: bool
    """Whether it was not the same before; in a dry run, whether it would be written."""
    kept: Finding | None = None
    """Why it was left as it was."""


def reindex_partition(
    target: DatasetTarget, topic: str, number: int, files: V1Files, *, dry_run: bool
) -> Iterator[IndexResult]:
    """Indexes of segments, then that of the partition."""
    opened = open_partition(target.store, topic, number, files)
    starts = list[int]()
    for each in opened.reader.segments:
        if each.segment is None:
            continue
        name = f"{topic}/{segment_name(number, each.start)}_index"
        done = _segment_index(target, each.segment, name, listed=each.first >= 0, dry_run=dry_run)
        if done is not None:
            starts.append(each.start)
            yield done
    found = [ListedSegment(segment_name(number, start), start) for start in starts or _empty_partition(opened)]
    yield _partition_index(target, opened, found, dry_run=dry_run)


def _empty_partition(opened: OpenedPartition) -> list[int]:
    """The only listed segment, without a record: the original tool writes an empty partition so."""
    listed = [each for each in opened.reader.segments if each.first >= 0]
    return [each.start for each in listed if each.segment is not None] if len(listed) == 1 else []


class _Segment:
    """The records of one segment as the bytes of its index: 24 for each record, also for those of earlier segments."""

    def __init__(self, segment: V1SegmentReader) -> None:
        reader, _ = readable_index(segment)
        self.notes, pieces = ReadNotes(), [FIRST_BYTE]
        for records, base in reader.scan(self.notes):
            numbers = records.numbers
            rows = np.column_stack((records.offsets, numbers[:, k.POSITION] + base, numbers[:, k.LENGTH]))
            pieces.append(rows.astype(_ENTRY).tobytes())
        self.index = b"".join(pieces)
        self.entries = len(self.index) // v1.ENTRY_BYTES
        self.unread_bytes = sum(each.count for each in self.notes.doubts if each.code == TORN_TAIL)


def _segment_index(
    target: DatasetTarget, segment: V1SegmentReader, name: str, *, listed: bool, dry_run: bool
) -> IndexResult | None:
    """None: the segment has no record, and nothing shows that it had one. `listed`: the partition index has it."""
    try:
        found = _Segment(segment)
    except Damaged as error:
        return IndexResult(name, 0, False, error_finding(error, segment.records))
    if found.notes.lost:
        gap = found.notes.lost[0]
        what = f"it lists records from offset {gap.start} on that cannot be read; it was left as it is"
        return IndexResult(name, found.entries, False, _left_as_it_is("records-lost", name, what))
    if not found.entries:
        return _unread(found, segment.records, name) if listed and found.unread_bytes else None
    changed = target.read(name) != found.index
    if changed and not dry_run:
        target.put(name, found.index)
    return IndexResult(name, found.entries, changed)


def _unread(found: _Segment, records: str, name: str) -> IndexResult:
    unread = Finding(
        code="segment-unreadable",
        severity=Severity.DAMAGE,
        where=records,
        what=f"none of its {plural(found.unread_bytes, 'byte')} belongs to a record; it stays in the partition index",
        remedy="copy it again from where it was written; if the tool was killed there, delete it and its index",
    )
    return IndexResult(name, 0, False, unread)


def _partition_index(
    target: DatasetTarget, opened: OpenedPartition, listed: list[ListedSegment], *, dry_run: bool
) -> IndexResult:
    reader = opened.reader
    name = f"{reader.topic}/{partition_index_name(reader.partition)}"
    there = [position for position, each in enumerate(reader.segments) if each.segment]
    lost = [s.start for s in reader.segments[there[0] if there else 0 :] if s.segment is None]
    if lost:
        what = f"it lists the segment from offset {lost[0]}, which is not there; it was left as it is"
        return IndexResult(name, len(listed), False, _left_as_it_is("gap", name, what))
    data = FIRST_BYTE + b"".join(each.encoded() for each in listed)
    changed = target.read(name) != data
    if changed and not dry_run:
        target.put(name, data)
    return IndexResult(name, len(listed), changed)


def _left_as_it_is(code: str, name: str, what: str) -> Finding:
    return Finding(
        code=code,
        severity=Severity.DAMAGE,
        where=name,
        what=what,
        remedy="copy the missing files from where they were written, or delete this index and run reindex again",
    )
