"""Plans which neighbouring segments are merged into one object. Pure.

A merged object replaces its pieces in every backup. So the pieces must follow each other without a gap in one history,
no other segment may hold any of their positions, and no backup may begin between them (one may end between them: it
reads the merged object up to its cut). A run is merged only if no piece is larger than all others together: then a
copied byte always moves into an object of at least twice the size, so it is copied a few times, not once per round.

The kind of source may forbid more: pieces are merged only if their *merge key* is equal.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from logkeep.model.segments import LogName, Segment

Run = tuple[Segment, ...]
MergeKeyOf = Callable[[Segment], Hashable | None]
"""Pieces with an equal value may be merged; None: never."""


@dataclass(frozen=True)
class MergeRule:
    """`target_bytes` is the maximum size of a merged object, `least` the minimum number of objects to merge.

    Sizes are those of the log, whether it is stored compressed or not.
    """

    target_bytes: int
    least: int = 2


def plan_merges(
    rows: Iterable[Segment], starts: Mapping[LogName, Sequence[int]], rule: MergeRule, merge_key: MergeKeyOf
) -> list[Run]:
    """The runs to merge. `rows` are those of all backups, `starts` the starts of their cuts, by log."""
    ordered = sorted(set(rows), key=lambda s: (s.log, s.start, s.end, s.token))
    return [
        run
        for log, own in groupby(ordered, key=lambda s: s.log)
        for relation, alike in groupby(
            _alone(own), key=lambda s: merge_key(s) if s.plain_bytes < rule.target_bytes else None
        )
        if relation is not None
        for stretch in _stretches(alike, sorted(starts.get(log, ())))
        for pack in _packs(stretch, rule.target_bytes)
        for run in _worth(pack, rule.least)
    ]


def _alone(rows: Iterable[Segment]) -> Iterator[Segment]:
    """The rows that do not overlap others. Rows of a log that was copied again, and shortened rows, overlap."""
    cluster: list[Segment] = []
    reached = 0
    for row in rows:
        if row.start == row.end:
            continue
        if cluster and row.start >= reached:
            yield from cluster if len(cluster) == 1 else ()
            cluster = []
        cluster.append(row)
        reached = max(reached, row.end)
    yield from cluster if len(cluster) == 1 else ()


def _stretches(rows: Iterable[Segment], starts: Sequence[int]) -> Iterator[list[Segment]]:
    """Groups of rows that may be merged."""
    stretch: list[Segment] = []
    for row in rows:
        if stretch and not _may_join(stretch[-1], row, starts):
            yield stretch
            stretch = []
        stretch.append(row)
    yield stretch


def _may_join(left: Segment, right: Segment, starts: Sequence[int]) -> bool:
    """Whether no backup needs the right one and not the left one."""
    begins_between = bisect_left(starts, left.end) != bisect_left(starts, right.end)
    alike = (left.codec, left.proof) == (right.codec, right.proof)
    return left.end == right.start and alike and not begins_between


def _packs(stretch: Iterable[Segment], target_bytes: int) -> Iterator[Run]:
    pack: list[Segment] = []
    size_bytes = 0
    for row in stretch:
        if pack and size_bytes + row.plain_bytes > target_bytes:
            yield tuple(pack)
            pack, size_bytes = [], 0
        pack.append(row)
        size_bytes += row.plain_bytes
    yield tuple(pack)


def _worth(pack: Run, least: int) -> list[Run]:
    """The pack itself, or its parts on both sides of a piece that is larger than all others together."""
    if sum(row.has_object for row in pack) < max(least, 2):
        return []
    largest = max(range(len(pack)), key=lambda i: pack[i].stored_bytes)
    if 2 * pack[largest].stored_bytes > sum(row.stored_bytes for row in pack):
        return [*_worth(pack[:largest], least), *_worth(pack[largest + 1 :], least)]
    return [pack]
