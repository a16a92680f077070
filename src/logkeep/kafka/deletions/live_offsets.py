"""The offsets of live records of one log, read once in rising order."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka.batches import CONTROL, BatchStretch, Longs
from logkeep.formats.kafka.records import Malformed, decode
from logkeep.kafka.logs.live import Lost
from logkeep.model.work import Progress

Flags = npt.NDArray[np.bool_]


class LiveOffsets:
    """`among` may be asked for offsets in rising order only."""

    def __init__(self, source: Iterator[BatchStretch | Lost], progress: Progress) -> None:
        self._source, self._progress = source, progress
        self._held, self._done = np.empty(0, np.int64), False
        self.problem = ""
        """Why not all of them could be read."""

    def among(self, offsets: Longs) -> Flags:
        """Which of these are live. They must not be below any that was asked before."""
        if not len(offsets):
            return np.zeros(0, np.bool_)
        first, last = int(offsets[0]), int(offsets[-1])
        parts = [self._held[np.searchsorted(self._held, first) :]]
        while not self._done and not (len(parts[-1]) and parts[-1][-1] >= last):
            parts.append(self._next())
        self._held = np.concatenate(parts)
        at = np.searchsorted(self._held, offsets)
        found: Flags = np.zeros(len(offsets), np.bool_)
        inside = at < len(self._held)
        found[inside] = self._held[at[inside]] == offsets[inside]
        return found

    def _next(self) -> Longs:
        part = next(self._source, None)
        if part is None or isinstance(part, Lost):
            self._done, self.problem = True, part.reason if isinstance(part, Lost) else self.problem
            return np.empty(0, np.int64)
        self._progress(part.batches.end - part.batches.start)
        found = [np.empty(0, np.int64)]
        data = part.batches.headers["attributes"] & CONTROL == 0
        batches = type(part.batches)(part.batches.headers[data], part.batches.positions[data])
        for records in decode(part.buffer, batches) if len(batches) else ():
            if isinstance(records, Malformed):
                self.problem = f"the source holds a batch that cannot be read: {records}"
                continue
            found.append(records.offsets.copy())
        return np.concatenate(found)
