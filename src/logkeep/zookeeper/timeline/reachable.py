"""How far one gets from each snapshot along the line of a history: the zxids that can be restored to.

Pure. A snapshot is fuzzy: while it was written, transactions went on. Its tree is exact only when the log has been
replayed to the end of that window, so the first zxid that it can stand at is that end (`settled`), never its name.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from logkeep.formats.zookeeper.names import counter_of, epoch_of
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import ArchivedSnapshot
from logkeep.zookeeper.timeline.holdings import (
    FIRST_EVER,
    Border,
    BorderProof,
    HeldSpan,
    Holdings,
    Line,
    MissingTransactions,
)


@dataclass(frozen=True)
class ReplayBase:
    """Where a replay begins. `snapshot` is None for a server that began with nothing."""

    snapshot: ArchivedSnapshot | None
    zxid: int
    settled: int
    """The first zxid at which the tree is exact."""
    proof: Proof
    """`PROVEN` where the file says where its window ends; `BOUNDED` where only a bound is known."""
    awaits_digest: bool = False
    """Nothing bounds its window: only a digest that fits on the way tells where its tree is exact."""

    @property
    def member(self) -> str | None:
        return None if self.snapshot is None else self.snapshot.member


@dataclass(frozen=True)
class Reach:
    """From `base` every transaction from `first` to `last` that the line holds can be restored to."""

    base: ReplayBase
    first: int
    last: int
    borders: tuple[Border, ...] = ()
    """That lie between the base and `last`, in order."""
    stopped_by: Border | MissingTransactions | None = None
    """Why it goes no farther; None at the end of what is held."""

    def has(self, zxid: int) -> bool:
        return self.first <= zxid <= self.last


def bases_of(holdings: Holdings, line: Line, only: Collection[str] | None = None) -> Iterator[ReplayBase]:
    """Snapshots whose window has a known or bounded end, or may get one from digests; and the empty tree where logs go
    back to the beginning."""
    kept = [
        snapshot
        for snapshot in holdings.snapshots
        if snapshot.history == line.history and (only is None or snapshot.member in only)
    ]
    for snapshot in sorted(kept, key=lambda snapshot: (snapshot.zxid, snapshot.member)):
        base = base_of(snapshot, kept)
        if base is not None:
            yield base
        elif any(span.log.digests is not False and span.last > snapshot.zxid for span in line.spans):
            yield ReplayBase(snapshot, snapshot.zxid, snapshot.zxid, Proof.UNPROVEN, awaits_digest=True)
    if line.stretches and line.stretches[0].first in FIRST_EVER:
        yield ReplayBase(None, 0, 0, Proof.PROVEN)


def base_of(snapshot: ArchivedSnapshot, beside: Collection[ArchivedSnapshot]) -> ReplayBase | None:
    """A server writes one snapshot after the other: the next one of its own bounds the window of this one."""
    if snapshot.fuzzy_end is not None:
        return ReplayBase(snapshot, snapshot.zxid, max(snapshot.fuzzy_end, snapshot.zxid), Proof.PROVEN)
    later = [
        other.zxid
        for other in beside
        if (other.member, other.history) == (snapshot.member, snapshot.history) and other.zxid > snapshot.zxid
    ]
    bounds = [*later, *(() if snapshot.bound is None else (snapshot.bound,))]
    return ReplayBase(snapshot, snapshot.zxid, max(min(bounds), snapshot.zxid), Proof.BOUNDED) if bounds else None


def reaches_of(
    holdings: Holdings, line: Line, *, only: Collection[str] | None = None, believe: bool = False
) -> list[Reach]:
    """`believe`: go over borders that nothing proves."""
    found = (reach_of(line, base, believe=believe) for base in bases_of(holdings, line, only))
    return [reach for reach in found if reach is not None]


def reach_of(line: Line, base: ReplayBase, *, believe: bool = False) -> Reach | None:
    """None where the end of its window is not reached."""
    if any(first <= base.zxid <= last for first, last in line.abandoned):
        return None
    last, borders, stopped = _walked(line, base.zxid, believe)
    if base.settled <= base.zxid:
        return Reach(base, base.zxid, last, borders, stopped)
    first = _first_held(line, base.settled)
    return None if first is None or first > last else Reach(base, first, last, borders, stopped)


def stop_of(line: Line, base: ReplayBase) -> Border | MissingTransactions | None:
    """What ends the walk from a snapshot, also where the end of its window is not reached."""
    return _walked(line, base.zxid, believe=False)[2]


def _walked(
    line: Line, start: int, believe: bool
) -> tuple[int, tuple[Border, ...], Border | MissingTransactions | None]:
    last, borders = start, list[Border]()
    for stretch in line.stretches:
        if stretch.last <= start:
            continue
        joined = last == start and (stretch.first <= start or stretch.first == start + 1)
        if not joined:
            border = stretch.border if last != start else _border_behind(line, start, stretch)
            if border is None:
                return last, tuple(borders), MissingTransactions(last, stretch.first)
            if border.standing is BorderProof.UNPROVEN and not believe:
                return last, tuple(borders), border
            borders.append(border)
        last = stretch.last
    return last, tuple(borders), None


def _border_behind(line: Line, zxid: int, stretch: HeldSpan) -> Border | None:
    """From a snapshot right to the first transaction of a later epoch. Its own last record may be held by nobody."""
    if stretch.border is not None and stretch.border.before == zxid:
        return stretch.border
    if counter_of(stretch.first) != 1 or epoch_of(stretch.first) <= epoch_of(zxid):
        return None
    if zxid == 0 and stretch.first in FIRST_EVER:
        return Border(0, stretch.first, frozenset(), BorderProof.BEGINNING)
    if (seen := next((b for b in line.seen if (b.before, b.after) == (zxid, stretch.first)), None)) is not None:
        return seen
    silent = any(span.log.digests is False for span in line.holders(stretch.first))
    return Border(zxid, stretch.first, frozenset(), BorderProof.UNPROVEN if silent else BorderProof.BY_DIGEST)


def _first_held(line: Line, zxid: int) -> int | None:
    return next((max(stretch.first, zxid) for stretch in line.stretches if stretch.last >= zxid), None)
