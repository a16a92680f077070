"""The offsets that each archived segment of a partition covers, once all its units are done. Pure.

A unit `[lo, hi)` owns the batches whose base offset is in it (the first unit also the one that contains the log
start). It claims `[lo, max(hi, end of its last batch))`: where it found nothing, nothing was left. It does not claim
offsets inside a batch that it skipped because a neighbour owns that batch.

Units read at different times, and compaction and retention work in between. So two claims may overlap (a batch reaches
beyond the border): the owner of the earlier batch keeps it. And there may be a hole (a batch that one unit skipped was
gone when its owner read there): if the owner read on to the next batch without meeting the log start, compaction
removed it, and the following segment claims the hole; otherwise it is recorded as a gap. Nothing is guessed.

How to read the result: a batch belongs to a segment's claim `[start, end)` when its last offset is not below `start`
and its base offset is below `end`. Then every batch is seen once, also where the log start is inside a batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.kafka.backup.units import CopyResult, RangeResult
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment


@dataclass(frozen=True)
class Joined:
    """One log: claims that do not overlap, in order, and gaps. Together they tile `span`."""

    log: LogName
    span: Range
    segments: tuple[Segment, ...]
    gaps: tuple[Range, ...]


def join_claims(results: Iterable[CopyResult]) -> list[Joined]:
    """Join the claims of all units, log by log.

    Rows that claim nothing any more are left out; their objects are garbage, since no reader would ever need them.
    """
    ranges: dict[LogName, list[RangeResult]] = {}
    segments: dict[LogName, list[Segment]] = {}
    for result in results:
        for one in result.ranges:
            ranges.setdefault(one.log, []).append(one)
        for piece in result.segments:
            segments.setdefault(piece.log, []).append(piece)
    return [_joined(log, ranges[log], segments.get(log, ())) for log in sorted(ranges)]


def _joined(log: LogName, ranges: Sequence[RangeResult], segments: Iterable[Segment]) -> Joined:
    span = Range(min(r.lo for r in ranges), max(r.hi for r in ranges))
    kept: list[Segment] = []
    gaps: list[Range] = []
    reached = span.start
    for piece in sorted(segments, key=lambda s: (s.first, s.start)):
        start = max(piece.start, reached)
        if start >= piece.end:
            continue
        if start > reached:
            if _compacted(Range(reached, start), ranges):
                start = reached
            else:
                gaps.append(Range(reached, start))
        kept.append(piece if start == piece.start else msgspec.structs.replace(piece, start=start))
        reached = piece.end
    if reached < span.end:
        gaps.append(Range(reached, span.end))
    return Joined(log, span, tuple(kept), tuple(gaps))


def _compacted(hole: Range, ranges: Sequence[RangeResult]) -> bool:
    """Whether a unit that ended at or before the hole found nothing in it."""
    return any(r.reached <= hole.start and hole.end <= r.empty_to for r in ranges)
