"""Which transactions are held and in which order they happened, as values: one line per history, of all members' logs.

`line.line_of` makes them. A hole on one member is filled from another, unless members hold different records under one
number: then nobody's is used. Inside an epoch the numbers themselves say what is missing. The end of an epoch they do
not say: a member that was brought up to date by a snapshot lacks the last transactions of an epoch and looks whole, and
one that was cut off may keep transactions that nobody ever committed. So every border between epochs has a standing:
agreed by a majority of the voters, to be proven by the digests of a replay, or not proven at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType

from logkeep.formats.zookeeper.names import epoch_of
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, Member

FIRST_EVER = frozenset({1, (1 << 32) | 1})
"""The first transaction of a lone server and of an ensemble: nothing can be missing before it."""
_NO_ENDS: Mapping[int, int] = MappingProxyType({})


class BorderProof(StrEnum):
    """How it is known that nothing lies between two transactions of different epochs."""

    BEGINNING = "beginning"
    """Nothing was before."""
    MAJORITY = "majority"
    """A majority of the voters has one right behind the other."""
    BY_DIGEST = "by-digest"
    """The digests that a replay compares will tell."""
    UNPROVEN = "unproven"
    """No digests were written, and too few members hold it."""


@dataclass(frozen=True)
class Border:
    """The transaction `after`, first of its epoch, came right behind `before`."""

    before: int
    after: int
    seen_by: frozenset[str]
    """Members whose logs have one right behind the other."""
    standing: BorderProof
    otherwise: tuple[int, ...] = ()
    """What else the last transaction before `after` may have been, as other members' logs tell it."""


@dataclass(frozen=True)
class Span:
    """All transactions `first` to `last`, in one epoch, in one log."""

    first: int
    last: int
    log: ArchivedLog

    def holds(self, zxid: int) -> bool:
        return self.first <= zxid <= self.last


@dataclass(frozen=True)
class HeldSpan:
    """All transactions `first` to `last`, in one epoch, held by one member or another."""

    first: int
    last: int
    border: Border | None = None
    """To the stretch before it; None where something is missing, or nothing was before."""


@dataclass(frozen=True)
class MissingTransactions:
    """Transactions that nobody holds: behind `after` and before `before`. Numbers of two epochs are no count."""

    after: int
    before: int

    @property
    def lost(self) -> tuple[int, int] | None:
        """First and last missing number, where both are known."""
        if epoch_of(self.after) == epoch_of(self.before):
            return self.after + 1, self.before - 1
        return None


@dataclass(frozen=True)
class Line:
    """A history as it is held, oldest transaction first."""

    history: str
    stretches: tuple[HeldSpan, ...]
    spans: tuple[Span, ...]
    abandoned: tuple[tuple[int, int], ...] = ()
    """Held, and not in the history: behind the accepted end of their epoch."""
    seen: tuple[Border, ...] = ()
    """All borders that members' disks show, also behind transactions that nobody holds any more."""

    @property
    def last(self) -> int | None:
        return self.stretches[-1].last if self.stretches else None

    @property
    def holes(self) -> tuple[MissingTransactions, ...]:
        return tuple(MissingTransactions(a.last, b.first) for a, b in pairwise(self.stretches) if b.border is None)

    @property
    def borders(self) -> tuple[Border, ...]:
        return tuple(stretch.border for stretch in self.stretches if stretch.border is not None)

    def holds(self, zxid: int) -> bool:
        return any(stretch.first <= zxid <= stretch.last for stretch in self.stretches)

    def holders(self, zxid: int) -> list[Span]:
        return [span for span in self.spans if span.holds(zxid)]


@dataclass(frozen=True)
class Dispute:
    """Records `first` to `last`, in one epoch, that are not the same on all members that hold them."""

    history: str
    first: int
    last: int
    members: frozenset[str]


@dataclass(frozen=True)
class Holdings:
    """What a view holds, with what had to be read to judge it. Made by `survey`."""

    snapshots: tuple[ArchivedSnapshot, ...]
    logs: tuple[ArchivedLog, ...]
    members: tuple[Member, ...] = ()
    disputed: tuple[Dispute, ...] = ()
    voters: int | None = None
    """Of the ensemble, where it is known."""
    ends: Mapping[int, int] = field(default_factory=lambda: _NO_ENDS)
    """Borders that a replay has proven: the first transaction of an epoch to the one before it."""

    @property
    def histories(self) -> list[str]:
        """Oldest first: they are counted."""
        found = {snapshot.history for snapshot in self.snapshots} | {log.history for log in self.logs}
        return sorted(found, key=lambda name: (int(name) if name.isdecimal() else 0, name))
