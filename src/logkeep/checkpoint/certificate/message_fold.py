"""Messages that a partition sent without an acknowledgement so far, and those it received, from columns of its log.

A message is counted by a hash in two sums, those of its sender and of its receiver: equal sums are equal sets, and no
record leaves its task. Lists have only what is pending, and what a receiver remembers above the low-water mark.
"""

import numpy as np
import numpy.typing as npt

from logkeep.checkpoint.certificate.tables import (
    INDEX_BITS,
    CutTables,
    Longs,
    MessageSum,
    SystemKeys,
    Violations,
    message_name,
)

_EMPTY = np.empty(0, np.int64)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def hash_sums(keys: Longs, seed: int) -> MessageSum:
    """Sums of two 64-bit hashes of the keys, which wrap, and their number."""
    return _sum(keys, seed), _sum(keys, seed ^ 0x2545F4914F6CDD1D), len(keys)


def _sum(keys: Longs, seed: int) -> int:
    mixed = keys.astype(np.uint64) + np.uint64(seed)
    for shift, factor in zip((30, 27), _MIX, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    return int((mixed ^ (mixed >> np.uint64(31))).sum(dtype=np.uint64))


def added(one: MessageSum, two: MessageSum, sign: int = 1) -> MessageSum:
    a, b = ((x + sign * y) % (1 << 64) for x, y in zip(one[:2], two[:2], strict=True))
    return a, b, one[2] + sign * two[2]


class MessageFold:
    """One partition, from the state in its snapshot on."""

    def __init__(self, tables: CutTables, partition: int, base: SystemKeys, *, with_ids: bool) -> None:
        self._tables, self._own, self._seed = tables, partition, tables.seed
        self._receivers = np.array([receiver for receiver, _ in base.outbox], np.int64)
        self._pending = np.array([key for _, key in base.outbox], np.int64)
        self.memory = {sender: np.array(keys, np.int64) for sender, keys in base.received.items()}
        self.lows = dict(base.lows)
        self.sent: dict[int, MessageSum] = {}
        self.received: dict[int, MessageSum] = {}
        self.ids: dict[str, list[Longs]] | None = {} if with_ids else None
        for sender, keys in self.memory.items():
            self._count_received(sender, keys)

    @property
    def pending(self) -> list[tuple[int, int]]:
        return [(int(r), int(k)) for r, k in zip(self._receivers, self._pending, strict=True)]

    def send(self, receivers: Longs, keys: Longs, *, after_snapshot: npt.NDArray[np.bool_]) -> None:
        for receiver in np.unique(receivers).tolist():
            own = keys[receivers == receiver]
            own = own[own >> INDEX_BITS >= self._tables.counted_from(self._own, receiver)]
            self.sent[receiver] = added(self.sent.get(receiver, (0, 0, 0)), hash_sums(own, self._seed))
            self._note(f"sent/{receiver}", own)
        self._receivers = np.concatenate([self._receivers, receivers[after_snapshot]])
        self._pending = np.concatenate([self._pending, keys[after_snapshot]])

    def acknowledge(self, acknowledged_by: Longs, keys: Longs) -> None:
        """Only the receiver of a message can acknowledge it; a second acknowledgement changes nothing."""
        if not len(keys) or not len(self._pending):
            return
        by_both = np.stack([keys, acknowledged_by], axis=1)[np.argsort(keys)]
        mine = np.stack([self._pending, self._receivers], axis=1)
        left = ~_rows_in(mine, by_both)
        self._pending, self._receivers = self._pending[left], self._receivers[left]

    def receive(self, senders: Longs, keys: Longs, lows: Longs, at: Longs, violations: Violations) -> None:
        """Messages of events, in order; `at` are the positions of the events."""
        for sender in np.unique(senders).tolist():
            rows = senders == sender
            self._receive(sender, keys[rows], np.maximum(lows[rows], 0), at[rows], violations)

    def _receive(self, sender: int, keys: Longs, lows: Longs, at: Longs, violations: Violations) -> None:
        known, low = self.memory.get(sender, _EMPTY), self.lows.get(sender, 0)
        before = np.maximum.accumulate(np.concatenate([[low], lows]))
        again = np.isin(keys, known) | (keys >> INDEX_BITS < before[:-1])
        first = np.zeros(len(keys), np.bool_)
        first[np.unique(keys, return_index=True)[1]] = True
        twice = np.flatnonzero(again | ~first)
        if len(twice):
            names = [f"the event at {at[i]} processes {message_name(sender, int(keys[i]))} again" for i in twice[:20]]
            violations.add("V11", *(f"partition {self._own}: {name}" for name in names), count=len(twice))
        new = keys[first & ~again]
        self._count_received(sender, new)
        known = np.concatenate([known, new])
        self.lows[sender] = int(before[-1])
        self.memory[sender] = known[known >> INDEX_BITS >= before[-1]]

    def _count_received(self, sender: int, keys: Longs) -> None:
        if sender < len(self._tables.claims):
            own = keys[keys >> INDEX_BITS >= self._tables.counted_from(sender, self._own)]
            self.received[sender] = added(self.received.get(sender, (0, 0, 0)), hash_sums(own, self._seed))
            self._note(f"received/{sender}", own)

    def _note(self, name: str, keys: Longs) -> None:
        if self.ids is not None and len(keys):
            self.ids.setdefault(name, []).append(keys)


def _rows_in(rows: Longs, others: Longs) -> npt.NDArray[np.bool_]:
    """Which rows are among the others, which are sorted by their first column."""
    at = np.searchsorted(others[:, 0], rows[:, 0])
    found = np.zeros(len(rows), np.bool_)
    while (at < len(others)).any():  # one step, unless a message was acknowledged several times
        inside = at < len(others)
        same = np.zeros(len(rows), np.bool_)
        same[inside] = others[at[inside], 0] == rows[inside, 0]
        found[same] |= others[at[same], 1] == rows[same, 1]
        at = np.where(same & ~found, at + 1, len(others))
    return found
