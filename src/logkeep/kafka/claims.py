"""Which positions each archived segment of a partition answers for, once all of its units are done. Pure.

A unit `[lo, hi)` owns the batches whose base offset lies in it (the first unit also the one that contains the log
start), and claims `[lo, max(hi, end of its last batch))`: what it saw nothing of, nothing was left of. Neighbours
read at different times, and compaction works in between, so their claims may overlap where a batch reaches over the
border, and never leave a hole. `join` lets the earlier claim stand and moves the later one's start behind it.

How to read the result: a batch belongs to a segment's claim `[start, end)` when its last offset is not below `start`
and its base offset is below `end`. Then every batch is seen once, also where an object holds one that its neighbour
claimed already, and where the log start lies inside a batch.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec

from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment


def join(claims: Iterable[Segment]) -> list[Segment]:
    """The segments of any number of logs with claims that do not overlap, in order of log and position.

    Rows that claim nothing any more and have no object are left out. An object whose whole claim was taken is left out
    too: nobody would ever read it, so it is garbage.
    """
    ordered = sorted(claims, key=lambda s: (s.log, s.start, s.end))
    return [piece for _, group in groupby(ordered, key=lambda s: s.log) for piece in _joined(list(group))]


def _joined(ordered: Sequence[Segment]) -> list[Segment]:
    kept: list[Segment] = []
    reached = ordered[0].start
    for piece in ordered:
        start = max(piece.start, reached)
        if start < piece.end:
            kept.append(piece if start == piece.start else msgspec.structs.replace(piece, start=start))
            reached = piece.end
    return kept


def unclaimed(log: LogName, gaps: Iterable[Range], joined: Sequence[Segment]) -> list[Range]:
    """What of a log's gaps nobody archived after all: a neighbour may have read it before retention came."""
    left: list[Range] = []
    claims = [Range(s.start, s.end) for s in joined if s.log == log]
    for gap in sorted(gaps):
        pieces = [gap]
        for claim in claims:
            pieces = [rest for piece in pieces for rest in _without(piece, claim)]
        left += pieces
    return left


def _without(piece: Range, claim: Range) -> list[Range]:
    if claim.end <= piece.start or claim.start >= piece.end:
        return [piece]
    before = Range(piece.start, max(claim.start, piece.start))
    after = Range(min(claim.end, piece.end), piece.end)
    return [rest for rest in (before, after) if len(rest)]
