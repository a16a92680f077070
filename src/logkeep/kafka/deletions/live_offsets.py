"""The offsets of live records of one log, read once in rising order and kept as runs.

A batch whose header counts as many records as it has offsets holds every one of them: it is not unpacked. So only what
a cleaner has thinned out is decoded.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka.batches import CONTROL, BatchStretch, Longs
from logkeep.formats.kafka.record_view import chosen
from logkeep.formats.kafka.records import Malformed, decode
from logkeep.kafka.logs.live import Lost
from logkeep.model.work import Progress

Flags = npt.NDArray[np.bool_]


class LiveOffsets:
    """Call `among` with offsets in rising order only."""

    def __init__(self, source: Iterator[BatchStretch | Lost], progress: Progress) -> None:
        self._source, self._progress = source, progress
        self._runs, self._done = np.empty((0, 2), np.int64), False
        """Runs `[start, end)`, rising."""
        self.problem = ""
        """Why not all of them could be read."""

    def among(self, offsets: Longs) -> Flags:
        """Which of these offsets are live. They must not be below an offset of an earlier call."""
        if not len(offsets):
            return np.zeros(0, np.bool_)
        self._runs = self._runs[np.searchsorted(self._runs[:, 1], int(offsets[0]), side="right") :]
        self.read_to(int(offsets[-1]))
        begun, ended = (np.searchsorted(offsets, self._runs[:, side]) for side in (0, 1))
        size = len(offsets) + 1
        found: Flags = np.cumsum(np.bincount(begun, minlength=size) - np.bincount(ended, minlength=size))[:-1] > 0
        return found

    def read_to(self, last: int) -> None:
        """Read until a live record follows this offset, or none is left."""
        parts = [self._runs]
        while not self._done and not (len(parts[-1]) and parts[-1][-1, 1] > last):
            parts.append(self._next())
        self._runs = np.concatenate(parts)

    def _next(self) -> Longs:
        part = next(self._source, None)
        if part is None or isinstance(part, Lost):
            self._done, self.problem = True, part.reason if isinstance(part, Lost) else self.problem
            return np.empty((0, 2), np.int64)
        self._progress(part.batches.end - part.batches.start)
        batches = chosen(part.batches, part.batches.headers["attributes"] & CONTROL == 0)
        dense = batches.headers["records"] == batches.headers["last_offset_delta"] + 1
        firsts, lasts = batches.base_offsets[dense], batches.last_offsets[dense]
        found = [np.column_stack((firsts, lasts + 1))]
        thinned = chosen(batches, ~dense)
        for records in decode(part.buffer, thinned) if len(thinned) else ():
            if isinstance(records, Malformed):
                self.problem = f"the source holds a batch that cannot be read: {records}"
                continue
            found.append(_runs(records.offsets))
        runs = np.concatenate(found)
        return runs[np.argsort(runs[:, 0])]


def _runs(offsets: Longs) -> Longs:
    """Rising offsets as runs."""
    breaks = np.flatnonzero(np.diff(offsets) != 1) + 1
    begins = np.concatenate(([0], breaks))
    return np.column_stack((offsets[begins], offsets[np.append(breaks, len(offsets)) - 1] + 1))
