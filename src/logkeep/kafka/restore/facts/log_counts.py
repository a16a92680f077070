"""Counts of records, bytes and holes in a range of a log, from the rows of batch indexes. Pure: whole columns at once.

`rows_of` selects the batches of a range. Batches that cross a border are counted up to it, which needs their offsets.
Where records are left out because of their time, an index shows which batches have some, not how many: then records,
missing offsets and holes are upper bounds.
`Tally` adds up the segments and remembers the last offset, because a hole may be between segments.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka.batch_index import BatchIndex
from logkeep.formats.kafka.batches import APPEND_TIME, CONTROL, DELETE_HORIZON, TRANSACTIONAL

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
OffsetsOf = Callable[[int], Longs]
"""Returns the offsets of the records of a batch, given its row."""


@dataclass(frozen=True)
class Rows:
    """Index rows of batches, with their first offsets, last offsets and record counts inside a range."""

    rows: npt.NDArray[np.void]
    bases: Longs
    lasts: Longs
    counts: Longs
    crossing: Flags
    """Which batches have offsets outside the range."""
    late: Flags
    """Which batches have a record that is left out because of its time; then `counts` is an upper bound."""
    left_out: int = 0
    """Upper bound of the records left out, including batches that are left out completely."""

    def flagged(self, bit: int) -> Flags:
        flags: Flags = (self.rows["attributes"] & np.int16(bit)) != 0
        return flags

    def chosen(self, which: Flags) -> "Rows":
        return Rows(
            self.rows[which],
            self.bases[which],
            self.lasts[which],
            self.counts[which],
            self.crossing[which],
            self.late[which],
            self.left_out,
        )


def rows_of(index: BatchIndex, start: int, end: int, offsets_of: OffsetsOf, before_ms: int | None = None) -> Rows:
    """The batches that overlap `[start, end)`, without records at or after `before_ms`."""
    low = index.at_offset(start)
    high = max(low, int(np.searchsorted(index.rows["base_offset"], end)))
    rows = index.rows[low:high]
    bases, lasts = rows["base_offset"].astype(np.int64), rows["last_offset"].astype(np.int64)
    counts, crossing = rows["records"].astype(np.int64), (bases < start) | (lasts >= end)
    for at in np.flatnonzero(crossing).tolist():
        offsets = offsets_of(low + at) if counts[at] else np.empty(0, np.int64)
        counts[at] = int(np.count_nonzero((offsets >= start) & (offsets < end)))
    found = Rows(
        rows, np.maximum(bases, start), np.minimum(lasts, end - 1), counts, crossing, np.zeros(len(rows), bool)
    )
    return found if before_ms is None else _without_late(found, before_ms)


def _without_late(rows: Rows, before_ms: int) -> Rows:
    """Leave out late records: at least the one with the largest time, unless it may be outside the range; all records
    of a batch with an append time."""
    late = (rows.rows["max_time_ms"] >= before_ms) & ~rows.flagged(CONTROL) & (rows.counts > 0)
    fewer = np.where(rows.flagged(APPEND_TIME), 0, rows.counts - ~rows.crossing)
    return replace(rows, counts=np.where(late, fewer, rows.counts), late=late, left_out=int(rows.counts[late].sum()))


class Counts(TypedDict):
    records: int
    batches: int
    bytes: int
    largest_batch_bytes: int
    missing: int
    holes: int
    control_batches: int
    transactional_batches: int
    reencoded_bytes: int
    first_time_ms: int
    left_out: int


def no_counts() -> Counts:
    return Counts(
        records=0, batches=0, bytes=0, largest_batch_bytes=0, missing=0, holes=0, control_batches=0,
        transactional_batches=0, reencoded_bytes=0, first_time_ms=-1, left_out=0,
    )  # fmt: skip


@dataclass
class Tally:
    """The counts of one log up to offset `at`."""

    at: int
    counts: Counts = field(default_factory=no_counts)

    def take(self, rows: Rows) -> None:
        """Add the next batches, in order."""
        control = rows.flagged(CONTROL)
        self.counts["control_batches"] += int(np.count_nonzero(control & (rows.counts > 0)))
        self.counts["left_out"] += rows.left_out
        seen = rows.chosen(~control & (rows.counts > 0))
        if len(seen.rows):
            self._add_sizes(seen)
            self._add_holes(seen)
            self._add_times(seen)

    def finish(self, end: int) -> None:
        """Close the count: there are no more records before `end`."""
        self.counts["missing"] += max(end - self.at, 0)
        self.counts["holes"] += int(end > self.at)

    def _add_sizes(self, seen: Rows) -> None:
        counts, sizes = self.counts, seen.rows["size"].astype(np.int64)
        whole = seen.rows["last_offset"] - seen.rows["base_offset"] + 1 == seen.rows["records"]
        again = seen.flagged(APPEND_TIME) | seen.crossing | seen.late | ~whole
        counts["records"] += int(seen.counts.sum())
        counts["batches"] += len(sizes)
        counts["bytes"] += int(sizes.sum())
        counts["largest_batch_bytes"] = max(counts["largest_batch_bytes"], int(sizes.max()))
        counts["transactional_batches"] += int(np.count_nonzero(seen.flagged(TRANSACTIONAL)))
        counts["reencoded_bytes"] += int(sizes[again].sum())

    def _add_holes(self, seen: Rows) -> None:
        """Holes between batches are exact. Inside a batch, n missing offsets and m records make at most min(n, m + 1).

        Where records are left out, a whole batch may be missing, or every second record.
        """
        before = np.concatenate((np.array([self.at], np.int64), seen.lasts[:-1] + 1))
        spans = seen.lasts - seen.bases + 1
        between, inside = seen.bases - before, spans - np.where(seen.late, 0, seen.counts)
        kept = np.where(seen.late, np.minimum(seen.counts, (spans - 1) // 2), seen.counts)
        self.counts["missing"] += int(between.sum() + inside.sum())
        self.counts["holes"] += int(np.count_nonzero(between) + np.minimum(inside, kept + 1).sum())
        self.at = int(seen.lasts[-1]) + 1

    def _add_times(self, seen: Rows) -> None:
        """A delete horizon replaces the first time in a header."""
        rows, counts = seen.rows, self.counts
        firsts = np.where(seen.flagged(APPEND_TIME), rows["max_time_ms"], rows["base_time_ms"])
        firsts = firsts[~seen.flagged(DELETE_HORIZON) & (firsts >= 0)]
        if len(firsts):
            first = int(firsts.min())
            counts["first_time_ms"] = min(counts["first_time_ms"], first) if counts["first_time_ms"] >= 0 else first
