"""Finds out how the transactions of a scanned range ended, without reading the whole log.

A transactional batch ends with the next marker of its producer after it: what is before it does not matter. Indexes say
where control batches are; only the markers that follow a batch of the range are read. A batch without a marker before
the cut belongs to an open transaction, which was never committed.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.kafka.batch_index import Flags
from logkeep.formats.kafka.batches import BatchStretch, Longs
from logkeep.formats.kafka.records import Malformed, decode
from logkeep.formats.kafka.transactions import ABORT, COMMIT
from logkeep.kafka.scan.stored_segment import ScannedSegment
from logkeep.model.segments import Segment

MARKER = np.dtype([("producer_id", "<i8"), ("offset", "<i8"), ("segment", "<i4"), ("row", "<i8"), ("kind", "<i2")])
_UNREAD, _NO_MARKER = -1, -2
_MARKER_GAP_BYTES = 256 << 10
"""Markers that are at most so far apart are read with one request."""

Rows = npt.NDArray[np.void]
OpenSegment = Callable[[Segment], ScannedSegment]
SegmentsAfter = Callable[[int], Sequence[Segment]]
"""The segments of the log from an offset on, which the range does not carry."""


def next_markers(producers: Longs, offsets: Longs, markers: Rows) -> Longs:
    """For each batch the number of the next marker of its producer after its offset; -1 if there is none. Pure."""
    everyone = np.concatenate((producers, markers["producer_id"]))
    places = np.concatenate((offsets, markers["offset"]))
    numbers = np.concatenate((np.full(len(producers), -1, np.int64), np.arange(len(markers), dtype=np.int64)))
    order = np.lexsort((places, everyone))
    at = np.where(numbers[order] >= 0, np.arange(len(order)), len(order))
    following = np.minimum.accumulate(at[::-1])[::-1]
    known = following < len(order)
    found = np.full(len(order), -1, np.int64)
    candidates = order[following[known]]
    same = everyone[candidates] == everyone[order[known]]
    found[order[known]] = np.where(same, numbers[candidates], -1)
    return found[: len(producers)]


class Endings:
    """The markers of neighbouring segments, loaded as far as they are needed."""

    def __init__(
        self,
        segments: Sequence[Segment],
        settled_to: int,
        open_segment: OpenSegment,
        *,
        keep: bool,
        after: SegmentsAfter = lambda _: (),
    ) -> None:
        """With `keep`, later calls may have lower offsets; otherwise offsets rise, and markers before them are
        dropped."""
        self._segments = [s for s in segments if s.has_object and s.start < settled_to]
        self._numbers = {segment.token: number for number, segment in enumerate(self._segments)}
        self._settled_to, self._open, self._keep = settled_to, open_segment, keep
        self._reach = max((s.end for s in segments), default=settled_to)
        self._after = after
        self._first = self._end = -1
        """The loaded segments."""
        self._markers = np.empty(0, MARKER)

    def hidden(self, segment: Segment, producers: Longs, offsets: Longs) -> Flags:
        """Which transactional batches of a segment are not committed. Raises Damaged or a StoreError."""
        if not len(offsets):
            return np.zeros(0, np.bool_)
        self._begin_at(self._numbers[segment.token])
        if not self._keep:
            self._markers = self._markers[self._markers["offset"] > int(offsets.min())]
        while True:
            following = next_markers(producers, offsets, self._markers)
            if (following < 0).any() and self._another():
                self._load(self._end)
                self._end += 1
                continue
            unread = np.unique(following[following >= 0])
            unread = unread[self._markers["kind"][unread] == _UNREAD]
            if not len(unread):
                break
            self._read(unread)
        aborted = np.append(self._markers["kind"] == ABORT, True)  # the last one: number -1, no marker
        uncommitted: Flags = aborted[following]
        return uncommitted

    def _another(self) -> bool:
        """Whether a segment is left to load; those that the range does not carry are asked for once."""
        if self._end == len(self._segments) and self._reach < self._settled_to:
            more = self._after(self._reach)
            self._segments += [s for s in more if s.has_object and s.start < self._settled_to]
            self._reach = self._settled_to
        return self._end < len(self._segments)

    def _begin_at(self, number: int) -> None:
        if self._first < 0 or number > self._end:
            self._first = self._end = number
        while self._first > number:
            self._first -= 1
            self._load(self._first)

    def _load(self, number: int) -> None:
        segment = self._segments[number]
        index = self._open(segment).index
        base = index.rows["base_offset"]
        own = (base >= segment.start) & (base < min(segment.end, self._settled_to))
        there = index.control & (index.rows["records"] > 0) & own  # the rest of the object may be of another past
        rows = np.flatnonzero(there)
        found = np.empty(len(rows), MARKER)
        found["producer_id"], found["offset"] = index.rows["producer_id"][rows], index.rows["base_offset"][rows]
        found["segment"], found["row"], found["kind"] = number, rows, _UNREAD
        self._markers = np.concatenate((self._markers, found))

    def _read(self, wanted: Longs) -> None:
        """Read these markers. Control records that end no transaction are dropped."""
        for number in np.unique(self._markers["segment"][wanted]).tolist():
            own = wanted[self._markers["segment"][wanted] == number]
            stored = self._open(self._segments[number])
            kinds: dict[int, int] = {}
            for stretch in stored.chosen(self._markers["row"][own], _MARKER_GAP_BYTES):
                kinds |= _kinds(stretch, str(stored.segment.log))
            offsets = self._markers["offset"][own].tolist()
            self._markers["kind"][own] = [kinds.get(offset, _NO_MARKER) for offset in offsets]
        self._markers = self._markers[self._markers["kind"] != _NO_MARKER]


def _kinds(stretch: BatchStretch, log: str) -> dict[int, int]:
    """The kind of each marker, commit or abort, by its offset."""
    found: dict[int, int] = {}
    for part in decode(stretch.buffer, stretch.batches):
        if isinstance(part, Malformed):
            raise Damaged(f"a transaction marker cannot be read: {part}", subject=log)
        bases = part.batches.base_offsets[part.batch].tolist()
        for row, base in enumerate(bases):
            key = part.key(row)
            kind = int.from_bytes(key[2:4], "big", signed=True) if key is not None and len(key) >= 4 else _NO_MARKER
            found[base] = kind if kind in (ABORT, COMMIT) else _NO_MARKER
    return found
