"""Files whose first offsets the writer of a dataset has noted, beside the records that are there. Pure."""

from collections.abc import Iterator, Sequence

import numpy as np

from logkeep.formats.kafka.record_kernels import Longs


class NotedFiles:
    """The noted files of one partition. The caller passes the offsets of its records in order."""

    def __init__(self, starts: Sequence[int]) -> None:
        self._starts = np.array(starts, np.int64)
        self._last = -1

    @property
    def first(self) -> int:
        """The start of the oldest file; 0 if none was noted."""
        return int(self._starts[0]) if len(self._starts) else 0

    def without(self, start: int) -> None:
        """Do not report this file: it is there, but cannot be read."""
        self._starts = self._starts[self._starts != start]

    def missing_before(self, offsets: Longs) -> Iterator[tuple[int, int]]:
        """Offsets `[start, end)` of missing files before these records, or between them; not at the start."""
        last = max(self._last, int(offsets[0]) - 1) if self._last < 0 else self._last
        wanted = self._starts[(self._starts > last) & (self._starts <= offsets[-1])]
        wanted = wanted[~np.isin(wanted, offsets)]
        after = offsets[np.searchsorted(offsets, wanted)]
        self._last = int(offsets[-1])
        for end in np.unique(after):
            yield int(wanted[after == end][0]), int(end)

    def missing_at_start(self, first: int) -> int:
        """How many offsets lie between the oldest file and the first record that is there; 0 if nothing is missing, or
        no record is there."""
        return max(first - self.first, 0) if len(self._starts) else 0
