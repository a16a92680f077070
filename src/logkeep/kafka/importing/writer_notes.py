"""What the writer of a dataset has noted of a partition, beside the records that are there."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from logkeep.errors import Damaged
from logkeep.formats.datasets.binary_spans import numbers
from logkeep.formats.kafka.record_kernels import Longs
from logkeep.kafka.importing.plan import check_topic_name
from logkeep.kafka.importing.reader import (
    GONE,
    GONE_AT_END,
    START_MISSING,
    DatasetReader,
    DatasetTopic,
    LostPartition,
    PartitionReader,
    ReadNotes,
)
from logkeep.kafka.record.dataset_document import NotedLog


class NotedFiles:
    """The noted files of one partition. The caller passes the offsets of its records in order."""

    def __init__(self, starts: Sequence[int]) -> None:
        self._starts = np.array(starts, np.int64)
        self._last = -1

    @property
    def first(self) -> int:
        """The start of the oldest file; 0 if none was noted."""
        return int(self._starts[0]) if len(self._starts) else 0

    def read_from(self, offset: int, there: Collection[int]) -> None:
        """The first record will be at or after this offset. `there`: the starts of the files that are there."""
        holders = self._starts[self._starts <= offset]
        later = self._starts[self._starts > offset]
        missing = len(holders) > 0 and int(holders[-1]) not in there
        self._starts, self._last = np.concatenate(([offset], later)) if missing else later, offset - 1

    def without(self, start: int) -> None:
        """Do not report this file: it is there, but cannot be read."""
        self._starts = self._starts[self._starts != start]

    def missing_before(self, offsets: Longs) -> Iterator[tuple[int, int]]:
        """Offsets `[start, end)` of missing files before these records, or between them; not at the start."""
        last = max(self._last, int(offsets[0]) - 1) if self._last < 0 else self._last
        wanted = self._starts[(self._starts > last) & (self._starts <= offsets[-1])]
        wanted = wanted[~np.isin(wanted, offsets)]
        after = offsets[np.searchsorted(offsets, wanted)]
        self._last = int(offsets[-1])
        for end in np.unique(after):
            yield int(wanted[after == end][0]), int(end)

    def missing_at_start(self, first: int) -> int:
        """How many offsets are between the oldest file and the first record that is there; 0 if nothing is missing, or
        no record is there."""
        return max(first - self.first, 0) if len(self._starts) else 0


def noted_records(
    reader: PartitionReader, note: NotedLog | None, notes: ReadNotes, start: int = 0
) -> Iterator[pa.RecordBatch]:
    """The records from `start` on. What was noted and is missing becomes known in `notes` as records are read.

    Raises Damaged for offsets that do not rise, and what the reader raises.
    """
    files = NotedFiles(note.starts if note is not None else ())
    if start:
        files.read_from(start, reader.listed(ReadNotes()))
    first, last = -1, start - 1
    for batch in reader.records(notes, start):
        if not batch.num_rows:
            continue
        offsets = numbers(batch, "offset")
        if int(offsets[0]) <= last or (offsets[1:] <= offsets[:-1]).any():
            raise Damaged(
                "offsets of records do not rise",
                subject=f"{reader.topic}, partition {reader.partition}, after offset {last}",
                remedy="the dataset is damaged, or two of them are in one place",
            )
        for begin, end in files.missing_before(offsets):
            notes.lose(begin, end, GONE)
        first, last = int(offsets[0]) if first < 0 else first, int(offsets[-1])
        yield batch
    if note is None:
        return
    for begin, end in note.lost_between(start or first, last if first >= 0 else -1):
        notes.lose(begin, end, "the source removed it before it was exported")
    after = max(start, files.first) if first < 0 else last + 1
    after = max([after, *(gap.end for gap in notes.lost)])  # an index may have said it already
    notes.lose(after, note.last + 1, GONE_AT_END)
    if not start:
        notes.add(START_MISSING, files.missing_at_start(first), f"offset {files.first}")


def note_missing_files(reader: PartitionReader, note: NotedLog | None, notes: ReadNotes) -> None:
    """Note which files are missing, as far as the listing, the indexes and the note show it. No record is read."""
    there = np.array(reader.listed(notes), np.int64)
    if note is None:
        return
    files = NotedFiles(note.starts)
    after = files.first
    if len(there):
        first, last = int(there[0]), int(there[-1])
        later = [*(s for s in note.starts if s > last), *(gap.end for gap in notes.lost if gap.start > last)]
        notes.add(START_MISSING, files.missing_at_start(first), f"offset {files.first}")
        for begin, end in files.missing_before(there):
            notes.lose(begin, end, GONE)
        for begin, end in note.lost_between(first, max(last, note.last)):
            notes.lose(begin, end, "the source removed it before it was exported")
        after = min(later, default=note.last + 1)
    after = max([after, *(gap.end for gap in notes.lost)])  # an index may have said it already
    notes.lose(after, note.last + 1, GONE_AT_END)


def with_lost_partitions(reader: DatasetReader) -> DatasetReader:
    """The reader with partitions of which a run noted records and no file is left. Raises UsageError for hostile
    names."""
    there = {(p.topic, p.partition) for p in reader.partitions}
    lost = [log for log, note in reader.notes.items() if note.last >= 0 and log not in there]
    names = {log.topic for log in lost} - {t.name for t in reader.topics}
    for name in names:
        check_topic_name(name)
    return replace(
        reader,
        topics=(*reader.topics, *(reader.noted_topics.get(name, DatasetTopic(name)) for name in sorted(names))),
        partitions=(*reader.partitions, *(LostPartition(*log) for log in lost)),
    )
