"""Which transactions are held and in which order they happened: one line per history, made of what all members hold.

Pure. A hole on one member is filled from another where every holder has the same record (`disputed` names those where
they do not: nobody's is used). Inside an epoch the numbers themselves say what is missing. The end of an epoch they do
not say: a member that was brought up to date by a snapshot lacks the last transactions of an epoch and looks whole, and
one that was cut off may keep transactions that nobody ever committed. So every border between epochs has a standing:
agreed by a majority of the voters, to be proven by the digests of a replay, or not proven at all.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType

from logkeep.formats.zookeeper.names import counter_of, epoch_of
from logkeep.zookeeper.kept import Ending, KeptLog, KeptSnapshot, Member

FIRST_EVER = frozenset({1, (1 << 32) | 1})
"""The first transaction of a lone server and of an ensemble: nothing can be missing before it."""
_LEAST_VOTERS = 3
"""Of an ensemble of which not all members were backed up. Two voters need the same majority."""
_NO_ENDS: Mapping[int, int] = MappingProxyType({})


class Standing(StrEnum):
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
    standing: Standing
    otherwise: tuple[int, ...] = ()
    """What else the last transaction before `after` may have been, as other members' logs tell it."""


@dataclass(frozen=True)
class Span:
    """All transactions `first` to `last`, in one epoch, in one log."""

    first: int
    last: int
    log: KeptLog

    def holds(self, zxid: int) -> bool:
        return self.first <= zxid <= self.last


@dataclass(frozen=True)
class Stretch:
    """All transactions `first` to `last`, in one epoch, held by one member or another."""

    first: int
    last: int
    border: Border | None = None
    """To the stretch before it; None where something is missing, or nothing was before."""


@dataclass(frozen=True)
class Hole:
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
    stretches: tuple[Stretch, ...]
    spans: tuple[Span, ...]
    abandoned: tuple[tuple[int, int], ...] = ()
    """Held, and not in the history: behind the accepted end of their epoch."""

    @property
    def last(self) -> int | None:
        return self.stretches[-1].last if self.stretches else None

    @property
    def holes(self) -> tuple[Hole, ...]:
        return tuple(Hole(a.last, b.first) for a, b in pairwise(self.stretches) if b.border is None)

    @property
    def borders(self) -> tuple[Border, ...]:
        return tuple(stretch.border for stretch in self.stretches if stretch.border is not None)

    def holds(self, zxid: int) -> bool:
        return any(stretch.first <= zxid <= stretch.last for stretch in self.stretches)

    def holders(self, zxid: int) -> list[Span]:
        return [span for span in self.spans if span.holds(zxid)]


@dataclass(frozen=True)
class Holdings:
    """What a view holds, with what had to be read to judge it. Made by `survey`."""

    snapshots: tuple[KeptSnapshot, ...]
    logs: tuple[KeptLog, ...]
    members: tuple[Member, ...] = ()
    disputed: frozenset[tuple[str, int]] = frozenset()
    """History and zxid of records that are not the same on all members that hold them."""
    voters: int | None = None
    """Of the ensemble, where it is known."""
    ends: Mapping[int, int] = field(default_factory=lambda: _NO_ENDS)
    """Borders that a replay has proven: the first transaction of an epoch to the one before it."""

    @property
    def histories(self) -> list[str]:
        """Oldest first: they are counted."""
        found = {kept.history for kept in (*self.snapshots, *self.logs)}
        return sorted(found, key=lambda name: (int(name) if name.isdecimal() else 0, name))


def quorum_of(members: Collection[Member], voters: int | None) -> int:
    """How many voters must agree. Of an ensemble that was not backed up as a whole the least possible is taken."""
    if voters is None and any(member.role == "standalone" for member in members):
        return 1
    voting = sum(member.role != "observer" for member in members)
    return (voters or max(voting, _LEAST_VOTERS)) // 2 + 1


def spans_of(log: KeptLog, disputed: Collection[int] = ()) -> Iterator[Span]:
    """A log as spans of one epoch each, without the records that are disputed."""
    starts = [log.first, *(after for _, after in log.borders)]
    ends = [*(before for before, _ in log.borders), log.last]
    for first, last in zip(starts, ends, strict=True):
        at = first
        for bad in sorted(zxid for zxid in disputed if first <= zxid <= last):
            if at < bad:
                yield Span(at, bad - 1, log)
            at = bad + 1
        if at <= last:
            yield Span(at, last, log)


def lines_of(holdings: Holdings) -> dict[str, Line]:
    return {history: line_of(holdings, history) for history in holdings.histories}


def line_of(holdings: Holdings, history: str, only: Collection[str] | None = None) -> Line:
    """`only`: look at these members alone."""
    logs = [log for log in holdings.logs if log.history == history and (only is None or log.member in only)]
    disputed = {zxid for of, zxid in holdings.disputed if of == history} if only is None or len(only) > 1 else set()
    spans = sorted((span for log in logs for span in spans_of(log, disputed)), key=lambda s: (s.first, s.last))
    held = _merged(spans)
    judge = _Judge(holdings, logs, held)
    stretches, ends = _back_from_the_end(held, judge)
    return Line(history, stretches, tuple(spans), tuple(_beyond(held, stretches, ends)))


def _merged(spans: Iterable[Span]) -> dict[int, list[tuple[int, int]]]:
    """What is held of each epoch, as runs without a hole."""
    held: dict[int, list[tuple[int, int]]] = {}
    for span in spans:
        runs = held.setdefault(epoch_of(span.first), [])
        if runs and span.first <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], max(runs[-1][1], span.last))
        else:
            runs.append((span.first, span.last))
    return held


class _Judge:
    """What came right before the first transaction of an epoch."""

    def __init__(self, holdings: Holdings, logs: Sequence[KeptLog], held: Mapping[int, list[tuple[int, int]]]) -> None:
        self._held, self._ends = held, holdings.ends
        self._quorum = quorum_of(holdings.members, holdings.voters)
        self._watching = {member.name for member in holdings.members if member.role == "observer"}
        self._seen: dict[int, dict[int, set[str]]] = {}
        self._silent: set[int] = set()
        """First transactions of epochs that are known to carry no digest."""
        for before, after, member in _seen_borders(logs):
            self._seen.setdefault(after, {}).setdefault(before, set()).add(member)
        for log in logs:
            if log.digests is False:
                self._silent.update(after for after in _epoch_starts(log))

    def border(self, after: int) -> Border | None:
        votes = {before: who for before, who in self._seen.get(after, {}).items() if self._is_held(before)}
        below = [epoch for epoch in self._held if epoch < epoch_of(after)]
        if below:
            votes.setdefault(self._held[max(below)][-1][1], set())
        if not votes:
            return None
        before, standing = self._chosen(after, votes)
        otherwise = tuple(sorted(votes.keys() - {before}, key=lambda zxid: (-len(votes[zxid]), -zxid)))
        return Border(before, after, frozenset(votes.get(before, ())), standing, otherwise)

    def _chosen(self, after: int, votes: Mapping[int, set[str]]) -> tuple[int, Standing]:
        if (proven := self._ends.get(after)) is not None and self._is_held(proven):
            return proven, Standing.BY_DIGEST
        for before, who in votes.items():
            if len(who - self._watching) >= self._quorum:
                return before, Standing.MAJORITY
        likely = max(votes, key=lambda before: (len(votes[before]), before))
        return likely, Standing.UNPROVEN if after in self._silent else Standing.BY_DIGEST

    def _is_held(self, zxid: int) -> bool:
        return any(first <= zxid <= last for first, last in self._held.get(epoch_of(zxid), ()))


def _seen_borders(logs: Sequence[KeptLog]) -> Iterator[tuple[int, int, str]]:
    """Inside logs, and from one log of a member to its next, unless the first is known to lack something."""
    for log in logs:
        yield from ((before, after, log.member) for before, after in log.borders)
    ordered = sorted(logs, key=lambda log: (log.member, log.first))
    for log, following in pairwise(ordered):
        whole = log.ending in (Ending.CLEAN, Ending.ACTIVE_TAIL)
        if log.member == following.member and whole and _opens_epoch(log.last, following.first):
            yield log.last, following.first, log.member


def _opens_epoch(before: int, after: int) -> bool:
    return counter_of(after) == 1 and epoch_of(before) < epoch_of(after)


def _epoch_starts(log: KeptLog) -> Iterator[int]:
    yield log.first
    yield from (after for _, after in log.borders)


def _back_from_the_end(
    held: Mapping[int, list[tuple[int, int]]], judge: _Judge
) -> tuple[tuple[Stretch, ...], dict[int, int]]:
    """The newest epoch is in the history; what is before it is told by the borders, one after the other."""
    found: list[Stretch] = []
    ends: dict[int, int] = {}
    epoch: int | None = max(held, default=None)
    while epoch is not None:
        runs = [run for run in held[epoch] if run[0] <= ends.get(epoch, run[0])]
        border = judge.border(runs[0][0]) if counter_of(runs[0][0]) == 1 else None
        for number, (first, last) in reversed(list(enumerate(runs))):
            found.append(Stretch(first, min(last, ends.get(epoch, last)), None if number else border))
        if border is not None:
            ends[epoch_of(border.before)] = border.before
        lower = (other for other in held if other < epoch)
        epoch = max(lower, default=None) if border is None else epoch_of(border.before)
    return tuple(reversed(found)), ends


def _beyond(
    held: Mapping[int, list[tuple[int, int]]], stretches: Sequence[Stretch], ends: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    on_line = {epoch_of(stretch.first) for stretch in stretches}
    for epoch, runs in sorted(held.items()):
        for first, last in runs:
            start = max(first, ends.get(epoch, last) + 1) if epoch in on_line else first
            if start <= last:
                yield start, last
