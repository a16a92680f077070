"""Checks a dataset: every record is read, and every index is compared with the records.

What an index lists and the records do not have is damage. What can be read but is not indexed, or is between records,
is a warning: nothing is lost, and `reindex` repairs it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.datasets.binary_spans import numbers
from logkeep.formats.datasets.kafka_backup_v1 import reader as v1
from logkeep.formats.datasets.kafka_backup_v1.files import segment_name
from logkeep.kafka.dataset_upkeep.dataset import ExistingDataset, open_existing
from logkeep.kafka.dataset_upkeep.segments import first_offset
from logkeep.kafka.dataset_upkeep.v1_segments import (
    WRONG_FILE,
    OpenedPartition,
    open_partition,
    readable_index,
)
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.importing.files import FilesPartitionReader
from logkeep.kafka.importing.findings import doubt_text
from logkeep.kafka.importing.kafka_backup_v1 import EXPIRED, TORN_INDEX, UNLISTED, V1Files
from logkeep.kafka.importing.reader import (
    GONE,
    GONE_AT_END,
    OVERLAPPING,
    START_MISSING,
    PartitionReader,
    ReadNotes,
)
from logkeep.kafka.importing.v1_segment import INDEX_UNFIT, TORN_BYTES, TORN_TAIL, UNINDEXED
from logkeep.kafka.importing.writer_notes import NotedFiles
from logkeep.kafka.record.dataset_document import DatasetLog, NotedLog
from logkeep.model.findings import Finding, Severity, error_finding
from logkeep.model.plurals import plural
from logkeep.store.base import Store

GAP = "gap"
_WRONG_START = "segment-start-wrong"
_REINDEX = "`logkeep kafka dataset reindex` writes the indexes again from the records"
_COPY_AGAIN = "copy the files back; or write the topic anew, as far as its source has it (--rewrite of an export)"
_CUT_LATER = "the next export or backup into the dataset cuts them off"
_TEXTS = {
    TORN_BYTES: ("byte between records belongs to none", "bytes between records belong to none", ""),
    TORN_TAIL: ("byte after the last record belongs to none", "bytes after the last record belong to none", _CUT_LATER),
    UNINDEXED: ("record is not in the index", "records are not in the index", _REINDEX),
    INDEX_UNFIT: ("entry of the index does not fit", "entries of the index do not fit", _REINDEX),
    EXPIRED: ("leading segment is listed and was deleted", "leading segments are listed and were deleted", _REINDEX),
    UNLISTED: ("segment is not in the partition index", "segments are not in the partition index", _REINDEX),
    _WRONG_START: ("entry has another first offset than its name", "entries have other first offsets than their names",
                   _REINDEX),
    TORN_INDEX: ("byte of a torn entry is at the end", "bytes of a torn entry are at the end", _REINDEX),
}  # fmt: skip
"""What is reported after the number, for one and for several, and what to do."""


@dataclass(frozen=True)
class CheckedPartition:
    """What was found in one partition."""

    topic: str
    partition: int
    records: int
    first: int
    last: int
    """Offsets of the first and the last record; -1 if there is none."""
    size_bytes: int
    findings: tuple[Finding, ...]
    end_unread: bool = False
    """Whether its last file is there, and is damaged: a finding says so."""


def checked_partitions(dataset: ExistingDataset) -> Iterator[CheckedPartition]:
    for (topic, number), files in dataset.v1.items():
        yield check_v1(dataset.target.store, topic, number, files)
    noted = dataset.document.noted if dataset.document is not None else {}
    for each in dataset.reader.partitions if dataset.reader is not None else ():
        note = noted.get(DatasetLog(each.topic, each.partition))
        yield check_partition(each, note.starts if note is not None else ())


def read_back(target: DatasetTarget) -> Iterator[CheckedPartition]:
    """Open a dataset, as a rewrite does with what it wrote. Raises what `open_existing` raises."""
    yield from checked_partitions(open_existing(target))


def check_v1(store: Store, topic: str, number: int, files: V1Files) -> CheckedPartition:
    """One partition of kafka-backup-v1, by all of its files."""
    opened = open_partition(store, topic, number, files)
    findings = [*opened.findings]
    records, first, last, unread = 0, -1, -1, False
    before = list[int]()
    """Starts of listed segments that are not there, since the last one that is."""
    for listed in opened.reader.segments:
        if listed.segment is None:
            before.append(listed.start)
            continue
        if before and records:
            findings.append(_missing(opened, before))
        segment, wrong = readable_index(listed.segment)
        findings += [wrong] if wrong else []
        notes, inside, unread = ReadNotes(), 0, False
        try:
            for part, _ in segment.scan(notes, last):
                first = int(part.offsets[0]) if first < 0 else first
                last, inside = int(part.offsets[-1]), inside + len(part)
        except WRONG_FILE as error:
            findings.append(error_finding(error, segment.records))
            unread = True
        known = any(each.code == OVERLAPPING for each in notes.doubts)
        if records and not inside and not known and not notes.lost:
            findings.append(_empty(segment.records))
        findings += _reported(notes, segment.records)
        before, records = [], records + inside
    if before and records:
        findings.append(_missing(opened, before))
    findings += _listing(opened) + _groups(store, topic, number, files, last)
    return CheckedPartition(topic, number, records, first, last, opened.reader.size_bytes, tuple(findings), unread)


def check_partition(reader: PartitionReader, starts: Sequence[int] = ()) -> CheckedPartition:
    """One partition of any other format. `starts`: offsets of the first records of its files, as they were noted.

    A file that is damaged does not hide what is wrong with the others.
    """
    where, noted, unread = f"{reader.topic}/{reader.partition}", NotedFiles(starts), False
    notes, records, first, last = ReadNotes(), 0, -1, -1
    findings = list[Finding]()
    for part in _files(reader):
        name = part.files[0].name if isinstance(part, FilesPartitionReader) else where
        unread = False
        try:
            for batch in part.records(notes):
                offsets = numbers(batch, "offset")
                known = int(np.searchsorted(offsets, last, "right"))
                notes.add(OVERLAPPING, known, name)
                offsets = offsets[known:]
                if not len(offsets):
                    continue
                findings += [_gap(where, *span, GONE) for span in noted.missing_before(offsets)]
                first = int(offsets[0]) if first < 0 else first
                last, records = int(offsets[-1]), records + len(offsets)
        except WRONG_FILE as error:
            findings.append(error_finding(error, name))
            noted.without(first_offset(name))
            unread = True
    if noted.missing_at_start(first):
        findings.append(_start_missing(where, noted.first, first))
    findings += [_gap(where, gap.start, gap.end, gap.reason) for gap in notes.lost]
    findings += [_doubt(each.code, each.count, each.first) for each in notes.doubts]
    size = reader.size_bytes
    return CheckedPartition(reader.topic, reader.partition, records, first, last, size, tuple(findings), unread)


def _files(reader: PartitionReader) -> Iterator[PartitionReader]:
    """Each file by itself, where a partition is made of whole files."""
    if not isinstance(reader, FilesPartitionReader):
        yield reader
        return
    for info in reader.files:
        yield replace(reader, files=(info,))


def missing_records(noted: Iterable[NotedLog], checked: Iterable[CheckedPartition]) -> list[Finding]:
    """What the last run noted, and the dataset has no longer: whole partitions, and records at the end of one. Pure."""
    found = {(each.topic, each.partition): each for each in checked}
    gone = []
    for note in noted:
        partition = found.get((note.topic, note.partition))
        reached = partition.last if partition is not None else -1
        if reached < note.last and not (partition is not None and partition.end_unread):
            gone.append(_gap(str(note.log), reached + 1, note.last + 1, GONE_AT_END))
    return gone


def exit_code(findings: Iterable[Finding]) -> int:
    """10 for damage, 21 for a gap, 2 for anything else that was found."""
    some = list(findings)
    if any(f.severity is Severity.DAMAGE and f.code != GAP for f in some):
        return 10
    if any(f.code == GAP for f in some):
        return 21
    return 2 if some else 0


def _reported(notes: ReadNotes, name: str) -> list[Finding]:
    """The findings of one segment. A record that the index lists was there once: if it is missing, the file is
    damaged."""
    lost = [
        Finding(
            code="records-lost",
            severity=Severity.DAMAGE,
            where=name,
            what=f"offsets {gap.start} to {gap.end - 1}: {gap.reason}",
            remedy="copy the file again from where it was written",
        )
        for gap in notes.lost
    ]
    return [*lost, *(_doubt(each.code, each.count, each.first) for each in notes.doubts)]


def _doubt(code: str, count: int, where: str) -> Finding:
    if code not in _TEXTS:
        return Finding(code=code, severity=Severity.WARNING, where=where, what=doubt_text(code, count)[1])
    one, several, remedy = _TEXTS[code]
    return Finding(code=code, severity=Severity.WARNING, where=where, what=plural(count, one, several), remedy=remedy)


def _missing(opened: OpenedPartition, starts: Sequence[int]) -> Finding:
    where = f"{opened.reader.topic}/{opened.reader.partition}"
    named = ", ".join(map(str, starts))
    return _gap(where, starts[0], -1, f"segments are listed and not there (from offset {named})")


def _gap(where: str, start: int, end: int, reason: str) -> Finding:
    span = f"offsets {start} to {end - 1}: " if end > start else ""
    return Finding(code=GAP, severity=Severity.DAMAGE, where=where, what=f"{span}{reason}", remedy=_COPY_AGAIN)


def _start_missing(where: str, start: int, first: int) -> Finding:
    return Finding(
        code=START_MISSING,
        severity=Severity.WARNING,
        where=where,
        what=f"offsets {start} to {first - 1}: {GONE}; no `prune` has deleted them",
        remedy="a rule of the bucket may have; `logkeep kafka dataset prune` deletes old files without this finding",
    )


def _empty(name: str) -> Finding:
    return Finding(
        code="segment-empty",
        severity=Severity.WARNING,
        where=name,
        what="it has no whole record and follows another segment: the tool's own restore never ends there",
        remedy=_REINDEX,
    )


def _listing(opened: OpenedPartition) -> list[Finding]:
    """The partition index against the segments that are there."""
    reader, where = opened.reader, opened.files.listing.name if opened.files.listing else ""
    if not opened.index_readable:
        return []
    found = [_doubt(TORN_INDEX, reader.torn_index_bytes, where)] if reader.torn_index_bytes else []
    there = [position for position, each in enumerate(reader.segments) if each.segment]
    expired = sum(each.segment is None for each in reader.segments[: there[0]]) if there else len(reader.segments)
    found += [_doubt(EXPIRED, expired, where)] if expired else []
    unlisted = [each.segment for each in reader.segments if each.segment and each.first < 0]
    found += [_doubt(UNLISTED, len(unlisted), unlisted[0].records)] if unlisted else []
    wrong = [each for each in reader.segments if each.first not in {-1, each.start}]
    if wrong:
        first = f"{where}, the entry of {segment_name(reader.partition, wrong[0].start)}"
        found.append(_doubt(_WRONG_START, len(wrong), first))
    return found


def _groups(store: Store, topic: str, number: int, files: V1Files, last: int) -> list[Finding]:
    where = files.groups.name if files.groups else f"{topic}, partition {number}"
    try:
        if files.groups is None or not files.groups.size:
            what = "it has no file of groups, or an empty one: the tool's own restore fails"
            return [_group_finding("group-file-missing", where, what, "write `{}` into it")]
        positions = v1.group_offsets(store.get(files.groups.name, files.groups.size), where)
    except Damaged as error:
        return [_group_finding("group-file-unreadable", where, error.what, error.remedy)]
    above = sorted(name for name, offset in positions.items() if offset > last + 1)
    if not above:
        return []
    what = f"{plural(len(above), 'group is', 'groups are')} at offsets above the last record, such as {above[0]!r}"
    return [_group_finding("group-above-end", where, what, "")]


def _group_finding(code: str, where: str, what: str, remedy: str) -> Finding:
    return Finding(code=code, severity=Severity.WARNING, where=where, what=what, remedy=remedy)
