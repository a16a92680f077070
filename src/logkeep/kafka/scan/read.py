"""Reads the visible records of one scan range as Arrow batches. Nothing is read before the first batch is asked for.

Memory is bounded by what is read together: some megabytes of batches, or one batch that is larger, and what they
unpack to, a part at a time.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pyarrow as pa

from logkeep.errors import Damaged
from logkeep.formats.datasets.arrow import arrow_records
from logkeep.formats.kafka.batches import Longs
from logkeep.formats.kafka.record_view import View, readable
from logkeep.formats.kafka.records import RecordColumns
from logkeep.kafka.logs.burials import read_buried
from logkeep.kafka.scan.batch_rows import from_the_end, needed_rows
from logkeep.kafka.scan.counted_store import CountedStore
from logkeep.kafka.scan.endings import Endings
from logkeep.kafka.scan.later_segments import segments_after
from logkeep.kafka.scan.stored_segment import ScannedSegment, WrongIndex
from logkeep.kafka.scan.values import ScanCounters, ScanIsolation, ScanRange
from logkeep.model.freed_memory import keep_freed_memory
from logkeep.model.segments import Segment

_OPEN_SEGMENTS = 2

RecordChoice = Callable[[RecordColumns], RecordColumns]


def read_range(
    wanted: ScanRange,
    counters: ScanCounters | None = None,
    *,
    columns: Collection[str] | None = None,
    only: RecordChoice | None = None,
    newest_first: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Batches of the schema `formats.datasets.arrow.SCHEMA`, or of these columns of it, in offset order, none empty.

    `only` takes decoded records and returns those that are wanted. With `newest_first` each batch has lower offsets
    than the one before; inside a batch they rise. Raises Damaged, ObjectMissing or another StoreError.
    """
    counted = counters or ScanCounters()
    place = replace(wanted.place, store=CountedStore(wanted.place.store, counted))
    reader = _Reader(msgspec.structs.replace(wanted, place=place), counted, columns, only, newest_first)
    try:
        for part in reader.parts():
            counted.records += part.batch.num_rows
            yield part.batch
    except Damaged as error:
        raise Damaged(error.what, subject=error.subject or f"the archive of {wanted.log}") from error


@dataclass(frozen=True)
class _Part:
    first: int
    last: int
    batch: pa.RecordBatch


class _Reader:
    """One pass over the segments of a range."""

    def __init__(
        self,
        wanted: ScanRange,
        counters: ScanCounters,
        columns: Collection[str] | None,
        only: RecordChoice | None,
        newest_first: bool,
    ) -> None:
        self._wanted, self._counters, self._backwards = wanted, counters, newest_first
        self._columns, self._only = columns, only
        self._opened: dict[str, ScannedSegment] = {}
        self._rebuilt: set[str] = set()
        self._endings: Endings | None = None

    def parts(self) -> Iterator[_Part]:
        wanted = self._wanted
        if wanted.start >= wanted.end:
            return
        keep_freed_memory()
        buried = read_buried(wanted.place, wanted.buried)
        view = View(wanted.start, wanted.end, before_ms=wanted.until_ms, buried=buried)
        for segment in reversed(wanted.own_segments) if self._backwards else wanted.own_segments:
            if wanted.since_ms is not None and 0 <= segment.max_time_ms < wanted.since_ms:
                continue
            yield from self._of_segment(segment, view)

    def _of_segment(self, segment: Segment, view: View) -> Iterator[_Part]:
        """Begins again after what was returned if an index proves wrong."""
        while True:
            try:
                for part in self._try_segment(segment, view):
                    yield part
                    view = replace(view, end=part.first) if self._backwards else replace(view, start=part.last + 1)
            except WrongIndex as error:
                self._rebuilt.add(error.segment.token)
                self._opened.clear()
                self._endings = None
                continue
            return

    def _try_segment(self, segment: Segment, view: View) -> Iterator[_Part]:
        stored, wanted = self._open(segment), self._wanted
        start, end = max(view.start, segment.start), min(view.end, segment.end)
        rows = needed_rows(stored.index, start, end, wanted.since_ms, wanted.until_ms)
        rows = self._visible(segment, stored, rows)
        if not self._backwards:
            yield from self._decoded(stored, rows, view)
            return
        for group in from_the_end(stored.index, rows):
            yield from reversed(list(self._decoded(stored, group, view)))

    def _decoded(self, stored: ScannedSegment, rows: Longs, view: View) -> Iterator[_Part]:
        since_ms = self._wanted.since_ms
        for stretch in stored.chosen(rows):
            self._counters.batches += len(stretch.batches)
            for records in readable(stretch.buffer, stretch.batches, view):
                found = records if since_ms is None else records.chosen(records.times_ms >= since_ms)
                if self._only is not None and len(found):
                    found = self._only(found)
                if len(found):
                    first, last = int(found.offsets[0]), int(found.offsets[-1])
                    yield _Part(first, last, arrow_records(found, self._columns))

    def _visible(self, segment: Segment, stored: ScannedSegment, rows: Longs) -> Longs:
        """The rows without batches of transactions that were not committed."""
        wanted = self._wanted
        if wanted.isolation is ScanIsolation.ALL or not wanted.transactional:
            return rows
        inside = stored.index.transactional[rows]
        own = stored.index.rows[rows[inside]]
        if self._endings is None:
            self._endings = Endings(
                wanted.segments,
                wanted.settled_to,
                self._open,
                keep=self._backwards,
                after=lambda offset: segments_after(wanted, offset),
            )
        hidden = np.zeros(len(rows), np.bool_)
        hidden[inside] = self._endings.hidden(segment, own["producer_id"].copy(), own["base_offset"].copy())
        return rows[~hidden]

    def _open(self, segment: Segment) -> ScannedSegment:
        found = self._opened.pop(segment.token, None)
        if found is None:
            found = ScannedSegment(self._wanted.place, segment, rebuild=segment.token in self._rebuilt)
        self._opened[segment.token] = found
        while len(self._opened) > _OPEN_SEGMENTS:
            del self._opened[next(iter(self._opened))]
        return found
