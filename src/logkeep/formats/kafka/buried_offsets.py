"""Buried offsets: archived records that later backups leave out, as runs of offsets. Pure.

Stored as 8 bytes `LKBURY1` and a newline, then for each run its first offset and the offset after its last one, as two
64-bit little-endian numbers, in rising order, without overlap.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import Longs

MAGIC: Final = b"LKBURY1\n"
_PAIR = np.dtype("<i8")
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BuriedOffsets:
    """Runs `[starts, ends)`, rising and apart."""

    starts: Longs
    ends: Longs

    @classmethod
    def of(cls, offsets: Longs) -> "BuriedOffsets":
        """Offsets in any order, also repeated ones."""
        each = np.unique(offsets.astype(np.int64))
        breaks = np.flatnonzero(np.diff(each) != 1) + 1
        firsts = np.concatenate((np.zeros(min(len(each), 1), np.int64), breaks))
        lasts = np.concatenate((breaks - 1, np.full(min(len(each), 1), len(each) - 1, np.int64)))
        return cls(each[firsts], each[lasts] + 1)

    @property
    def count(self) -> int:
        return int((self.ends - self.starts).sum())

    @property
    def runs(self) -> int:
        return len(self.starts)

    def hides(self, offsets: Longs) -> Flags:
        """Which of these offsets are buried."""
        if not len(self.starts):
            return np.zeros(len(offsets), np.bool_)
        at = np.searchsorted(self.starts, offsets, side="right") - 1
        hidden: Flags = (at >= 0) & (offsets < self.ends[np.maximum(at, 0)])
        return hidden

    def touches(self, firsts: Longs, lasts: Longs) -> Flags:
        """Which of the ranges `[first, last]` have a buried offset."""
        if not len(self.starts):
            return np.zeros(len(firsts), np.bool_)
        at = np.searchsorted(self.ends, firsts, side="right")
        inside = np.minimum(at, len(self.starts) - 1)
        touched: Flags = (at < len(self.starts)) & (self.starts[inside] <= lasts)
        return touched

    def within(self, start: int, end: int) -> "BuriedOffsets":
        """The part of them in `[start, end)`."""
        starts, ends = np.clip(self.starts, start, end), np.clip(self.ends, start, end)
        left = starts < ends
        return BuriedOffsets(starts[left], ends[left])


def joined(some: Iterable[BuriedOffsets]) -> BuriedOffsets:
    """All of them: runs that overlap or adjoin become one."""
    each = list(some)
    starts = np.concatenate([np.empty(0, np.int64), *(one.starts for one in each)])
    ends = np.concatenate([np.empty(0, np.int64), *(one.ends for one in each)])
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    begins = np.concatenate((np.ones(min(len(starts), 1), np.bool_), starts[1:] > reach[:-1]))
    closes = np.concatenate((begins[1:], np.ones(min(len(starts), 1), np.bool_)))
    return BuriedOffsets(starts[begins], reach[closes])


def encode_runs(buried: BuriedOffsets) -> bytes:
    return MAGIC + np.column_stack((buried.starts, buried.ends)).astype(_PAIR).tobytes()


def decode_runs(data: bytes, where: str) -> BuriedOffsets:
    """Raises Damaged, whatever the bytes are."""
    if not data.startswith(MAGIC) or (len(data) - len(MAGIC)) % (2 * _PAIR.itemsize):
        raise Damaged("these are not buried offsets", subject=where)
    pairs = np.frombuffer(data, _PAIR, offset=len(MAGIC)).reshape(-1, 2).astype(np.int64)
    flat = pairs.ravel()
    if len(flat) and (flat[0] < 0 or not (pairs[:, 0] < pairs[:, 1]).all() or not (np.diff(flat) >= 0).all()):
        raise Damaged("its runs of buried offsets are not in order", subject=where)
    return BuriedOffsets(pairs[:, 0].copy(), pairs[:, 1].copy())
