"""Points in time that cannot be restored without certain snapshots, even if all transactions are there. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from logkeep.zookeeper.model.archived import ArchivedSnapshot
from logkeep.zookeeper.model.spans import Span, inside, joined, outside
from logkeep.zookeeper.timeline.holdings import Holdings
from logkeep.zookeeper.timeline.reachable import reaches_of
from logkeep.zookeeper.timeline.timeline import line_of


def moments_lost(holdings: Holdings, snapshots: Sequence[ArchivedSnapshot]) -> tuple[Span, ...]:
    """First and last zxid of every range that can be restored with these snapshots and not without them."""
    if not snapshots:
        return ()
    whole = replace(holdings, snapshots=(*holdings.snapshots, *snapshots))
    found: list[Span] = []
    for history in whole.histories:
        left = _reached(holdings, history) if history in holdings.histories else []
        found += outside(_reached(whole, history), left)
    return joined(found)


def by_snapshot(
    spans: Sequence[Span], snapshots: Sequence[ArchivedSnapshot]
) -> Iterator[tuple[ArchivedSnapshot, tuple[Span, ...]]]:
    """Each lost moment once, with the last of these snapshots before it."""
    ordered = sorted(snapshots, key=lambda snapshot: snapshot.zxid)
    ends = [*(following.zxid - 1 for following in ordered[1:]), max((last for _, last in spans), default=0)]
    for snapshot, end in zip(ordered, ends, strict=False):
        yield snapshot, inside(spans, [(snapshot.zxid, end)])


def _reached(holdings: Holdings, history: str) -> list[Span]:
    line = line_of(holdings, history)
    return [(reach.first, reach.last) for reach in reaches_of(holdings, line)]
