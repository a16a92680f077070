"""Opens an archive of OSO kafka-backup: a manifest, and `topics/<topic>/partition=<n>/segment-<offset>.bin`.

The manifest says what belongs to the archive. A key in it is used only as the topic, partition and offset that it
spells, and the file is looked up in the listing: a renamed or copied directory is read as well.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import msgspec

from logkeep.errors import Damaged, ObjectMissing, UsageError
from logkeep.kafka.importing.reader import ABORTED_UNKNOWN, OVERLAPPING, DatasetReader, DatasetTopic, ReadNotes
from logkeep.kafka.record.import_label import ToolLabel
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.store.base import ObjectInfo, Store

if TYPE_CHECKING:
    import pyarrow as pa

    from logkeep.formats.datasets.oso_segments import OsoSegment

FORMAT = "oso"
MANIFEST, GROUPS = "manifest.json", "consumer-groups-snapshot.json"
_DOCUMENT_LIMIT, LARGEST_SEGMENT_BYTES = 512 << 20, 1 << 30
"""A segment is as large as the tool was configured; its default is 128 MB."""
_KEY = re.compile(r"topics/([^/]+)/partition=(\d{1,10})/segment-(\d{20})\.bin(\.zst|\.lz4)?")
_REMEDY = "copy the archive again from where the tool wrote it"
_T = TypeVar("_T")


class _Segment(msgspec.Struct, frozen=True):
    key: str
    start_offset: int
    end_offset: int
    record_count: int | None = None
    uncompressed_size: int | None = None
    sha256: str | None = None
    covered_start_offset: int | None = None
    covered_end_offset: int | None = None
    pruned: bool | None = None


class _Gap(msgspec.Struct, frozen=True):
    start_offset: int
    end_offset: int
    reason: str | None = None


class _Partition(msgspec.Struct, frozen=True):
    partition_id: int
    segments: tuple[_Segment, ...] = ()
    gaps: tuple[_Gap, ...] = ()


class _Topic(msgspec.Struct, frozen=True):
    name: str
    partitions: tuple[_Partition, ...] = ()
    original_partition_count: int | None = None
    source_replication_factor: int | None = None
    configurations: dict[str, str] | None = None


class _Manifest(msgspec.Struct, frozen=True):
    backup_id: str
    topics: tuple[_Topic, ...]
    source_cluster_id: str | None = None
    isolation_level: str | None = None


class _Group(msgspec.Struct, frozen=True):
    group_id: str
    offsets: dict[str, dict[str, int]]


class _Snapshot(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...]


@dataclass(frozen=True)
class OsoSegmentFile:
    """One segment of the manifest, and its file if it is there."""

    start: int
    end: int
    """Offsets that it covers, `[start, end)`."""
    name: str
    """The name of its file, below the manifest's directory; empty if the manifest says that the tool removed it."""
    file: ObjectInfo | None
    most_bytes: int
    listed: tuple[int, int, int | None]
    """Offsets of its first and its last record, and how many there are, as the manifest has them."""
    sha256: str | None
    """Of the file; None in a manifest before 0.25."""


@dataclass(frozen=True)
class OsoPartitionReader:
    store: Store
    topic: str
    partition: int
    segments: tuple[OsoSegmentFile, ...]
    gaps: tuple[tuple[int, int, str], ...]
    append_time: bool

    @property
    def size_bytes(self) -> int:
        return sum(s.file.size for s in self.segments if s.file)

    @property
    def span(self) -> Range | None:
        there = [s for s in self.segments if s.file]
        return Range(there[0].start, max(s.end for s in self.segments)) if there else None

    def records(self, notes: ReadNotes, start: int = 0) -> "Iterator[pa.RecordBatch]":
        from logkeep.formats.datasets.binary_spans import numbers  # noqa: PLC0415 - pyarrow loads late

        self._note_missing(notes)
        last = start - 1
        for segment in self.segments:
            if segment.file is None or segment.end <= start:
                continue
            for batch in self._segment(segment, notes):
                offsets = numbers(batch, "offset")
                known = int(offsets.searchsorted(last, "right"))
                notes.add(OVERLAPPING, known if last >= start else 0, segment.file.name)
                if known < len(offsets):
                    last = int(offsets[-1])
                    yield batch.slice(known)

    def listed(self, notes: ReadNotes) -> Sequence[int]:
        self._note_missing(notes)
        return [s.start for s in self.segments if s.file]

    def _segment(self, segment: OsoSegmentFile, notes: ReadNotes) -> "Iterator[pa.RecordBatch]":
        from logkeep.formats.datasets.oso_segments import (  # noqa: PLC0415 - as above
            OsoCounts,
            open_segment,
            segment_records,
        )

        assert segment.file is not None  # noqa: S101 - the caller asked
        name, counts = segment.file.name, OsoCounts()
        data = self.store.get(name, LARGEST_SEGMENT_BYTES)
        opened = open_segment(data, name)
        _refuse_other(segment, opened, data)
        for batch in segment_records(opened, counts, segment.most_bytes):
            notes.add("producer-times", batch.num_rows if self.append_time else 0, name)
            yield batch
        notes.add("markers", counts.markers, name)

    def _note_missing(self, notes: ReadNotes) -> None:
        there = [i for i, s in enumerate(self.segments) if s.file]
        first = there[0] if there else len(self.segments)
        notes.add("segments-expired", first, f"{self.topic}, partition {self.partition}")
        for missing in (s for s in self.segments[first:] if s.file is None):
            notes.lose(
                missing.start, missing.end, f"the manifest lists a segment from {missing.start} that is not there"
            )
        for begin, end, reason in self.gaps:
            notes.lose(begin, end, reason)


def manifests(objects: Sequence[ObjectInfo]) -> list[str]:
    """The manifests of archives in a listing, at its top or one directory below."""
    return [i.name for i in objects if i.name.rpartition("/")[2] == MANIFEST and i.name.count("/") <= 1]


def open_oso(store: Store, objects: Sequence[ObjectInfo]) -> DatasetReader:
    """The one archive in a directory or bucket. Raises Damaged or UsageError."""
    found = manifests(objects)
    if len(found) != 1:
        names = ", ".join(name.rpartition("/")[0] for name in found[:5])
        raise UsageError(f"it has several archives: {names}", subject=store.url, remedy="name one of the directories")
    root = found[0].removesuffix(MANIFEST)
    manifest = _read(store, found[0], _Manifest)
    files = {i.name.removeprefix(root): i for i in objects if i.name.startswith(f"{root}topics/")}
    partitions = tuple(
        _partition(store, topic, each, files, root)
        for topic in manifest.topics
        for each in sorted(topic.partitions, key=lambda p: p.partition_id)
    )
    _refuse_repeats([(p.topic, p.partition) for p in partitions], found[0])
    groups, findings = _groups(store, objects, f"{root}{GROUPS}")
    return DatasetReader(
        _label(manifest),
        tuple(map(_topic, sorted(manifest.topics, key=lambda t: t.name))),
        tuple(sorted(partitions, key=lambda p: (p.topic, p.partition))),
        groups,
        (*findings, *_unlisted(files, partitions)),
        cluster_id=manifest.source_cluster_id or "",
    )


def _read(store: Store, name: str, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(store.get(name, _DOCUMENT_LIMIT), type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        what = f"it is not a document of OSO kafka-backup ({error})"
        raise UsageError(what, subject=name, remedy="name the directory that has the tool's manifest.json") from error


def _label(manifest: _Manifest) -> ToolLabel:
    unknown = ["timestamp types", "leader epochs, producers and transactions", "topic ids", "metadata of commits"]
    if manifest.isolation_level != "read_committed":
        unknown.append(ABORTED_UNKNOWN)
    version = "0.25 or newer" if manifest.isolation_level else "before 0.25"
    return ToolLabel(FORMAT, "OSO kafka-backup", version, tuple(unknown))


def _topic(topic: _Topic) -> DatasetTopic:
    factor, count = topic.source_replication_factor or 0, topic.original_partition_count
    if not 0 <= factor < 1 << 15 or not (count is None or 0 <= count <= 1_000_000):
        raise Damaged(f"the manifest has impossible numbers for topic {topic.name!r}", remedy=_REMEDY)
    return DatasetTopic(topic.name, count, factor, topic.configurations or {})


def _partition(
    store: Store, topic: _Topic, found: _Partition, files: Mapping[str, ObjectInfo], root: str
) -> OsoPartitionReader:
    where = f"{topic.name}/{found.partition_id}"
    if not 0 <= found.partition_id < 1_000_000:
        raise Damaged("an impossible number of a partition", subject=where, remedy=_REMEDY)
    segments = sorted((_file(topic.name, found.partition_id, s, files) for s in found.segments), key=lambda s: s.start)
    last = max((s.start for s in segments if s.file), default=-1)
    segments = [_newer(store, root, s) if s.start > last else s for s in segments]
    gaps = tuple(
        (*_range(g.start_offset, g.end_offset, where), f"the tool lost it: {g.reason or 'unknown'}"[:200])
        for g in found.gaps
    )
    kind = (topic.configurations or {}).get("message.timestamp.type", "")
    return OsoPartitionReader(store, topic.name, found.partition_id, tuple(segments), gaps, kind == "LogAppendTime")


def _file(topic: str, partition: int, segment: _Segment, files: Mapping[str, ObjectInfo]) -> OsoSegmentFile:
    parts = segment.key.split("/")
    named = segment.key[max(segment.key.rfind("/topics/") + 1, 0) :]
    found = _KEY.fullmatch(named)
    if not found or ".." in parts or not parts[0] or (found[1], int(found[2])) != (topic, partition):
        what = f"the key {segment.key[:100]!r} is not one of a segment of this partition"
        raise Damaged(what, subject=f"{topic}/{partition}", remedy=_REMEDY)
    covered, after = segment.covered_start_offset, segment.covered_end_offset
    start = segment.start_offset if covered is None else min(covered, segment.start_offset)
    end = segment.end_offset if after is None else max(after, segment.end_offset)
    span = _range(start, end + 1, named)
    size = segment.uncompressed_size
    most = LARGEST_SEGMENT_BYTES if size is None else min(max(size, 0), LARGEST_SEGMENT_BYTES)
    return OsoSegmentFile(
        *span,
        "" if segment.pruned else named,
        None if segment.pruned else files.get(named),
        most,
        (segment.start_offset, segment.end_offset, segment.record_count),
        segment.sha256,
    )


def _refuse_other(segment: OsoSegmentFile, opened: "OsoSegment", data: bytes) -> None:
    """Raise Damaged for another file than the manifest lists: a segment does not say its topic and partition."""
    first, last, count = segment.listed
    same = not opened.records or (opened.first, opened.last) == (first, last)
    if not same or count not in (None, opened.records):
        records = f"{'' if count is None else f'{count} '}records from offset {first} to {last}"
        what = f"the manifest lists {records}, and the file has {opened.records} from {opened.first} to {opened.last}"
        raise Damaged(what, subject=opened.where, remedy=_REMEDY)
    if segment.sha256 is not None and hashlib.sha256(data).hexdigest() != segment.sha256.lower():
        raise Damaged("it does not have the SHA-256 of the manifest", subject=opened.where, remedy=_REMEDY)


def _newer(store: Store, root: str, segment: OsoSegmentFile) -> OsoSegmentFile:
    """The segment with its file, if the tool wrote it after the listing and before the manifest was read."""
    try:
        return replace(segment, file=store.head(f"{root}{segment.name}")) if segment.name else segment
    except ObjectMissing:
        return segment


def _range(start: int, end: int, where: str) -> tuple[int, int]:
    if not 0 <= start <= end < 2**63:
        raise Damaged(f"offsets {start} to {end} are impossible", subject=where, remedy=_REMEDY)
    return start, end


def _refuse_repeats(logs: Sequence[tuple[str, int]], where: str) -> None:
    if len(set(logs)) != len(logs):
        raise Damaged("the manifest lists a partition twice", subject=where, remedy=_REMEDY)


def _unlisted(files: Mapping[str, ObjectInfo], partitions: Sequence[OsoPartitionReader]) -> list[Finding]:
    listed = {s.file.name for p in partitions for s in p.segments if s.file}
    others = sorted(i.name for i in files.values() if i.name not in listed)
    if not others:
        return []
    what = f"the manifest does not list {len(others)} of the files below topics/; they are not read"
    return [Finding(code="segment-not-in-manifest", severity=Severity.WARNING, where=others[0], what=what)]


def _groups(
    store: Store, objects: Sequence[ObjectInfo], name: str
) -> tuple[dict[str, dict[tuple[str, int], int]], list[Finding]]:
    if not any(i.name == name for i in objects):
        what = "the archive has no offsets of groups"
        return {}, [Finding(code="groups-not-archived", severity=Severity.NOTE, where=name, what=what)]
    found: dict[str, dict[tuple[str, int], int]] = {}
    for group in _read(store, name, _Snapshot).groups:
        offsets = found.setdefault(group.group_id, {})
        for topic, by_partition in group.offsets.items():
            for partition, offset in by_partition.items():
                if not partition.isdecimal() or not 0 <= offset < 2**63:
                    raise Damaged(f"the offset of group {group.group_id!r} is impossible", subject=name, remedy=_REMEDY)
                offsets[topic, int(partition)] = offset
    return found, []
