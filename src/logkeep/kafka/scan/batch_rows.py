"""Which batches of an index a scan needs, and which of them are read together. Pure.

An index has the first and the largest time of a batch, not the smallest. A batch is left out because of `until_ms` only
where its smallest time is known: all records have the append time, or there is one record.
"""

from collections.abc import Iterator

import numpy as np

from logkeep.formats.kafka.batch_index import BatchIndex, Flags
from logkeep.formats.kafka.batches import Longs

NEAR_BYTES = 8 << 10
"""Batches that are at most so far apart are read with one request."""
_FIRST_BYTES, _MOST_BYTES = 2 << 20, 8 << 20
"""How much is read together: little at first, for readers of a few records, then twice as much each time, because each
read has a fixed cost in Python."""
_MOST_BACKWARDS = 64
"""Batches that are read together from the end."""


def needed_rows(index: BatchIndex, start: int, end: int, since_ms: int | None, until_ms: int | None) -> Longs:
    """The numbers of batches that may hold records of the offsets and times."""
    rows = index.rows
    wanted: Flags = (rows["last_offset"] >= start) & (rows["base_offset"] < end) & (rows["records"] > 0)
    wanted &= ~index.control
    if since_ms is not None:
        wanted &= rows["max_time_ms"] >= since_ms
    if until_ms is not None:
        one_time = index.append_time | (rows["records"] == 1)
        wanted &= ~(one_time & (rows["max_time_ms"] >= until_ms))
    return np.flatnonzero(wanted)


def read_together(index: BatchIndex, rows: Longs, near_bytes: int = NEAR_BYTES) -> Iterator[Longs]:
    """The same batch numbers, in groups of which each is one read.

    In a packed log a group is what is in one frame: a frame is unpacked as a whole.
    """
    if not len(rows):
        return
    starts = index.rows["position"][rows]
    ends = starts + index.rows["size"][rows]
    if len(index.frames):
        frame_ends = np.cumsum(index.frames["plain_bytes"].astype(np.int64))
        frame = np.searchsorted(frame_ends, starts, side="right")
        yield from np.split(rows, np.flatnonzero(np.diff(frame)) + 1)
        return
    far = np.flatnonzero(starts[1:] - ends[:-1] > near_bytes) + 1
    together = _FIRST_BYTES
    for near in np.split(np.arange(len(rows)), far):
        first = 0
        while first < len(near):
            limit = int(starts[near[first]]) + together
            last = max(int(np.searchsorted(ends[near], limit, side="right")), first + 1)
            yield rows[near[first:last]]
            first, together = last, min(2 * together, _MOST_BYTES)


def from_the_end(index: BatchIndex, rows: Longs) -> Iterator[Longs]:
    """The same batch numbers in growing groups, the last ones first: a reader of the last records needs few of them."""
    if len(index.frames):
        yield from reversed(list(read_together(index, rows)))
        return
    end, size = len(rows), 1
    while end > 0:
        yield rows[max(end - size, 0) : end]
        end, size = end - size, min(2 * size, _MOST_BACKWARDS)
