"""Finds the first record in which two logs differ, and says what is different.

Both are read from the start, whole columns at a time, until they differ. The next record of each side then shows what
happened: a record is missing, a record was added, two records are swapped, or a record was changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from logkeep.formats.compare.log_compare_kernels import SAME, match
from logkeep.formats.kafka.records import RecordColumns


@dataclass(frozen=True)
class RecordCopy:
    """A copy of one record."""

    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]

    def same_as(self, other: "RecordCopy | None") -> bool:
        """Whether the content is equal; offsets may differ."""
        return other is not None and self._content == other._content

    def differs_in(self, other: "RecordCopy") -> str:
        """The names of the fields that differ."""
        pairs = (
            ("time", self.time_ms, other.time_ms),
            ("key", self.key, other.key),
            ("value", self.value, other.value),
            ("headers", self.headers, other.headers),
        )
        differing = [name for name, mine, its in pairs if mine != its]
        return " and ".join(differing) if differing else "offset"

    @property
    def _content(self) -> tuple[object, ...]:
        return self.time_ms, self.key, self.value, self.headers


@dataclass(frozen=True)
class Deviation:
    """The first difference: the offset in the target, and a description."""

    offset: int
    what: str


def first_deviation(
    archive: Iterator[RecordColumns], target: Iterator[RecordColumns], target_end: int, *, keep_offsets: bool
) -> Deviation | None:
    """The first difference, or None. Raises Damaged if records cannot be read."""
    left, right = _Cursor(archive), _Cursor(target)
    while (ours := left.here()) is not None and (theirs := right.here()) is not None:
        rows = min(len(ours), len(theirs))
        same = _same(_rows(ours, 0, rows), _rows(theirs, 0, rows), keep_offsets=keep_offsets)
        left.pass_over(same)
        right.pass_over(same)
        if same < rows:
            break
    return _describe(left, right, target_end, keep_offsets=keep_offsets)


class _Cursor:
    """A position in a stream of records."""

    def __init__(self, source: Iterator[RecordColumns]) -> None:
        self._source = source
        self._now: RecordColumns | None = None

    def here(self) -> RecordColumns | None:
        """The next records, at least one; None at the end."""
        while self._now is None or not len(self._now):
            self._now = next(self._source, None)
            if self._now is None:
                return None
        return self._now

    def pass_over(self, rows: int) -> None:
        self._now = _rows(self._now, rows, len(self._now)) if self._now is not None else None

    def take(self) -> RecordCopy | None:
        """The next record; None at the end."""
        now = self.here()
        if now is None:
            return None
        self.pass_over(1)
        return RecordCopy(int(now.offsets[0]), int(now.times_ms[0]), now.key(0), now.value(0), tuple(now.headers(0)))


def _rows(records: RecordColumns, first: int, last: int) -> RecordColumns:
    some = slice(first, last)
    return RecordColumns(
        records.data, records.batches, records.offsets[some], records.times_ms[some], records.spans[some]
    )


def _same(left: RecordColumns, right: RecordColumns, *, keep_offsets: bool) -> int:
    """How many records from the first one on are equal."""
    rows = len(left)
    ranks, found = np.arange(rows, dtype=np.int64), np.zeros(rows, np.uint8)
    match(left.data, ranks, left.times_ms, left.spans, right.data, ranks, right.times_ms, right.spans, found)
    other = found != SAME
    if keep_offsets:
        other |= left.offsets != right.offsets
    return int(np.argmax(other)) if other.any() else rows


def _describe(left: _Cursor, right: _Cursor, target_end: int, *, keep_offsets: bool) -> Deviation | None:
    ours, theirs = left.take(), right.take()
    if theirs is None:
        if ours is None:
            return None
        return Deviation(
            target_end, f"the archived record of offset {ours.offset} is missing: the target ends before it"
        )
    if ours is None:
        return Deviation(theirs.offset, "there is a record after the last archived one")
    return Deviation(theirs.offset, _what(ours, theirs, left.take(), right.take(), keep_offsets=keep_offsets))


def _what(
    ours: RecordCopy,
    theirs: RecordCopy,
    our_next: RecordCopy | None,
    their_next: RecordCopy | None,
    *,
    keep_offsets: bool,
) -> str:
    archived = f"the archived record of offset {ours.offset}"
    late, early = theirs.same_as(our_next), ours.same_as(their_next)
    if late and early and not ours.same_as(theirs):
        return f"{archived} and the one after it are swapped"
    if keep_offsets and ours.same_as(theirs):
        return f"{archived} is here instead of at its own offset"
    if late and not early:
        return f"{archived} is missing here"
    if early and not late:
        return f"there is a record that is not archived; {archived} follows it"
    return f"it is not {archived}: the {theirs.differs_in(ours)} differs"
