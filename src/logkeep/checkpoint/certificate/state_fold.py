"""The last write of every key as one row of hashes, and the digest of a state: a sum modulo 2^256 over its keys.

Memory is 72 bytes for each key of a slice. Rows are compacted whenever they have doubled.
"""

from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from logkeep.formats.applications import event_kernels as e

Words = npt.NDArray[np.uint64]
A, B, AT, DELETED, SHA = range(5)
_KEPT = [e.KEY_A, e.KEY_B, e.AT, e.DELETED, *range(e.SHA, e.SHA + 4)]
COLUMNS = len(_KEPT)
_LEAST_ROWS = 1 << 20
_LOW = np.uint64(0xFFFF_FFFF)
MODULUS = 1 << 256


def write_rows(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], events: npt.NDArray[np.int64], seed: int
) -> Words:
    """A row with all columns of `event_kernels` for each write."""
    rows = np.empty((int(events[:, e.WRITES].sum()), e.WRITE_COLUMNS), np.uint64)
    e.read_writes(data, offsets, events, rows, np.uint64(seed), np.uint64(seed ^ 0x5DEECE66D1234567))
    return rows


def rows_of_items(items: list[tuple[str, bytes]], seed: int) -> tuple[Words, npt.NDArray[np.uint8]]:
    """The same for keys of a snapshot, which are encoded like one event, and these bytes."""
    data = np.frombuffer(msgspec.msgpack.encode([0, items, [], None]), np.uint8)
    spans = np.zeros((1, 10), np.int32)
    spans[0, 2:4] = 0, len(data)
    event = np.empty((1, e.EVENT_COLUMNS), np.int64)
    e.count_events(data, spans, np.zeros(1, np.int64), event)
    return write_rows(data, np.zeros(1, np.int64), event, seed), data


class StateFold:
    """Add rows in the order of the log."""

    def __init__(self, part: int = 0, parts: int = 1) -> None:
        self._part, self._parts = np.uint64(part), np.uint64(parts)
        self._held: list[Words] = []
        self._rows, self._most = 0, _LEAST_ROWS

    def add(self, rows: Words) -> None:
        kept = rows[:, _KEPT] if rows.shape[1] != COLUMNS else rows
        if self._parts > 1:
            kept = kept[kept[:, A] % self._parts == self._part]
        self._held.append(kept)
        self._rows += len(kept)
        if self._rows > self._most:
            self._rows = len(self.last())
            self._most = max(_LEAST_ROWS, 2 * self._rows)

    def last(self) -> Words:
        """One row for each key, deleted ones too, in order of the keys' hashes."""
        rows = np.concatenate([np.empty((0, COLUMNS), np.uint64), *self._held])
        order = np.argsort(rows[:, A], kind="stable")
        first, second = rows[order, A], rows[order, B]
        if ((first[1:] == first[:-1]) & (second[1:] != second[:-1])).any():  # two keys with one first half
            order = np.lexsort((rows[:, B], rows[:, A]))
            first, second = rows[order, A], rows[order, B]
        rows = rows[order]
        ends = np.ones(len(rows), np.bool_)
        ends[:-1] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        self._held = [rows[ends]]
        return self._held[0]


def digest(rows: Words) -> int:
    """Of a state with these keys."""
    total = 0
    alive = rows[rows[:, DELETED] == 0]
    for word in range(4):
        column = alive[:, SHA + word]
        total = (total << 64) + (int((column >> np.uint64(32)).sum()) << 32) + int((column & _LOW).sum())
    return total % MODULUS


def overlaid(folds: Iterable[Words]) -> Words:
    """The last row of each key, of several folds in order."""
    joined = StateFold()
    for rows in folds:
        joined.add(rows)
    return joined.last()


def differing(written: Words, snapshot: Words) -> tuple[list[int], int, int]:
    """Compares last writes of a log with a snapshot that includes them all.

    Returns the positions of those that the snapshot does not have, how many agree, and how many keys of the snapshot
    have no write.
    """
    both = np.concatenate([snapshot, written])
    which = np.concatenate([np.zeros(len(snapshot), np.int8), np.ones(len(written), np.int8)])
    order = np.lexsort((which, both[:, B], both[:, A]))
    both, which = both[order], which[order]
    pair = np.zeros(len(both), np.bool_)
    pair[1:] = (both[1:, :2] == both[:-1, :2]).all(axis=1)
    twice = np.flatnonzero(pair)
    wrong = twice[(both[twice, DELETED] != 0) | (both[twice, SHA:] != both[twice - 1, SHA:]).any(axis=1)]
    alone = (which == 1) & ~pair & (both[:, DELETED] == 0)
    missing = both[np.concatenate([wrong, np.flatnonzero(alone)]), AT]
    deleted = int(((which == 1) & ~pair & (both[:, DELETED] != 0)).sum())
    return [int(at) for at in missing], len(twice) - len(wrong) + deleted, len(snapshot) - len(twice)
