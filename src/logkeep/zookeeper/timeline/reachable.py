"""Which zxids can be restored to from each snapshot along the line of a history. Pure.

A snapshot is fuzzy: transactions continue while it is written. Its tree is exact only after the log has been replayed
to the end of that window, so the first zxid that it can restore is that end (`settled`), never the zxid in its name.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from logkeep.formats.zookeeper.names import counter_of, epoch_of
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import ArchivedSnapshot
from logkeep.zookeeper.model.spans import contains
from logkeep.zookeeper.timeline.holdings import (
    FIRST_EVER,
    Border,
    BorderProof,
    HeldSpan,
    Holdings,
    MissingTransactions,
    Timeline,
)


@dataclass(frozen=True)
class ReplayBase:
    """The start of a replay. `snapshot` is None for a server that started empty."""

    snapshot: ArchivedSnapshot | None
    zxid: int
    settled: int
    """The first zxid at which the tree is exact."""
    proof: Proof
    """`PROVEN` if the file says where its window ends; `BOUNDED` if only a bound is known."""
    awaits_digest: bool = False
    """Nothing bounds its window: only a matching digest in the log shows where its tree is exact."""

    @property
    def member(self) -> str | None:
        return None if self.snapshot is None else self.snapshot.member


@dataclass(frozen=True)
class Reach:
    """From `base`, every transaction of the line from `first` to `last` can be restored."""

    base: ReplayBase
    first: int
    last: int
    borders: tuple[Border, ...] = ()
    """Between the base and `last`, in order."""
    stopped_by: Border | MissingTransactions | None = None
    """Why it ends there; None at the end of the archive."""

    def has(self, zxid: int) -> bool:
        return self.first <= zxid <= self.last


def bases_of(holdings: Holdings, line: Timeline, only: Collection[str] | None = None) -> Iterator[ReplayBase]:
    """Snapshots whose window has a known or bounded end, or may get one from digests; and the empty tree if the logs go
    back to the first transaction."""
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
    """A server writes its snapshots one after the other, so its next snapshot bounds the window of this one."""
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
    holdings: Holdings, line: Timeline, *, only: Collection[str] | None = None, believe: bool = False
) -> list[Reach]:
    """`believe`: cross unproven borders."""
    found = (reach_of(line, base, believe=believe) for base in bases_of(holdings, line, only))
    return [reach for reach in found if reach is not None]


def reach_of(line: Timeline, base: ReplayBase, *, believe: bool = False) -> Reach | None:
    """None if the logs do not reach the end of its window."""
    if contains(line.abandoned, base.zxid):
        return None
    last, borders, stopped = _follow_line(line, base.zxid, believe)
    if base.settled <= base.zxid:
        return Reach(base, base.zxid, last, borders, stopped)
    first = next((max(stretch.first, base.settled) for stretch in line.stretches if stretch.last >= base.settled), None)
    return None if first is None or first > last else Reach(base, first, last, borders, stopped)


def stop_of(line: Timeline, base: ReplayBase) -> Border | MissingTransactions | None:
    """What stops a replay from a snapshot, also before the end of its window."""
    return _follow_line(line, base.zxid, believe=False)[2]


def _follow_line(
    line: Timeline, start: int, believe: bool
) -> tuple[int, tuple[Border, ...], Border | MissingTransactions | None]:
    last, borders = start, list[Border]()
    for stretch in line.stretches:
        if stretch.last <= start:
            continue
        joined = last == start and (stretch.first <= start or stretch.first == start + 1)
        if not joined:
            border = stretch.border if last != start else _border_after(line, start, stretch)
            if border is None:
                return last, tuple(borders), MissingTransactions(last, stretch.first)
            if border.proof is BorderProof.UNPROVEN and not believe:
                return last, tuple(borders), border
            borders.append(border)
        last = stretch.last
    return last, tuple(borders), None


def _border_after(line: Timeline, zxid: int, stretch: HeldSpan) -> Border | None:
    """From a snapshot directly to the first transaction of a later epoch. The record before it may be in no log."""
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
