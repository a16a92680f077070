"""Reads the records around an offset in the archive and in a live log, to see whether both hold the same ones there.

Used where a topic is not the archived one, but has its name: it was deleted and created again, or another tool copied
it. Records are compared as they are in the log, whether their transactions were committed or not.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import CONTROL, BatchStretch
from logkeep.formats.kafka.record_view import chosen
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from logkeep.kafka.logs.live import LiveLogs, LiveRange, Lost
from logkeep.kafka.restore.facts.survey_task import StoredSegment
from logkeep.model.segments import Segment
from logkeep.repository.chain.commits import SourceRef


@dataclass(frozen=True)
class ReadRecord:
    """A record as a consumer sees it."""

    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


@dataclass(frozen=True)
class RecordsAround:
    below: ReadRecord | None
    """The last record before the offset. In a live log: the record at the offset of the archive's `below`."""
    above: ReadRecord | None
    """The first record at the offset or after it."""


def archived_around(place: SourceRef, segments: Sequence[Segment], at: int, start: int, end: int) -> RecordsAround:
    """The records around `at` in the archived `[start, end)`. Raises Damaged, ObjectMissing or another StoreError."""
    some = [s for s in segments if s.has_object]
    before = [s for s in some if s.start < at]
    below = _first(_last_before(place, reversed(before), start, min(at, end)))
    return RecordsAround(below, _first(_archived_from(place, (s for s in some if s.end > at), max(at, start), end)))


def _last_before(place: SourceRef, segments: Iterable[Segment], start: int, end: int) -> Iterator[ReadRecord]:
    """The last record before `end` of each batch, the last batch first."""
    for segment in segments:
        stored = StoredSegment(place, segment)
        for row in reversed(_with_records(stored, start, end)):
            parts = (part.within(start, end) for part in stored.records(row))
            yield from [_record(part, len(part) - 1) for part in parts if len(part)][-1:]


def _archived_from(place: SourceRef, segments: Iterable[Segment], start: int, end: int) -> Iterator[ReadRecord]:
    for segment in segments:
        stored = StoredSegment(place, segment)
        for row in _with_records(stored, start, end):
            for part in stored.records(row):
                yield from _records(part.within(start, end))


def _with_records(stored: StoredSegment, start: int, end: int) -> list[int]:
    rows = stored.index.rows
    touching = (rows["last_offset"] >= start) & (rows["base_offset"] < end) & (rows["records"] > 0)
    return np.flatnonzero(touching & ~stored.index.control).tolist()


def live_around(logs: LiveLogs, log: LiveRange, leader: int, at: int, below: ReadRecord | None) -> RecordsAround:
    """The records around `at` in a live log; `log` is all of it, `below` the record that the archive has there."""
    known = below is not None and log.start <= below.offset < log.end
    low = below.offset if below is not None and known else -1
    mine = _first(_live(logs, log, leader, low, low + 1)) if known else None
    return RecordsAround(mine, _first(_live(logs, log, leader, max(at, log.start), log.end)))


def _live(logs: LiveLogs, log: LiveRange, leader: int, start: int, end: int) -> Iterator[ReadRecord]:
    if start >= end:
        return
    wanted = LiveRange(log.topic, log.topic_id, log.partition, start, end)
    for part in logs.read(wanted, leader):
        if isinstance(part, Lost):
            return
        for columns in _decoded(part):
            yield from _records(columns.within(start, end))


def _decoded(stretch: BatchStretch) -> Iterator[RecordColumns]:
    data = (stretch.batches.headers["attributes"] & CONTROL) == 0
    for part in decode(stretch.buffer, chosen(stretch.batches, data)):
        if isinstance(part, Malformed):
            raise Damaged(str(part))
        yield part


def _records(part: RecordColumns) -> Iterator[ReadRecord]:
    """One at a time: only the first of them is needed."""
    return (_record(part, row) for row in range(len(part)))


def _record(part: RecordColumns, row: int) -> ReadRecord:
    offset, time_ms = int(part.offsets[row]), int(part.times_ms[row])
    return ReadRecord(offset, time_ms, part.key(row), part.value(row), tuple(part.headers(row)))


def _first(records: Iterator[ReadRecord]) -> ReadRecord | None:
    return next(records, None)
