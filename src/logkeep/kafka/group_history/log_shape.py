"""Which offsets of an archived log have no record, and where a time is in it. Reads rows and batch indexes.

A log is written with every offset. An offset without a record was cleaned before the archive read it, or lost. Rows of
segments show which of them are without holes; of the others the index beside them is read. Times of batches need not
rise: the state at a time is that after the last batch of this time or an earlier one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka.batch_index import BatchIndex, index_of, join
from logkeep.kafka.group_history.values import HoleSpan, LogShape
from logkeep.kafka.logs.archived import stretches
from logkeep.kafka.logs.header_check import index_beside
from logkeep.kafka.record.unproven_deletions import is_dense
from logkeep.model.ranges import Range
from logkeep.model.segments import Segment
from logkeep.repository.chain.commits import SourceRef

Rows = npt.NDArray[np.void]
RowsOf = Callable[[Segment], Rows]


def shape_of(place: SourceRef, segments: Sequence[Segment], whole: Range, at_ms: int | None) -> LogShape:
    """The shape of a log, from its rows and batch indexes. Raises Damaged if a segment without an index cannot be
    read."""

    def rows(segment: Segment) -> Rows:
        return _index(place, segment).rows

    return shape_by_rows(segments, whole, at_ms, rows)


def shape_by_rows(segments: Sequence[Segment], whole: Range, at_ms: int | None, rows_of: RowsOf) -> LogShape:
    end = whole.end if at_ms is None else _end_at(segments, whole, at_ms, rows_of)
    firsts = [s.base_time_ms for s in segments if s.base_time_ms >= 0]
    lasts = [s.max_time_ms for s in segments if s.max_time_ms >= 0]
    return LogShape(
        end=end,
        first_ms=min(firsts or lasts, default=-1),
        last_ms=max(lasts, default=-1),
        holes=tuple(_holes(segments, whole, end, rows_of)),
    )


def _index(place: SourceRef, segment: Segment) -> BatchIndex:
    found = index_beside(place, segment)
    if found is not None:
        return found
    return join([index_of(each.batches) for each in stretches(place, [segment], segment.start, segment.end)])


def _end_at(segments: Sequence[Segment], whole: Range, at_ms: int, rows_of: RowsOf) -> int:
    """The end of the last batch of this time or earlier. Searches from the end of the log, because a later segment may
    hold an earlier time."""
    for segment in reversed(segments):
        if not segment.has_object:
            continue
        if 0 <= segment.max_time_ms <= at_ms:
            return min(segment.end, whole.end)
        rows = _within(rows_of(segment), whole)
        early = np.flatnonzero((rows["records"] > 0) & (rows["max_time_ms"] <= at_ms))
        if len(early):
            return min(int(rows["last_offset"][early[-1]]) + 1, whole.end)
    return whole.start


def _within(rows: Rows, whole: Range) -> Rows:
    return rows[(rows["last_offset"] >= whole.start) & (rows["base_offset"] < whole.end)]


def _holes(segments: Sequence[Segment], whole: Range, end: int, rows_of: RowsOf) -> Iterator[HoleSpan]:
    """The holes of each segment: at most one before `end` and one after it."""
    before_ms = -1
    for segment in segments:
        part = Range(max(segment.start, whole.start), max(segment.start, whole.start, min(segment.end, whole.end)))
        if not len(part):
            continue
        if not is_dense(segment):
            rows = _within(rows_of(segment), part) if segment.has_object else None
            yield from _joined(_missing(part, rows, before_ms), end)
        before_ms = segment.max_time_ms if segment.max_time_ms >= 0 else before_ms


@dataclass(frozen=True)
class _Missing:
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    since_ms: npt.NDArray[np.int64]


def _missing(part: Range, rows: Rows | None, before_ms: int) -> _Missing:
    """Runs without records: between batches, and whole batches of which some records are gone."""
    if rows is None or not len(rows):
        return _Missing(np.array([part.start]), np.array([part.end]), np.array([before_ms]))
    bases = np.maximum(rows["base_offset"], part.start)
    ends = np.minimum(rows["last_offset"] + 1, part.end)
    times = np.where(rows["records"] > 0, rows["max_time_ms"], -1)
    known = np.concatenate([[before_ms], np.maximum.accumulate(np.maximum(times, before_ms))])
    cleaned = rows["records"] < rows["last_offset"] + 1 - rows["base_offset"]
    between = np.concatenate([[part.start], ends]) < np.concatenate([bases, [part.end]])
    starts = np.concatenate([np.concatenate([[part.start], ends])[between], bases[cleaned]])
    stops = np.concatenate([np.concatenate([bases, [part.end]])[between], ends[cleaned]])
    since = np.concatenate([known[between], known[:-1][cleaned]])
    order = np.argsort(starts, kind="stable")
    return _Missing(starts[order], stops[order], since[order])


def _joined(missing: _Missing, end: int) -> Iterable[HoleSpan]:
    for low, high in ((-1, end), (end, 2**63 - 1)):
        own = (missing.starts < high) & (missing.ends > low)
        if own.any():
            start, stop = max(int(missing.starts[own][0]), low), min(int(missing.ends[own][-1]), high)
            yield HoleSpan(start, stop, int(missing.since_ms[own][0]))
