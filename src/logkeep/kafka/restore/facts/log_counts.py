"""Counting what a range of a log holds, from the rows of batch indexes. Pure: whole columns at once.

`rows_of` chooses the batches of a range; those that reach over a border are cut to it, which needs their offsets.
Where records are left out for their time, wherever they stand, an index tells which batches have some, not how many:
then records, missing offsets and holes are bounded from above.
`Tally` adds up segment after segment and remembers where the last record stood, for a hole may lie between segments.
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
"""The offsets of the records of a batch, by its row."""


@dataclass(frozen=True)
class Rows:
    """Batches as an index tells them, with their first and last offsets and counts inside of a range."""

    rows: npt.NDArray[np.void]
    bases: Longs
    lasts: Longs
    counts: Longs
    crossing: Flags
    """Which of them have offsets on the other side of a border."""
    late: Flags
    """Which of them have a record that is left out for its time; then `counts` is the most that come back."""
    left_out: int = 0
    """At most so many are left out, of these batches and of those of which nothing comes back."""

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
    """The batches with an offset of `[start, end)` between their first and last, less what is not before a time."""
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
    """The record with the largest time goes, unless it may be on the other side of a border; an append time is that of
    all of them."""
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
    transactional_records: int
    append_time_batches: int
    reencoded_batches: int
    reencoded_bytes: int
    first_time_ms: int
    last_time_ms: int
    left_out: int


def nothing() -> Counts:
    return Counts(
        records=0, batches=0, bytes=0, largest_batch_bytes=0, missing=0, holes=0, control_batches=0,
        transactional_batches=0, transactional_records=0, append_time_batches=0, reencoded_batches=0,
        reencoded_bytes=0, first_time_ms=-1, last_time_ms=-1, left_out=0,
    )  # fmt: skip


@dataclass
class Tally:
    """What was seen of one log so far, up to `at`."""

    at: int
    counts: Counts = field(default_factory=nothing)

    def take(self, rows: Rows) -> None:
        """The next batches, in order."""
        control = rows.flagged(CONTROL)
        self.counts["control_batches"] += int(np.count_nonzero(control & (rows.counts > 0)))
        self.counts["left_out"] += rows.left_out
        seen = rows.chosen(~control & (rows.counts > 0))
        if len(seen.rows):
            self._add_sizes(seen)
            self._add_holes(seen)
            self._add_times(seen)

    def finish(self, end: int) -> None:
        """Nothing comes any more before `end`."""
        self.counts["missing"] += max(end - self.at, 0)
        self.counts["holes"] += int(end > self.at)

    def _add_sizes(self, seen: Rows) -> None:
        counts, sizes = self.counts, seen.rows["size"].astype(np.int64)
        appended, transactional = seen.flagged(APPEND_TIME), seen.flagged(TRANSACTIONAL)
        whole = seen.rows["last_offset"] - seen.rows["base_offset"] + 1 == seen.rows["records"]
        again = appended | seen.crossing | seen.late | ~whole
        counts["records"] += int(seen.counts.sum())
        counts["batches"] += len(sizes)
        counts["bytes"] += int(sizes.sum())
        counts["largest_batch_bytes"] = max(counts["largest_batch_bytes"], int(sizes.max()))
        counts["transactional_batches"] += int(np.count_nonzero(transactional))
        counts["transactional_records"] += int(seen.counts[transactional].sum())
        counts["append_time_batches"] += int(np.count_nonzero(appended))
        counts["reencoded_batches"] += int(np.count_nonzero(again))
        counts["reencoded_bytes"] += int(sizes[again].sum())

    def _add_holes(self, seen: Rows) -> None:
        """Between batches as they are; inside of one, n missing offsets are at most n holes, one around each record.

        Where records are left out all of a batch may be missing, or every second record.
        """
        before = np.concatenate((np.array([self.at], np.int64), seen.lasts[:-1] + 1))
        spans = seen.lasts - seen.bases + 1
        between, inside = seen.bases - before, spans - np.where(seen.late, 0, seen.counts)
        kept = np.where(seen.late, np.minimum(seen.counts, (spans - 1) // 2), seen.counts)
        self.counts["missing"] += int(between.sum() + inside.sum())
        self.counts["holes"] += int(np.count_nonzero(between) + np.minimum(inside, kept + 1).sum())
        self.at = int(seen.lasts[-1]) + 1

    def _add_times(self, seen: Rows) -> None:
        """A delete horizon stands where the first time was, an append time is in the place of the largest."""
        rows, counts = seen.rows, self.counts
        firsts = np.where(seen.flagged(APPEND_TIME), rows["max_time_ms"], rows["base_time_ms"])
        firsts = firsts[~seen.flagged(DELETE_HORIZON) & (firsts >= 0)]
        if len(firsts):
            first = int(firsts.min())
            counts["first_time_ms"] = min(counts["first_time_ms"], first) if counts["first_time_ms"] >= 0 else first
        counts["last_time_ms"] = max(counts["last_time_ms"], int(rows["max_time_ms"].max()))
