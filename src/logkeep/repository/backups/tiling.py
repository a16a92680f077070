"""Do the segments of a backup, with the gaps it admits to, hold every position of its cut exactly once? Pure."""

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
    """What an earlier backup admitted to lack, as far as a new cut still covers it and nothing holds it now."""
    lacked: dict[LogName, list[KnownGap]] = {}
    for gap in old:
        lacked.setdefault(gap.log, []).append(gap)
    told = [(gap.log, Range(gap.start, gap.end)) for gap in gaps]
    found = []
    for one in cut:
        if one.log not in lacked:
            continue
        pieces = [*claims.get(one.log, ()), *(gap for log, gap in told if log == one.log)]
        for hole in tile(Range(one.start, one.end), pieces).gaps:
            for gap in lacked[one.log]:
                start, end = max(hole.start, gap.start), min(hole.end, gap.end)
                if start < end:
                    found.append(KnownGap(one.log, start, end, gap.reason))
    return found


def untiled(
    cut: Iterable[LogCut], gaps: Iterable[KnownGap], claims: Mapping[LogName, Sequence[Range]]
) -> Iterator[tuple[LogName, str, str]]:
    """Every place where they do not: the log, a code, and what is wrong. Snapshots stand alone and tile nothing."""
    admitted: dict[LogName, list[Range]] = {}
    for gap in gaps:
        admitted.setdefault(gap.log, []).append(Range(gap.start, gap.end))
    for one in cut:
        if one.log.collection is Collection.SNAPSHOTS:
            continue
        pieces = [*claims.get(one.log, ()), *admitted.get(one.log, ())]
        tiling = tile(Range(one.start, one.end), pieces)
        yield from ((one.log, "range-missing", f"no segment holds positions {gap}") for gap in tiling.gaps)
        yield from ((one.log, "range-doubled", f"two segments hold positions {o}") for o in tiling.overlaps)
