"""Transactions of a log that has several kept cuts: which are aborted, and which were undecided at one of the cuts.

A transaction is undecided at a cut if it began below it and its marker is not below it. A backup with that cut does not
see its records, a later one may. A fold leaves such records alone.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, Batches, Longs
from logkeep.formats.kafka.transactions import (
    ABORT,
    COMMIT,
    AbortedRange,
    SettledTransactions,
    Settling,
    UnendedTransaction,
)

NEVER: Final = 2**63 - 1
"""Where the marker of a transaction would be that was never committed."""
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CutTransactions:
    """The outcome of all transactions below the last kept cut."""

    settled: SettledTransactions
    undecided: tuple[AbortedRange, ...] = ()
    """From their first batch to their marker, committed or not, in order of their markers."""
    first_open: int = NEVER
    """The first offset of a transaction that is open at the last cut."""
    any: bool = False
    """Whether the log has transactional or control batches at all."""

    def aborted(self, batches: Batches) -> Flags:
        """Data that no kept backup sees, and no later one will. Open transactions are not aborted."""
        data = (batches.headers["attributes"] & CONTROL) == 0
        lost: Flags = data & ~self._aborted.visible(batches)
        return lost

    def open_at_a_cut(self, batches: Batches) -> Flags:
        """Data of transactions that were undecided at a kept cut."""
        data = (batches.headers["attributes"] & CONTROL) == 0
        found: Flags = data & ~self._undecided.visible(batches)
        return found

    @cached_property
    def _aborted(self) -> SettledTransactions:
        return SettledTransactions(self.settled.aborted, ())

    @cached_property
    def _undecided(self) -> SettledTransactions:
        return SettledTransactions(self.undecided, self.settled.open)

    def decided_at(self, batches: Batches) -> Longs:
        """By batch, the offset of the marker that committed it; `NEVER` for one that is open."""
        found = np.full(len(batches), NEVER, np.int64)
        producers, bases = batches.headers["producer_id"].astype(np.int64), batches.base_offsets
        inside = (batches.headers["attributes"] & (TRANSACTIONAL | CONTROL)) == TRANSACTIONAL
        for each in self.undecided:
            own = inside & (producers == each.producer_id)
            own &= (bases >= each.first_offset) & (bases <= each.last_offset)
            found[own] = each.last_offset
        return found


@dataclass
class CutSettling(Settling):
    """A log being read from its start to its last kept cut. `ends`: the ends of all kept cuts, rising."""

    ends: Sequence[int] = ()
    _undecided: list[AbortedRange] = field(default_factory=list)
    _any: bool = False

    def take(self, buffer: memoryview | bytes | bytearray, batches: Batches) -> None:
        self._any |= bool(((batches.headers["attributes"] & (TRANSACTIONAL | CONTROL)) != 0).any())
        super().take(buffer, batches)

    def _end(self, producer: int, at: int, marker: int | None) -> None:
        first = self._open.get(producer)
        ends = marker in (ABORT, COMMIT) and first is not None
        if ends and first is not None and bisect_right(self.ends, first) < bisect_right(self.ends, at):
            self._undecided.append(AbortedRange(first, at, producer))
        super()._end(producer, at, marker)

    def outcome(self) -> CutTransactions:
        settled = self.settled()
        still: tuple[UnendedTransaction, ...] = settled.open
        first = min((each.first_offset for each in still), default=NEVER)
        return CutTransactions(settled, tuple(self._undecided), first, self._any)
