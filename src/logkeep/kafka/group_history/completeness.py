"""For which times an archived log of Kafka's own topics shows the whole state of groups. Pure.

If an offset has no record, the broker had cleaned it before a backup read the range. It held one of these:

- a value that was replaced. Its successor was written before it was cleaned, and so before that backup had read the
  range: from then on the state does not depend on it. From its own time to the end of that read the state does;
- a tombstone, or the marker of a transaction. A backup that read in time, or offsets without holes, prove that none is
  missing; the cluster record names the offsets for which that is not proven. From the time of a missing one on, the
  state is wrong for what it erased or committed;
- anything: the offset is below the log start, or in a gap. (The coordinator of share groups moves the log start past
  records that were replaced.)

A time is complete if it is in none of these intervals, and not after the cut.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from logkeep.kafka.group_history.values import HoleSpan, LogShape
from logkeep.model.ranges import Range

NEVER = 2**63 - 1
BEGINNING = -(2**63)
"""Times after and before all others."""


@dataclass(frozen=True)
class ReadRun:
    """What one kept backup read of a log: everything from the end of the kept backup before it."""

    start: int
    """The log start at its cut."""
    end: int
    read_end_ms: int | None
    cut_ms: int | None
    """When the backup had read the log, and when it cut it; None: not known."""


@dataclass(frozen=True, order=True)
class TimeSpan:
    """Times `[start_ms, end_ms)`."""

    start_ms: int
    end_ms: int

    def __contains__(self, time_ms: int) -> bool:
        return self.start_ms <= time_ms < self.end_ms


@dataclass(frozen=True)
class ArchivedLogFacts:
    """What is known of one archived log besides its shape."""

    runs: Sequence[ReadRun]
    """What all kept backups up to the chosen one read, in order."""
    unproven: Range | None
    """Deletions in these offsets may be missing."""
    lost: Sequence[Range]
    """The known gaps of the log."""
    front: Range
    """Offsets below the log start."""
    front_until_ms: int
    """Until which time the offsets of `front` matter."""


@dataclass(frozen=True)
class LogCompleteness:
    doubts: tuple[tuple[HoleSpan, TimeSpan], ...]
    """Offsets without records, each with the times for which they matter."""
    until_ms: int
    """The archive ends here: the time of the cut."""

    def complete(self, at_ms: int) -> bool:
        return at_ms <= self.until_ms and not any(at_ms in span for _, span in self.doubts)

    def sure(self, at_ms: int, record_offset: int) -> bool:
        """Whether the record at this offset was its key's last one at a time: no doubt of that time is after it."""
        doubts = (hole for hole, span in self.doubts if at_ms in span)
        return at_ms <= self.until_ms and all(hole.end <= record_offset + 1 for hole in doubts)


def completeness(shape: LogShape, facts: ArchivedLogFacts) -> LogCompleteness:
    doubts = [(hole, _doubtful(hole, facts)) for hole in shape.holes]
    if len(facts.front):
        below = HoleSpan(facts.front.start, facts.front.end, -1)
        doubts.insert(0, (below, TimeSpan(BEGINNING, facts.front_until_ms)))
    known = [run.cut_ms for run in facts.runs[-1:] if run.cut_ms is not None]
    return LogCompleteness(tuple(doubts), known[0] if known else shape.last_ms)


def _doubtful(hole: HoleSpan, facts: ArchivedLogFacts) -> TimeSpan:
    since = hole.since_ms if hole.since_ms >= 0 else BEGINNING
    for_ever = [*facts.lost, *([facts.unproven] if facts.unproven is not None else [])]
    if any(hole.start < each.end and each.start < hole.end for each in for_ever):
        return TimeSpan(since, NEVER)
    return TimeSpan(since, max(_read_by(hole.end - 1, facts.runs), since))


def _read_by(offset: int, runs: Sequence[ReadRun]) -> int:
    """The time by which a backup had certainly read this offset."""
    at = bisect_right([run.end for run in runs], offset)
    own = [run.read_end_ms for run in runs[at : at + 1]]
    later = [run.cut_ms for run in runs[at + 1 :]]
    return next((time_ms for time_ms in [*own, *later] if time_ms is not None), NEVER)


def complete_around(logs: Iterable[LogCompleteness], at_ms: int) -> TimeSpan | None:
    """The longest interval around a time for which all these logs are complete; None if the time is not in one.

    It includes its end. It begins with the smallest number if nothing before is missing.
    """
    each = list(logs)
    if not all(log.complete(at_ms) for log in each):
        return None
    spans = [span for log in each for _, span in log.doubts]
    start = max((s.end_ms for s in spans if s.end_ms <= at_ms), default=BEGINNING)
    ends = [s.start_ms - 1 for s in spans if s.start_ms > at_ms]
    return TimeSpan(start, min([*ends, *(log.until_ms for log in each)], default=NEVER))


def nearest_complete(logs: Iterable[LogCompleteness], at_ms: int) -> list[int]:
    """Complete times nearest to one that is not: before it and after it, where there are some."""
    each = list(logs)
    spans = [span for log in each for _, span in log.doubts]
    before = [t for t in (s.start_ms - 1 for s in spans) if t < at_ms] + [
        log.until_ms for log in each if log.until_ms < at_ms
    ]
    after = [s.end_ms for s in spans if at_ms < s.end_ms < NEVER]
    found = [max((t for t in before if _all_complete(each, t)), default=None)]
    found.append(min((t for t in after if _all_complete(each, t)), default=None))
    return [t for t in found if t is not None]


def _all_complete(logs: Sequence[LogCompleteness], at_ms: int) -> bool:
    return at_ms > 0 and all(log.complete(at_ms) for log in logs)


def every_record_since(shape: LogShape, facts: ArchivedLogFacts) -> int:
    """The time from which every record of the log is archived; `NEVER` if that is not known.

    What is missing was written before the range around it had been read, or before the first archived record.
    """
    ends = [_read_by(hole.end - 1, facts.runs) for hole in shape.holes]
    return max([*ends, *([shape.first_ms] if len(facts.front) else [])], default=BEGINNING)
