"""What receipts of an interrupted run are worth to the next one: ranges that need not be copied again. Pure.

The cluster went on since, so the new plan has other ends than the old one. What counts is which positions of a log are
archived, not which units the old plan had. Only ranges that were copied to their end count: a denied topic may be
allowed by now, and a log that became another one is looked at anew.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from logkeep.kafka.units import CopyResult, Outcome, RangeResult
from logkeep.model.segments import LogName


@dataclass(frozen=True)
class Held:
    """Positions `[start, end)` of a log that are archived already, and the epoch of the last batch in them."""

    start: int
    end: int
    last_epoch: int


@dataclass(frozen=True)
class Hole:
    """Positions that are still to be copied, and the epoch before them; -1 when it is not known."""

    start: int
    end: int
    last_epoch: int


def copied_only(results: Iterable[CopyResult], ends: Mapping[LogName, int]) -> list[CopyResult]:
    """The results without ranges that are not wanted, not whole, or reach behind where their log ends now."""
    kept: list[CopyResult] = []
    for result in results:
        ranges = tuple(r for r in result.ranges if r.outcome is Outcome.COPIED and r.reached <= ends.get(r.log, -1))
        logs = {r.log for r in ranges}
        if ranges:
            segments = tuple(s for s in result.segments if s.log in logs)
            kept.append(CopyResult(unit=result.unit, ranges=ranges, segments=segments))
    return kept


def held_by(results: Iterable[CopyResult]) -> dict[LogName, list[Held]]:
    """By log, in order."""
    held: dict[LogName, list[Held]] = {}
    for result in results:
        for each in result.ranges:
            held.setdefault(each.log, []).append(Held(each.lo, each.reached, _last_epoch(each)))
    return {log: sorted(found, key=lambda h: h.start) for log, found in held.items()}


def _last_epoch(result: RangeResult) -> int:
    return result.epochs[-1].epoch if result.epochs else -1


def holes(start: int, end: int, held: Iterable[Held], last_epoch: int = -1) -> list[Hole]:
    """What is left of `[start, end)`. `last_epoch` is the one before `start`."""
    found: list[Hole] = []
    reached = start
    for each in held:
        if reached < min(each.start, end):
            found.append(Hole(reached, min(each.start, end), last_epoch))
        if each.end > reached:
            reached, last_epoch = each.end, each.last_epoch
    if reached < end:
        found.append(Hole(reached, end, last_epoch))
    return found
