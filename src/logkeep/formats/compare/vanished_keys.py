"""Keys that vanished: archived records of one log, compared with what is live at their offsets. Pure; whole columns.

By key, with the greatest offset at which an archived record is still live:

- the latest record is live, or nothing is live and it is a tombstone: the archive is right;
- nothing is live, and the latest record is a value: the key was deleted by a tombstone that was never archived, and
  all its records are buried: without the latest one alone, the value before it would come back;
- an earlier record is live and a later one is not: the later one belonged to a transaction that was aborted and whose
  marker was never archived, or the cleaner was at work between the two reads. A second comparison decides.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka.batches import Longs

LIVE: Final = 1
TOMBSTONE: Final = 2
TRANSACTIONAL: Final = 4
ROW: Final = np.dtype([("hash", "<u8"), ("check", "<u8"), ("offset", "<i8"), ("kind", "u1")])
Rows = npt.NDArray[np.void]
SUSPICIOUS_KEYS: Final = 1_000
_SUSPICIOUS_SHARE = 10


@dataclass(frozen=True)
class Vanished:
    """What a comparison found."""

    offsets: Longs
    """To be buried, in no order."""
    keys: int
    """With a value, of which an offset is at or after the start of the live log."""
    vanished: int
    """Of those, the deleted ones."""
    odd: int
    """Keys of which an earlier record is live and a later one is not."""
    unclear: int
    """Of those, the ones with such a record outside of transactions: only a cleaner at work explains them."""


def judge_keys(rows: Rows, live_start: int) -> Vanished:
    """All rows of some keys, in any order."""
    if not len(rows):
        return Vanished(np.empty(0, np.int64), 0, 0, 0, 0)
    rows = rows[np.lexsort((rows["offset"], rows["check"], rows["hash"]))]
    offsets, kinds = rows["offset"].astype(np.int64), rows["kind"]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (rows["hash"][1:] != rows["hash"][:-1]) | (rows["check"][1:] != rows["check"][:-1])
    starts = np.flatnonzero(begins)
    group = np.cumsum(begins) - 1
    lasts = np.append(starts[1:], len(rows)) - 1
    greatest = np.maximum.reduceat(np.where((kinds & LIVE) != 0, offsets, -1), starts)
    latest_live, deleted = (kinds[lasts] & LIVE) != 0, (kinds[lasts] & TOMBSTONE) != 0
    gone = (greatest < 0) & ~deleted
    odd = (greatest >= 0) & ~latest_live
    above = odd[group] & (offsets > greatest[group])
    plain = above & ((kinds & TRANSACTIONAL) == 0)
    counted = ~deleted & (offsets[lasts] >= live_start)
    return Vanished(
        offsets[gone[group] | (above & ~plain)],
        int(np.count_nonzero(counted)),
        int(np.count_nonzero(counted & gone)),
        int(np.count_nonzero(odd)),
        len(np.unique(group[plain])),
    )


def all_vanished(some: Iterable[Vanished]) -> Vanished:
    """Of keys that are apart."""
    each = list(some)
    return Vanished(
        np.concatenate([np.empty(0, np.int64), *(one.offsets for one in each)]),
        *(sum(getattr(one, name) for one in each) for name in ("keys", "vanished", "odd", "unclear")),
    )


def suspicious(keys: int, vanished: int) -> bool:
    """Whether so many keys are gone that a mistake at the source is likely."""
    return vanished >= SUSPICIOUS_KEYS and vanished * _SUSPICIOUS_SHARE > keys
