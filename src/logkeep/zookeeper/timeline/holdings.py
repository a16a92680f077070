"""Values that describe which transactions are archived and in which order they happened: one `Timeline` per history.

`timeline.line_of` builds a line from the logs of all members. A hole on one member is filled from another, unless
members have different records under one number: then none of them is used. Within an epoch the numbers show what is
missing. At the end of an epoch they do not: a member that was synchronised by a snapshot lacks the last transactions of
an epoch and looks complete, and one that was cut off may keep transactions that were never committed. So every border
between epochs has a proof: agreed by a majority of the voters, to be proven by the digests of a replay, or unproven.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType

from logkeep.formats.zookeeper.names import epoch_of
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, Member

FIRST_EVER = frozenset({1, (1 << 32) | 1})
"""The first transaction of a standalone server and of an ensemble: nothing can be missing before it."""
_NO_ENDS: Mapping[int, int] = MappingProxyType({})


class BorderProof(StrEnum):
    """How it is known that nothing is missing between two transactions of different epochs."""

    BEGINNING = "beginning"
    """Nothing was before."""
    MAJORITY = "majority"
    """A majority of the voters has one directly after the other."""
    BY_DIGEST = "by-digest"
    """The digests that a replay compares will show it."""
    UNPROVEN = "unproven"
    """No digests were written, and too few members have it."""


@dataclass(frozen=True)
class Border:
    """The transaction `after`, first of its epoch, came directly after `before`."""

    before: int
    after: int
    seen_by: frozenset[str]
    """Members whose logs have one directly after the other."""
    proof: BorderProof
    otherwise: tuple[int, ...] = ()
    """Other candidates for the last transaction before `after`, from other members' logs."""


@dataclass(frozen=True)
class LogSpan:
    """All transactions `first` to `last`, in one epoch, in one log."""

    first: int
    last: int
    log: ArchivedLog

    def holds(self, zxid: int) -> bool:
        return self.first <= zxid <= self.last


@dataclass(frozen=True)
class HeldSpan:
    """All transactions `first` to `last`, in one epoch, each archived from at least one member."""

    first: int
    last: int
    border: Border | None = None
    """To the span before it; None if something is missing, or nothing was before."""


@dataclass(frozen=True)
class MissingTransactions:
    """Transactions that no log has, between `after` and `before`. In two epochs their number is unknown."""

    after: int
    before: int

    @property
    def lost(self) -> tuple[int, int] | None:
        """First and last missing number, if both are known."""
        if epoch_of(self.after) == epoch_of(self.before):
            return self.after + 1, self.before - 1
        return None


@dataclass(frozen=True)
class Timeline:
    """A history as far as it is archived, oldest transaction first."""

    history: str
    stretches: tuple[HeldSpan, ...]
    spans: tuple[LogSpan, ...]
    abandoned: tuple[tuple[int, int], ...] = ()
    """Archived, but not in the history: after the accepted end of their epoch."""
    seen: tuple[Border, ...] = ()
    """All borders that members' disks show, also after transactions that are no longer in any log."""

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

    def holders(self, zxid: int) -> list[LogSpan]:
        return [span for span in self.spans if span.holds(zxid)]


@dataclass(frozen=True)
class Dispute:
    """Records `first` to `last`, in one epoch, that differ between members."""

    history: str
    first: int
    last: int
    members: frozenset[str]


@dataclass(frozen=True)
class Holdings:
    """What a backup contains, with what had to be read to plan with it. Made by `survey`."""

    snapshots: tuple[ArchivedSnapshot, ...]
    logs: tuple[ArchivedLog, ...]
    members: tuple[Member, ...] = ()
    disputed: tuple[Dispute, ...] = ()
    voters: int | None = None
    """Number of voters of the ensemble, if known."""
    ends: Mapping[int, int] = field(default_factory=lambda: _NO_ENDS)
    """Borders that a replay has proven: from the first transaction of an epoch to the one before it."""

    @property
    def histories(self) -> list[str]:
        """Oldest first: their names are numbers."""
        found = {snapshot.history for snapshot in self.snapshots} | {log.history for log in self.logs}
        return sorted(found, key=lambda name: (int(name) if name.isdecimal() else 0, name))
