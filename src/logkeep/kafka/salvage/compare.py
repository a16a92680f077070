"""Compares two copies of a log: both are read side by side, in windows.

Whole batch headers are compared, which hold the leader epoch, the offsets and the CRC-32C of the records; the scan has
checked the CRC of every batch. Each broker compacts its copy independently: in a compacted topic, batches of one copy
may be missing in the other, or hold fewer records. Then only the leader epochs of common batches must be equal.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from logkeep.formats.kafka.batches import Headers, Longs
from logkeep.kafka.disks.scan_results import ReplicaScan
from logkeep.kafka.disks.segment_windows import windows


@dataclass(frozen=True)
class _Columns:
    bases: Longs
    headers: Headers

    def split(self, offset: int) -> tuple["_Columns", "_Columns"]:
        """Batches that start at or before an offset, and the others."""
        at = int(np.searchsorted(self.bases, offset, side="right"))
        return _Columns(self.bases[:at], self.headers[:at]), _Columns(self.bases[at:], self.headers[at:])


def first_difference(one: ReplicaScan, other: ReplicaScan, *, compacted: bool) -> int | None:
    """The first offset at which two copies differ and both are undamaged; None if they do not differ."""
    start, end = max(one.start, other.start), min(one.end, other.end)
    left, right = _batches(one), _batches(other)
    mine, theirs = next(left, None), next(right, None)
    while mine is not None and theirs is not None:
        bound = min(int(mine.bases[-1]), int(theirs.bases[-1]))
        (mine_now, mine_later), (theirs_now, theirs_later) = mine.split(bound), theirs.split(bound)
        found = _differs(mine_now, theirs_now, compacted)
        inside = [o for o in found if start <= o < end and not _lost(one, o) and not _lost(other, o)]
        if inside:
            return min(inside)
        mine = mine_later if len(mine_later.bases) else next(left, None)
        theirs = theirs_later if len(theirs_later.bases) else next(right, None)
    return None


def _batches(scan: ReplicaScan) -> Iterator[_Columns]:
    for stretch in scan.stretches:
        for window in windows(Path(scan.directory) / stretch.file, stretch.from_byte, stretch.to_byte):
            if len(window.batches):
                yield _Columns(window.batches.base_offsets, window.batches.headers)


def _differs(mine: _Columns, theirs: _Columns, compacted: bool) -> list[int]:
    _, here, there = np.intersect1d(mine.bases, theirs.bases, assume_unique=True, return_indices=True)
    pairs = mine.headers[here], theirs.headers[there]
    unequal = pairs[0]["leader_epoch"] != pairs[1]["leader_epoch"] if compacted else pairs[0] != pairs[1]
    found: list[int] = mine.bases[here][unequal].tolist()
    if not compacted:
        found += np.setxor1d(mine.bases, theirs.bases, assume_unique=True).tolist()
    return found


def _lost(scan: ReplicaScan, offset: int) -> bool:
    return any(gap.start <= offset < gap.end for gap in scan.gaps)
