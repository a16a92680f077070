"""Chooses the best copy of a log, and fills its damaged parts from other copies. Pure: scans in, pieces out.

The copy with the highest last leader epoch wins, then the longest: the cluster would have made it leader. Where it is
damaged, another copy may fill in, if both have the same leader epoch right before and right after the damage: two logs
with the same epoch at the same offset are equal up to there. Nothing is appended from other copies: the cluster may
have truncated what they have in addition.

Offsets missing between two complete files may be filled in the same way. If no copy has them, they were removed by
compaction; in a topic that is not compacted a file is missing, and they are lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.kafka.disks.scan_results import ReplicaScan
from logkeep.model.ranges import Range, tile


@dataclass(frozen=True)
class ReplicaRange:
    """Offsets `[start, end)` taken from one copy."""

    replica: int
    start: int
    end: int


@dataclass(frozen=True)
class MergedReplicas:
    """The whole log: pieces in order, and gaps that no copy fills. Together they cover `[start, end)`."""

    replica: int
    pieces: tuple[ReplicaRange, ...]
    gaps: tuple[Range, ...]


def best_copy(scans: Sequence[ReplicaScan]) -> int:
    """The index of the best copy; among equals the first."""
    return max(range(len(scans)), key=lambda i: (scans[i].last_epoch, scans[i].end, -i))


def merge_replicas(scans: Sequence[ReplicaScan], *, compacted: bool) -> MergedReplicas:
    """Merge the scans of all copies, at least one. `compacted`: offsets may be missing because of compaction."""
    chosen = best_copy(scans)
    taken = scans[chosen]
    wanting = [*taken.gaps, *taken.between_files]
    pieces = [ReplicaRange(chosen, r.start, r.end) for r in tile(Range(taken.start, taken.end), wanting).gaps]
    left: list[Range] = []
    for gap in wanting:
        filled, missing = _fill(gap, chosen, scans)
        pieces += filled
        if compacted and gap in taken.between_files:
            pieces += [ReplicaRange(chosen, r.start, r.end) for r in missing]
        else:
            left += missing
    return MergedReplicas(chosen, tuple(sorted(pieces, key=lambda p: p.start)), tuple(sorted(left)))


def _fill(gap: Range, chosen: int, scans: Sequence[ReplicaScan]) -> tuple[list[ReplicaRange], list[Range]]:
    filled, missing = list[ReplicaRange](), [gap]
    for donor, scan in enumerate(scans):
        if donor == chosen or not agree_around(gap, scans[chosen], scan):
            continue
        still = list[Range]()
        for hole in missing:
            given = tile(hole, [*scan.gaps, *scan.between_files]).gaps
            filled += [ReplicaRange(donor, r.start, r.end) for r in given]
            still += tile(hole, given).gaps
        missing = still
    return filled, missing


def agree_around(gap: Range, taken: ReplicaScan, donor: ReplicaScan) -> bool:
    """Whether a copy is undamaged on both sides of another copy's gap, with the same leader epochs there."""
    before_ok = gap.start <= taken.start or (
        _holds(donor, gap.start - 1) and donor.epoch_at(gap.start - 1) == taken.epoch_at(gap.start - 1)
    )
    return (
        before_ok
        and donor.start <= gap.start
        and _holds(donor, gap.end)
        and donor.epoch_at(gap.end) == taken.epoch_at(gap.end)
        and taken.epoch_at(gap.end) >= 0
    )


def _holds(scan: ReplicaScan, offset: int) -> bool:
    wanting = [*scan.gaps, *scan.between_files]
    return scan.start <= offset < scan.end and not any(g.start <= offset < g.end for g in wanting)
