"""A folded log compared with its source: every live record is archived, or a later record of its key is. Pure.

A fold drops records that were overwritten later, and, if the user asked for it, old tombstones of keys without any
earlier record. Everything else that the source still has must be archived, and equal.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from logkeep.formats.compaction.barrier_kernels import TOMBSTONE
from logkeep.formats.compaction.barriers import NO_COLUMN, Rows
from logkeep.formats.kafka.batches import Longs

LIVE: Final = 64
"""The flag of a row of the source; rows without it are archived."""


@dataclass(frozen=True)
class FoldedComparison:
    """What was found, for some keys."""

    equal: int
    missing: Longs
    """Offsets of live records that are lost: neither they nor a later record of their key is archived."""
    differing: Longs


def compare_keys(rows: Rows) -> FoldedComparison:
    """All rows of some keys, of both sides, in any order."""
    if not len(rows):
        return FoldedComparison(0, NO_COLUMN, NO_COLUMN)
    live = (rows["kind"] & LIVE) != 0
    order = np.lexsort((live, rows["offset"], rows["other"], rows["check"], rows["hash"]))
    rows, live = rows[order], live[order]
    offsets = rows["offset"].astype(np.int64)
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = np.logical_or.reduce([rows[lane][1:] != rows[lane][:-1] for lane in ("hash", "check", "other")])
    paired = np.zeros(len(rows), np.bool_)
    paired[1:] = ~begins[1:] & (offsets[1:] == offsets[:-1]) & live[1:] & ~live[:-1]
    same = paired.copy()
    same[1:] &= rows["content"][1:] == rows["content"][:-1]
    starts, group = np.flatnonzero(begins), np.cumsum(begins) - 1
    latest = np.maximum.reduceat(np.where(live, -1, offsets), starts)[group]
    earliest = np.minimum.reduceat(np.where(live, np.iinfo(np.int64).max, offsets), starts)[group]
    deleted = ((rows["kind"] & TOMBSTONE) != 0) & (earliest > offsets)
    missing = live & ~paired & (latest <= offsets) & ~deleted
    return FoldedComparison(int(np.count_nonzero(same)), offsets[missing], offsets[paired & ~same])


def joined(some: Iterable[FoldedComparison]) -> FoldedComparison:
    """Of keys that are apart."""
    each = list(some)
    return FoldedComparison(
        sum(one.equal for one in each),
        np.sort(np.concatenate([NO_COLUMN, *(one.missing for one in each)])),
        np.sort(np.concatenate([NO_COLUMN, *(one.differing for one in each)])),
    )
