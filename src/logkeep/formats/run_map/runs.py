"""The exact map from source offsets to target offsets of one restored partition.

Records keep their order, so a map is a list of runs `(source, target, n)`: `n` consecutive records from a source offset
on have consecutive offsets from a target offset on. There is one run per hole, not one per record. Both columns only
rise. `run_map.file_format` has the stored form.

A consumer's position is the offset `c` that it reads next. It is translated to the target offset of the first restored
record at or after `c`; if there is none, to the end of the restored log. Any larger offset would skip records.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka.batches import Longs

Flags = npt.NDArray[np.bool_]
_FIRST_ROWS = 16


@dataclass(frozen=True, eq=False)
class RunMap:
    """One log and the target partition it went to. Built by `RunMapBuilder`, or read back by `decode`."""

    source: Longs
    target: Longs
    n: Longs
    start: int
    end: int
    """Source offsets `[start, end)` were restored; not each of them has a record."""
    target_end: int
    """The end of the target's log after the restore: the position of a consumer that has read everything."""

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunMap) and self._bounds == other._bounds and np.array_equal(self._rows, other._rows)

    def __hash__(self) -> int:
        return hash((*self._bounds, len(self)))

    @property
    def records(self) -> int:
        return int(self.n.sum())

    @property
    def first(self) -> int:
        """The source offset of the first restored record; `end` when there is none."""
        return int(self.source[0]) if len(self) else self.end

    def at(self, offsets: npt.ArrayLike) -> tuple[Longs, Flags]:
        """For each source offset the target offset to read next, and whether the source offset itself was restored."""
        wanted = np.asarray(offsets, np.int64)
        if not len(self):
            return np.full(wanted.shape, self.target_end, np.int64), np.zeros(wanted.shape, np.bool_)
        run = np.searchsorted(self.source, wanted, side="right") - 1
        held = np.maximum(run, 0)
        inside = (run >= 0) & (wanted - self.source[held] < self.n[held])
        after = np.minimum(run + 1, len(self) - 1)
        following = np.where(run + 1 < len(self), self.target[after], self.target_end)
        return np.where(inside, self.target[held] + (wanted - self.source[held]), following), inside

    def translate(self, offset: int) -> tuple[int, bool]:
        targets, exact = self.at([offset])
        return int(targets[0]), bool(exact[0])

    def records_before(self, offset: int) -> int:
        """How many restored records had a smaller offset in the source."""
        return _rank(self.source, self.n, offset)

    def placed_before(self, target: int) -> int:
        """How many restored records have a smaller offset in the target."""
        return _rank(self.target, self.n, target)

    @property
    def _bounds(self) -> tuple[int, int, int]:
        return self.start, self.end, self.target_end

    @property
    def _rows(self) -> npt.NDArray[np.int64]:
        return np.stack([self.source, self.target, self.n])


class RunMapBuilder:
    """Collects runs in the order of sending and joins contiguous ones: memory grows with holes, not with records."""

    def __init__(self, start: int, end: int, target: int) -> None:
        """For source offsets `[start, end)`, written from this target offset on."""
        self._start, self._end = start, end
        self._next = target
        self._rows = np.empty((_FIRST_ROWS, 3), np.int64)
        self._used = 0

    def append(self, source: int, n: int) -> None:
        """`n` records from this source offset on come next."""
        self.extend(np.array([[source, n]], np.int64))

    def extend(self, runs: npt.NDArray[np.int64]) -> None:
        """Rows `(source offset, n)` come next, one after the other: the `runs` of what was sent."""
        after = self._next + np.cumsum(runs[:, 1])
        self._add(np.stack([runs[:, 0], after - runs[:, 1], runs[:, 1]], axis=1))

    def keep(self, runs: npt.NDArray[np.int64]) -> None:
        """Rows `(source offset, n)` keep their own offsets."""
        self._add(np.stack([runs[:, 0], runs[:, 0], runs[:, 1]], axis=1))

    def place(self, rows: npt.NDArray[np.int64]) -> None:
        """Rows `(source offset, target offset, n)` with given target offsets."""
        self._add(np.asarray(rows, np.int64))

    def skip_to(self, target: int) -> None:
        """The next record has this target offset; the offsets before it have no record."""
        if target < self._next:
            raise ValueError("offsets of a run map must rise")
        self._next = target

    def finish(self) -> RunMap:
        """The map of everything so far; the log ends at the offset of the next record."""
        rows = self._rows[: self._used]
        source, target, n = (np.ascontiguousarray(rows[:, column]) for column in range(3))
        return RunMap(source, target, n, self._start, self._end, self._next)

    def _add(self, rows: npt.NDArray[np.int64]) -> None:
        if len(rows) == 1 and self._lengthened(*rows[0].tolist()):
            return
        rows = rows[rows[:, 2] > 0]
        if not len(rows):
            return
        both = np.concatenate([self._rows[max(0, self._used - 1) : self._used], rows])
        if not self._fits(both, int(rows[0, 1])):
            raise ValueError("offsets of a run map must rise")
        self._used = max(0, self._used - 1)
        self._store(_joined(both))
        self._next = int(rows[-1, 1] + rows[-1, 2])

    def _lengthened(self, source: int, target: int, n: int) -> bool:
        """Whether it follows the last run on both sides, which then became longer: so it is nearly always."""
        if not self._used or n <= 0 or target != self._next or source + n > self._end:
            return False
        last = self._rows[self._used - 1]
        before, after, count = last.tolist()
        if before + count != source or after + count != target:
            return False
        last[2] += n
        self._next = target + n
        return True

    def _fits(self, rows: npt.NDArray[np.int64], first_target: int) -> bool:
        inside = self._start <= rows[0, 0] and rows[-1, 0] + rows[-1, 2] <= self._end
        return bool(inside and first_target >= self._next and rises(rows[:, 0], rows[:, 2]) and rises(*rows.T[1:]))

    def _store(self, rows: npt.NDArray[np.int64]) -> None:
        needed = self._used + len(rows)
        if needed > len(self._rows):
            larger = np.empty((max(needed, 2 * len(self._rows)), 3), np.int64)
            larger[: self._used] = self._rows[: self._used]
            self._rows = larger
        self._rows[self._used : needed] = rows
        self._used = needed


def rises(firsts: Longs, n: Longs) -> bool:
    """Whether runs with these first offsets and lengths are in order and do not overlap."""
    return bool((firsts[1:] - firsts[:-1] >= n[:-1]).all())


def _joined(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rows with neighbours joined that are contiguous on both sides."""
    ends = rows[:-1, :2] + rows[:-1, 2:]
    begins = np.flatnonzero(np.append(True, (rows[1:, :2] != ends).any(axis=1)))
    return np.column_stack([rows[begins, :2], np.add.reduceat(rows[:, 2], begins)])


def _rank(firsts: Longs, n: Longs, offset: int) -> int:
    """How many records of these runs are before an offset."""
    whole = int(np.searchsorted(firsts, offset, side="left"))
    if not whole:
        return 0
    return int(n[: whole - 1].sum()) + min(int(n[whole - 1]), offset - int(firsts[whole - 1]))
