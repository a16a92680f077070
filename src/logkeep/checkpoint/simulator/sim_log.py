"""A partition's log in a list. A crash may drop what is not synced; a new term fences old leaders."""

from collections.abc import Sequence
from random import Random

from logkeep.checkpoint.records import Kind, Record

HOLE = Record(Kind.IGNORED, None, b"", ())
"""In the place of a record that a restored log does not have."""


class Deposed(Exception):
    """Another leader has the partition."""


class Compacted(Exception):
    """The position is no longer in the log."""


class SimLog:
    """`everything` keeps what compaction removes: the judge reads it, no leader does."""

    def __init__(self, choose: Random) -> None:
        self.everything: list[Record] = []
        self.start = 0
        self.term = 0
        self._choose = choose
        self._synced = 0
        self._batch_ends: list[int] = []

    @property
    def end(self) -> int:
        return len(self.everything)

    def append(self, term: int, records: Sequence[Record], now_ms: int) -> list[Record]:
        self._check(term)
        stored = [record.at(len(self.everything) + number, now_ms) for number, record in enumerate(records)]
        self.everything.extend(stored)
        self._batch_ends.append(self.end)
        return stored

    def sync(self, term: int) -> None:
        self._check(term)
        self._keep(self.end)

    def take_over(self) -> int:
        """A new leader: of the batches that were not synced some prefix is there. The new term."""
        ends = [self._synced, *(end for end in self._batch_ends if end > self._synced)]
        self._keep(self._choose.choice(ends))
        self.term += 1
        return self.term

    def read(self, position: int) -> Record | None:
        if position < self.start:
            raise Compacted(f"{position} is before {self.start}")
        return self.everything[position] if position < self.end else None

    def compact(self, before: int) -> None:
        self.start = max(self.start, min(before, self._synced))

    def _keep(self, end: int) -> None:
        del self.everything[end:]
        self._synced, self._batch_ends = end, []

    def _check(self, term: int) -> None:
        if term != self.term:
            raise Deposed(f"term {term} after {self.term}")

    def fill(self, records: Sequence[Record], start: int) -> None:
        """A restored log. What was compacted before its start is not known here."""
        self.everything = [HOLE] * start + list(records)
        self.start, self._synced, self._batch_ends = start, self.end, []
