"""Where one segment file ends and the next starts. Pure, over columns of batches.

A file holds a limited number of bytes (at least one batch), and only offsets that fit a broker's index: 31 bits above
the base offset in its name.
"""

from dataclasses import dataclass

import numpy as np

from logkeep.formats.kafka.batches import Batches

LARGEST_FILE = 2**31 - 1
_MOST_ABOVE_NAME = 2**31 - 1


@dataclass(frozen=True)
class OpenSegmentFile:
    """The file that is being written."""

    base: int
    """The base offset in its name."""
    size_bytes: int


def file_name(base: int) -> str:
    return f"{base:020d}.log"


def borders(batches: Batches, current: OpenSegmentFile, limit_bytes: int) -> list[int]:
    """Indexes of the batches that start a new file, when these batches follow the current file's."""
    bases, lasts, ends = batches.base_offsets, batches.last_offsets, np.cumsum(batches.sizes)
    limit, found, first = min(limit_bytes, LARGEST_FILE), list[int](), 0
    base, room = current.base, limit - current.size_bytes
    fresh = current.size_bytes == 0
    while True:
        before = int(ends[first - 1]) if first else 0
        fits = int(np.searchsorted(ends, before + room, side="right"))
        reach = int(np.searchsorted(lasts, base + _MOST_ABOVE_NAME, side="right"))
        stop = min(max(fits, first + 1) if fresh else fits, reach)
        if stop >= len(batches):
            return found
        found.append(stop)
        first, base, room, fresh = stop, int(bases[stop]), limit, True
