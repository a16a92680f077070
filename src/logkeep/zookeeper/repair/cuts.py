"""Where a repaired log must be cut so that every backup finds its part of it. Pure.

One object may hold pieces of several backups. A piece that has lost nothing is found in any run of records that holds
all of it. A piece that has lost something needs runs of its own, none of which may extend beyond it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from logkeep.zookeeper.model.spans import Span, overlap
from logkeep.zookeeper.repair.plan import DonorRecords, NewLog, OwnBytes, RepairPlan


def cuts_for(lost: Collection[Span], pieces: Iterable[Span], borders: Iterable[Span]) -> frozenset[int]:
    """Transactions at which a run must begin. `borders`: of epochs, see `ArchivedLog`."""
    following, left = dict(borders), set(pieces)
    firsts: set[int] = set()
    cut = {piece for piece in left if any(overlap(piece, one) for one in lost)}
    while cut:
        firsts |= {first for first, _ in cut} | {following.get(last, last + 1) for _, last in cut}
        left -= cut
        cut = {piece for piece in left if any(piece[0] < first <= piece[1] for first in firsts)}
    return frozenset(firsts)


def cut_at(plan: RepairPlan, firsts: Collection[int]) -> tuple[NewLog, ...]:
    """The logs of a plan, each cut before these transactions."""
    before = {after: end for end, after in plan.of.borders}
    return tuple(piece for log in plan.logs for piece in _cut(log, sorted(firsts), before))


def _cut(log: NewLog, firsts: Sequence[int], before: Mapping[int, int]) -> Iterator[NewLog]:
    run: list[OwnBytes | DonorRecords] = []
    for part in (half for whole in log.parts for half in _split_part(whole, firsts, before)):
        if run and part.first in firsts:
            yield NewLog(run[0].first, run[-1].last, tuple(run))
            run = []
        run.append(part)
    yield NewLog(run[0].first, run[-1].last, tuple(run))


def _split_part(
    part: OwnBytes | DonorRecords, firsts: Sequence[int], before: Mapping[int, int]
) -> Iterator[OwnBytes | DonorRecords]:
    inside = [first for first in firsts if part.first < first <= part.last]
    ends = [*(before.get(first, first - 1) for first in inside), part.last]
    for first, last in zip((part.first, *inside), ends, strict=True):
        if isinstance(part, OwnBytes):
            yield replace(part, first=first, last=last, begins=part.first)
        else:
            yield replace(part, first=first, last=last)
