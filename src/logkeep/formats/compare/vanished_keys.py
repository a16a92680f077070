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

from logkeep.formats.compare.key_group_kernels import KEY_COLUMNS, LIVE, TOMBSTONE, TRANSACTIONAL, group_records
from logkeep.formats.kafka.batches import Longs

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
    offsets, kinds = np.ascontiguousarray(rows["offset"]), np.ascontiguousarray(rows["kind"])
    keys, key_of = _grouped(rows, offsets, kinds)
    latest, latest_kinds, latest_live = keys.T
    deleted, some_live = (latest_kinds & TOMBSTONE) != 0, latest_live >= 0
    gone, odd = ~some_live & ~deleted, some_live & ((latest_kinds & LIVE) == 0)
    above = odd[key_of] & (offsets > latest_live[key_of])
    plain = above & ((kinds & TRANSACTIONAL) == 0)
    counted = ~deleted & (latest >= live_start)
    return Vanished(
        offsets[gone[key_of] | (above & ~plain)],
        int(np.count_nonzero(counted)),
        int(np.count_nonzero(counted & gone)),
        int(np.count_nonzero(odd)),
        len(np.unique(key_of[plain])),
    )


def _grouped(rows: Rows, offsets: Longs, kinds: npt.NDArray[np.uint8]) -> tuple[Longs, npt.NDArray[np.int32]]:
    """One row per key with the kernel's columns, and for each record the number of its key."""
    hashes, checks = np.ascontiguousarray(rows["hash"]), np.ascontiguousarray(rows["check"])
    names, keys = np.empty((len(rows), 2), np.uint64), np.empty((len(rows), KEY_COLUMNS), np.int64)
    table, key_of = np.full(2 << len(rows).bit_length(), -1, np.int32), np.empty(len(rows), np.int32)
    found = group_records(hashes, checks, offsets, kinds, table, names, keys, key_of)
    return keys[:found], key_of


def all_vanished(some: Iterable[Vanished]) -> Vanished:
    """Of keys that are apart."""
    each = list(some)
    return Vanished(
        np.concatenate([np.empty(0, np.int64), *(one.offsets for one in each)]),
        *(sum(getattr(one, name) for one in each) for name in ("keys", "vanished", "odd", "unclear")),
    )


def warm() -> None:
    """Compile and store the kernel, with the argument types that are used."""
    judge_keys(np.zeros(1, ROW), 0)


def suspicious(keys: int, vanished: int) -> bool:
    """Whether so many keys are gone that a mistake at the source is likely."""
    return vanished >= SUSPICIOUS_KEYS and vanished * _SUSPICIOUS_SHARE > keys
