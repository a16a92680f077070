"""Checks that segments and known gaps cover every position of a backup's cut exactly once. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from logkeep.model.ranges import Range, tile
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import KnownGap, LogCut


def inherited_gaps(
    old: Iterable[KnownGap],
    cut: Iterable[LogCut],
    gaps: Iterable[KnownGap],
    claims: Mapping[LogName, Sequence[Range]],
) -> list[KnownGap]:
    """Known gaps of an earlier backup that a new cut still covers and no segment fills."""
    earlier: dict[LogName, list[KnownGap]] = {}
    for gap in old:
        earlier.setdefault(gap.log, []).append(gap)
    known = [(gap.log, Range(gap.start, gap.end)) for gap in gaps]
    found = []
    for one in cut:
        if one.log not in earlier:
            continue
        pieces = [*claims.get(one.log, ()), *(gap for log, gap in known if log == one.log)]
        for hole in tile(Range(one.start, one.end), pieces).gaps:
            for gap in earlier[one.log]:
                start, end = max(hole.start, gap.start), min(hole.end, gap.end)
                if start < end:
                    found.append(KnownGap(one.log, start, end, gap.reason))
    return found


def untiled(
    cut: Iterable[LogCut], gaps: Iterable[KnownGap], claims: Mapping[LogName, Sequence[Range]]
) -> Iterator[tuple[LogName, str, str]]:
    """Every range of positions that is not covered exactly once: log, code, description. Snapshots are not checked."""
    known: dict[LogName, list[Range]] = {}
    for gap in gaps:
        known.setdefault(gap.log, []).append(Range(gap.start, gap.end))
    for one in cut:
        if one.log.collection is Collection.SNAPSHOTS:
            continue
        pieces = [*claims.get(one.log, ()), *known.get(one.log, ())]
        tiling = tile(Range(one.start, one.end), pieces)
        yield from ((one.log, "range-missing", f"no segment holds positions {gap}") for gap in tiling.gaps)
        yield from ((one.log, "range-doubled", f"two segments hold positions {o}") for o in tiling.overlaps)
