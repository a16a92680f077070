"""Decides from which offset on one archived log stays, by time, size, log start and what keeps it. Pure.

A segment is trimmed only if all segments before it are, as on a broker. Sizes are those of the log, not compressed;
where two segments hold the same offsets, one of them counts.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from logkeep.kafka.retention.rules import NO_LIMIT
from logkeep.model.ranges import Range

BY_LOG_START, BY_AGE, BY_FUTURE = "at or above the log start", "too young", "a record time in the future"


class ArchivedRow(NamedTuple):
    """One segment that begins below the log start of the newest good backup."""

    start: int
    end: int
    records: int
    plain_bytes: int
    base_time_ms: int
    """-1: a batch has no time."""
    max_time_ms: int


@dataclass(frozen=True)
class TrimFacts:
    """One log of the newest good backup, as older backups have it."""

    rows: Sequence[ArchivedRow]
    log_start: int
    newer_bytes: int
    """The bytes from the log start on."""
    reached: Sequence[tuple[int, int]]
    """For each backup, oldest first: its end, and the time of its commit in ms."""
    kept: Sequence[tuple[Range, str]] = ()
    """What held, read and tagged backups need, and why."""


@dataclass(frozen=True)
class TrimLimits:
    """A segment is trimmed if it is older than the time, or if the log has that many bytes after it."""

    time_ms: int
    size_bytes: int


class TrimmedLog(NamedTuple):
    floor: int = 0
    """The first offset that stays; 0: nothing is trimmed."""
    segments: int = 0
    plain_bytes: int = 0
    stopped_by: str = ""
    """Why the next segment stays; empty: there is none."""


def trim_log(log: TrimFacts, limits: TrimLimits, now_ms: int) -> TrimmedLog:
    """Walk from the oldest segment on to the first one that stays."""
    sizes, running = _SizesAbove(log), -1
    floor = segments = gone_bytes = 0
    rows = sorted(log.rows)
    for row in rows:
        running = max(running, _time_of(row, log.reached, now_ms))
        by_time = limits.time_ms < NO_LIMIT and running < now_ms - limits.time_ms
        by_size = limits.size_bytes < NO_LIMIT and sizes.from_offset(row.end) >= limits.size_bytes
        why = _kept_by(row, log) or ("" if by_time or by_size else BY_FUTURE if running > now_ms else BY_AGE)
        if why:
            return TrimmedLog(min(floor, row.start), segments, gone_bytes, why)
        floor, segments, gone_bytes = max(floor, row.end), segments + 1, gone_bytes + row.plain_bytes
    return TrimmedLog(floor, segments, gone_bytes)


def _kept_by(row: ArchivedRow, log: TrimFacts) -> str:
    if row.end > log.log_start:
        return BY_LOG_START
    # What follows a kept backup stays too, even if that backup has only a gap there: a log begins at one offset.
    return next((why for span, why in log.kept if row.end > span.start), "")


def _time_of(row: ArchivedRow, reached: Sequence[tuple[int, int]], now_ms: int) -> int:
    """The largest record time; of records without one, when they were archived at the latest."""
    if not row.records:
        return -1
    if row.base_time_ms >= 0 and row.max_time_ms >= 0:
        return row.max_time_ms
    archived_ms = next((committed_ms for end, committed_ms in reached if end >= row.end), now_ms)
    return max(row.max_time_ms, archived_ms)


class _SizesAbove:
    """How many bytes of a log are archived from an offset on."""

    def __init__(self, log: TrimFacts) -> None:
        low, total = log.log_start, log.newer_bytes
        self._starts, self._totals = [-low], [total]
        for row in sorted(log.rows, reverse=True):
            if row.end <= low:
                low, total = row.start, total + row.plain_bytes
                self._starts.append(-low)
                self._totals.append(total)

    def from_offset(self, offset: int) -> int:
        """The bytes of segments that are completely at or above this offset."""
        at = bisect_left(self._starts, -offset + 1) - 1
        return self._totals[at] if at >= 0 else 0
