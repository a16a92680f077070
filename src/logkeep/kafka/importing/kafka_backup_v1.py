"""Opens a kafka-backup-v1 dataset: `<topic>/index_partition_NNN` and segments, with or without `.logkeep/`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.datasets.kafka_backup_v1 import reader as v1
from logkeep.formats.datasets.kafka_backup_v1.files import segment_name
from logkeep.kafka.importing.reader import DatasetReader, DatasetTopic, PartitionReader, ReadNotes
from logkeep.kafka.importing.v1_segment import V1SegmentReader
from logkeep.kafka.record.import_label import ToolLabel
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.store.base import ObjectInfo, Store

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "kafka-backup-v1"
_INDEX_LIMIT, _GROUPS_LIMIT = 256 << 20, 64 << 20
EXPIRED, UNLISTED, TORN_INDEX = "segments-expired", "segment-not-listed", "partition-index-torn"
LABEL = ToolLabel(
    FORMAT,
    "itadventurer kafka-backup, or a tool that writes its format",
    unknown=(
        "topic ids, configs and numbers of replicas",
        "leader epochs, producers and transactions",
        "whether the log began before the first record",
        "metadata of commits",
    ),
)


@dataclass(frozen=True)
class ListedReader:
    """A segment: its two files if they are there, and its first offset according to the partition index (-1: none)."""

    start: int
    segment: V1SegmentReader | None
    first: int = -1

    @property
    def begin(self) -> int:
        """The offset of its first record, as far as its name and the index say: the tool calls a first segment 0."""
        return max(self.start, self.first)


@dataclass(frozen=True)
class V1PartitionReader:
    """One partition of the dataset."""

    topic: str
    partition: int
    segments: tuple[ListedReader, ...]
    torn_index_bytes: int = 0
    disjoint: bool = False
    """Whether Logkeep wrote it: its segments do not overlap."""

    @property
    def size_bytes(self) -> int:
        return sum(s.segment.size for s in self.segments if s.segment)

    @property
    def span(self) -> Range | None:
        return None

    def scans(self, notes: ReadNotes, start: int = 0) -> Iterator[tuple[V1SegmentReader, v1.V1Records, int]]:
        """All records with their places in the files. Segments that end before `start` are not read."""
        self._note_files(notes)
        above, missing, begun, first = -1, list[ListedReader](), False, self._first_read(start)
        for index, each in enumerate(self.segments):
            if each.segment is None:
                missing.append(each)
                continue
            if index < first and not missing:
                begun = True
                continue
            for records, base in each.segment.scan(notes, above):
                if missing and begun:
                    notes.lose(above + 1, int(records.offsets[0]), _gap(missing))
                missing, begun, above = [], True, int(records.offsets[-1])
                yield each.segment, records, base
        if missing and begun:
            notes.lose(above + 1, max(above, *(m.first for m in missing)) + 1, _gap(missing))

    def _first_read(self, start: int) -> int:
        """The first segment that may have a record from `start` on: the last one that begins at or before it, or an
        earlier one that reaches further.

        Each earlier one costs a request, so they are asked only as long as one overlaps the next.
        """
        begun = [(i, s.start, s.segment) for i, s in enumerate(self.segments) if s.segment and s.start <= start]
        if not begun:
            return 0
        first, following, _ = begun.pop()
        while begun and not self.disjoint:
            index, begin, segment = begun.pop()
            last = segment.last_listed()
            if last >= start:
                first = index
            if last < following:
                break
            following = begin
        return first

    def records(self, notes: ReadNotes, start: int = 0) -> "Iterator[pa.RecordBatch]":
        for _, found, _ in self.scans(notes, start):
            wanted = found[int(np.searchsorted(found.offsets, start)) :]
            if len(wanted):
                yield wanted.arrow()

    def listed(self, notes: ReadNotes) -> Sequence[int]:
        self._note_files(notes)
        there, missing = list[int](), list[ListedReader]()
        for each in self.segments:
            if each.segment is None:
                missing += [each] if there else []
                continue
            if missing:
                notes.lose(missing[0].begin, each.begin, _gap(missing))
            there, missing = [*there, each.begin], []
        if missing:
            notes.lose(missing[0].begin, missing[-1].begin + 1, _gap(missing))
        return there

    def _note_files(self, notes: ReadNotes) -> None:
        where = f"{self.topic}, partition {self.partition}"
        notes.add(TORN_INDEX, self.torn_index_bytes, where)
        there = [i for i, s in enumerate(self.segments) if s.segment]
        first = there[0] if there else len(self.segments)
        notes.add(EXPIRED, sum(s.segment is None for s in self.segments[:first]), where)
        listed = any(s.first >= 0 for s in self.segments)
        unlisted = [s.segment for s in self.segments if s.segment and s.first < 0] if listed else []
        notes.add(UNLISTED, len(unlisted), unlisted[0].records if unlisted else "")


def _gap(missing: Iterable[ListedReader]) -> str:
    names = ", ".join(str(m.start) for m in missing)
    return f"the partition index lists segments that are not there (from offset {names})"


@dataclass
class V1Files:
    """The files of one partition, as the listing has them."""

    records: dict[int, ObjectInfo] = field(default_factory=dict)
    indexes: dict[int, ObjectInfo] = field(default_factory=dict)
    listing: ObjectInfo | None = None
    groups: ObjectInfo | None = None


def open_kafka_backup_v1(store: Store, objects: Iterable[ObjectInfo]) -> DatasetReader:
    """The dataset in a directory or bucket. Raises Damaged, FormatTooNew or UsageError for files that are not its."""
    files = v1_files(objects)
    partitions = tuple(v1_partition(store, topic, number, f) for (topic, number), f in sorted(files.items()))
    counts: dict[str, int] = {}
    for topic, number in files:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    groups, findings = _groups(store, files)
    topics = tuple(DatasetTopic(name, None) for name in sorted(counts))
    read: tuple[PartitionReader, ...] = partitions
    return DatasetReader(LABEL, topics, read, groups, findings)


def v1_files(objects: Iterable[ObjectInfo]) -> dict[tuple[str, int], V1Files]:
    found: dict[tuple[str, int], V1Files] = {}
    for info in objects:
        topic, _, name = info.name.rpartition("/")
        parsed = v1.file_name(name)
        if not topic or "/" in topic or parsed is None:
            continue
        files = found.setdefault((topic, parsed.partition), V1Files())
        if parsed.kind == "records":
            _once(files.records, parsed.start, info)
        elif parsed.kind == "index":
            _once(files.indexes, parsed.start, info)
        elif parsed.kind == "groups":
            files.groups = info
        else:
            files.listing = info
    return found


def _once(files: dict[int, ObjectInfo], start: int, info: ObjectInfo) -> None:
    if start in files:
        raise Damaged(f"two files claim the segment from offset {start}", subject=info.name, remedy="remove one")
    files[start] = info


def v1_partition(store: Store, topic: str, number: int, files: V1Files) -> V1PartitionReader:
    """The partition as it was listed, up to a segment that a writer has begun since: its index may be newer."""
    entries, torn = list[v1.IndexedSegment](), 0
    if files.listing is not None:
        entries, torn = v1.listed_segments(store.get(files.listing.name, _INDEX_LIMIT), number, files.listing.name)
    first = {e.named: e.first for e in entries}
    found = {start: _segment(store, files, start) for start in files.records}
    there = {start: segment for start, segment in found.items() if segment is not None}
    oldest = min(there, default=-1)
    absent = (start for start in sorted(first) if start not in there and start > oldest)
    begun = next((start for start in absent if _is_there(store, topic, number, start)), None)
    starts = sorted(start for start in {*there, *first} if begun is None or start < begun)
    segments = tuple(ListedReader(start, there.get(start), first.get(start, -1)) for start in starts)
    return V1PartitionReader(topic, number, segments, torn)


def _is_there(store: Store, topic: str, number: int, start: int) -> bool:
    try:
        return store.head(f"{topic}/{segment_name(number, start)}_records").size > 0
    except ObjectMissing:
        return False


def _segment(store: Store, files: V1Files, start: int) -> V1SegmentReader | None:
    records, index = files.records.get(start), files.indexes.get(start)
    if records is None or (records.size == 0 and not index):
        return None
    return V1SegmentReader(store, records.name, records.size, index.name if index else "", index.size if index else 0)


def _groups(
    store: Store, files: dict[tuple[str, int], V1Files]
) -> tuple[dict[str, dict[tuple[str, int], int]], tuple[Finding, ...]]:
    found: dict[str, dict[tuple[str, int], int]] = {}
    findings = list[Finding]()
    for log, each in sorted(files.items()):
        if each.groups is None:
            continue
        try:
            offsets = v1.group_offsets(store.get(each.groups.name, _GROUPS_LIMIT), each.groups.name)
        except Damaged as damage:
            findings.append(
                Finding(
                    code="group-file-unreadable",
                    severity=Severity.WARNING,
                    where=each.groups.name,
                    what=f"{damage.what}; offsets of groups in this partition are not imported",
                )
            )
            continue
        for group, offset in offsets.items():
            found.setdefault(group, {})[log] = offset
    return found, tuple(findings)
