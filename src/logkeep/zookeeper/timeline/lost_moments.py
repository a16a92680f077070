"""Which moments nothing leads to any more where snapshots cannot be used: their transactions may all be there. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from logkeep.zookeeper.model.archived import ArchivedSnapshot
from logkeep.zookeeper.model.spans import joined, outside
from logkeep.zookeeper.timeline.holdings import Holdings
from logkeep.zookeeper.timeline.reachable import reaches_of
from logkeep.zookeeper.timeline.timeline import line_of


def moments_lost(holdings: Holdings, snapshots: Sequence[ArchivedSnapshot]) -> tuple[tuple[int, int], ...]:
    """First and last zxid of every range that could be restored to with these snapshots, and cannot be without."""
    if not snapshots:
        return ()
    whole = replace(holdings, snapshots=(*holdings.snapshots, *snapshots))
    found: list[tuple[int, int]] = []
    for history in whole.histories:
        left = _reached(holdings, history) if history in holdings.histories else []
        found += outside(_reached(whole, history), left)
    return joined(found)


def shared_out(
    spans: Sequence[tuple[int, int]], snapshots: Sequence[ArchivedSnapshot]
) -> Iterator[tuple[ArchivedSnapshot, tuple[tuple[int, int], ...]]]:
    """Each moment told once: with the last of these snapshots that comes before it."""
    ordered = sorted(snapshots, key=lambda snapshot: snapshot.zxid)
    ends = [*(following.zxid - 1 for following in ordered[1:]), max((last for _, last in spans), default=0)]
    for snapshot, end in zip(ordered, ends, strict=False):
        clipped = ((max(first, snapshot.zxid), min(last, end)) for first, last in spans)
        yield snapshot, tuple(span for span in clipped if span[0] <= span[1])


def _reached(holdings: Holdings, history: str) -> list[tuple[int, int]]:
    line = line_of(holdings, history)
    return [(reach.first, reach.last) for reach in reaches_of(holdings, line)]
