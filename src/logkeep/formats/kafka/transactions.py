"""Determines which transactional records are visible, from the log alone.

A transaction of a producer begins with its first transactional batch since its last marker and ends with its next
marker, which says whether it was committed or aborted. Markers are matched by producer id: their epoch may be one
higher. A transaction without a marker is open; at a cut it counts as aborted, since it was never committed.
Records outside of transactions are always visible.

`Settling` reads the batches of one log in order and collects aborted transactions; `SettledTransactions.visible` says
which batches of that log a read-committed consumer sees. Committed transactions are not stored: memory is that of the
broker's own list of aborted ones.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, Batches, Bytes, Longs
from logkeep.formats.kafka.records import Malformed, decode

Flags = npt.NDArray[np.bool_]

ABORT, COMMIT = 0, 1
_MARKER = struct.Struct(">hh")


@dataclass(frozen=True, order=True)
class AbortedRange:
    """Batches of the producer from `first_offset` up to its marker at `last_offset` are aborted."""

    first_offset: int
    last_offset: int
    producer_id: int


@dataclass(frozen=True, order=True)
class UnendedTransaction:
    """A transaction without a marker."""

    first_offset: int
    producer_id: int


@dataclass(frozen=True)
class SettledTransactions:
    """The outcome of the transactions of one log up to its cut."""

    aborted: tuple[AbortedRange, ...]
    """In order of their markers, as a broker lists them."""
    open: tuple[UnendedTransaction, ...]

    def without(self, more: Iterable[AbortedRange]) -> "SettledTransactions":
        """The same log if these committed transactions had been aborted."""
        return replace(self, aborted=tuple(sorted((*self.aborted, *more), key=lambda each: each.last_offset)))

    def visible(self, batches: Batches) -> Flags:
        """Whether the records of each batch of that log are visible. Control batches never are."""
        attributes, bases = batches.headers["attributes"], batches.base_offsets
        seen: Flags = (attributes & CONTROL) == 0
        producers = batches.headers["producer_id"].astype(np.int64)
        in_transaction: Flags = seen & ((attributes & TRANSACTIONAL) != 0)
        for producer in np.unique(producers[in_transaction]).tolist():
            own = np.flatnonzero(in_transaction & (producers == producer))
            seen[own] = ~self._lost(producer, bases[own])
        return seen

    def _lost(self, producer: int, offsets: Longs) -> Flags:
        firsts, lasts = self._ranges.get(producer, (_NONE, _NONE))
        index = np.searchsorted(firsts, offsets, side="right") - 1
        lost: Flags = (index >= 0) & (offsets <= lasts[index]) if len(firsts) else np.zeros(len(offsets), np.bool_)
        return lost

    @cached_property
    def _ranges(self) -> dict[int, tuple[Longs, Longs]]:
        """By producer, the first and last offsets of aborted ranges, rising."""
        found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for each in self.aborted:
            found[each.producer_id].append((each.first_offset, each.last_offset))
        for still in self.open:
            found[still.producer_id].append((still.first_offset, _FOR_EVER))
        return {p: (np.array([a for a, _ in some]), np.array([b for _, b in some])) for p, some in found.items()}


_NONE = np.empty(0, np.int64)
_FOR_EVER = 2**63 - 1


@dataclass
class Settling:
    """A log being read from its start to its cut. Give it every batch once, in order."""

    problems: list[Malformed] = field(default_factory=list)
    """Markers that cannot be read: what they settled stays open."""
    _open: dict[int, int] = field(default_factory=dict)
    _aborted: list[AbortedRange] = field(default_factory=list)

    def take(self, buffer: Bytes, batches: Batches) -> None:
        attributes = batches.headers["attributes"]
        ours = np.flatnonzero((attributes & (TRANSACTIONAL | CONTROL)) != 0)
        control = ((attributes & CONTROL) != 0)[ours].tolist()
        ends = Batches(batches.headers[ours][control], batches.positions[ours][control])
        markers = read_markers(buffer, ends, self.problems)
        producers = batches.headers["producer_id"][ours].tolist()
        for base, producer, is_control in zip(batches.base_offsets[ours].tolist(), producers, control, strict=True):
            if not is_control:
                self._open.setdefault(producer, base)
            else:
                self._end(producer, base, markers.get(base))

    def settled(self) -> SettledTransactions:
        still = sorted(UnendedTransaction(first, producer) for producer, first in self._open.items())
        return SettledTransactions(tuple(self._aborted), tuple(still))

    def _end(self, producer: int, at: int, marker: int | None) -> None:
        """Other control records (a later Kafka may have some) end no transaction."""
        if marker not in (ABORT, COMMIT):
            return
        first = self._open.pop(producer, None)
        if marker == ABORT and first is not None:
            self._aborted.append(AbortedRange(first, at, producer))


def read_markers(buffer: Bytes, batches: Batches, problems: list[Malformed]) -> dict[int, int]:
    """The type of the marker in each control batch, by the batch's offset. Those that cannot be read are `problems`."""
    found: dict[int, int] = {}
    for part in decode(buffer, batches) if len(batches) else ():
        if isinstance(part, Malformed):
            problems.append(part)
            continue
        bases = part.batches.base_offsets[part.batch].tolist()
        for row, base in enumerate(bases):
            key = part.key(row)
            if key is not None and len(key) >= _MARKER.size:
                found[base] = _MARKER.unpack_from(key)[1]
    return found


def committed_batches(buffer: Bytes, batches: Batches, aborted: Iterable[tuple[int, int]]) -> Flags:
    """Whether the records of each batch are visible to a read-committed consumer, by a broker's list of aborted
    transactions: first offset and producer id. All batches are below the last stable offset.

    A batch is aborted from the first offset of a listed transaction of its producer up to the next abort marker of that
    producer. The first batch of a transaction may have been compacted away. Raises Damaged for an unreadable marker.
    """
    attributes = batches.headers["attributes"]
    seen: Flags = (attributes & CONTROL) == 0
    ours = np.flatnonzero((attributes & (TRANSACTIONAL | CONTROL)) != 0)
    waiting, active = sorted(aborted, reverse=True), set[int]()
    if not waiting or not len(ours):
        return seen
    problems = list[Malformed]()
    ends = ours[~seen[ours]]
    markers = read_markers(buffer, Batches(batches.headers[ends], batches.positions[ends]), problems)
    if problems:
        raise Damaged(f"a transaction marker cannot be read: {problems[0]}")
    producers, lasts = batches.headers["producer_id"], batches.last_offsets
    for at in ours.tolist():
        while waiting and waiting[-1][0] <= lasts[at]:
            active.add(waiting.pop()[1])
        producer = int(producers[at])
        if seen[at]:
            seen[at] = producer not in active
        elif markers.get(int(batches.base_offsets[at])) == ABORT:
            active.discard(producer)
    return seen
