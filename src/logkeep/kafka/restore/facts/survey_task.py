"""The survey task: counts what each selected log holds, from the batch indexes beside the segments.

Counts come from batch headers. Only the batches that cross a border of the range, and the one that contains a point in
time, are read and decoded. A listing shows whether all objects exist. A lost or wrong index costs one pass over its
segment. Values that an index does not show are upper bounds: the holes inside a batch, and the aborted transactions.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec
import numpy as np

from logkeep.errors import Damaged, FormatTooNew, ObjectMissing, UnsafeName
from logkeep.formats.kafka.batches import APPEND_TIME, CONTROL, DELETE_HORIZON, WalkEnd, first_broken, walk
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from logkeep.kafka.logs.header_check import index_beside
from logkeep.kafka.logs.rebuilt_index import rebuild_index
from logkeep.kafka.restore.facts.log_counts import Longs, Rows, Tally, rows_of
from logkeep.kafka.restore.facts.object_check import Presence
from logkeep.model.segments import LogName, Segment
from logkeep.model.work import Progress
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.reader import StoredLog

_UNIT_SEGMENTS = 256
_MOST_DECODED = 16
"""Batches of a log that are decoded to find an early record, where no batch header shows one."""


class SurveyLog(msgspec.Struct, frozen=True, kw_only=True):
    """One selected log: `[start, end)` of the backup, and the end that the user asked for."""

    log: LogName
    start: int
    end: int
    segments: tuple[Segment, ...]
    """The segments that overlap `[start, end)`, in order."""
    until_ms: int | None = None
    """End before the first record with this time or a later one."""
    by_record: bool = False
    """Do not end there: leave out each such record, at any offset."""
    until_offset: int | None = None
    presence: bool = True
    """Whether to check that the objects exist."""


class Cut(StrEnum):
    """How the end that the user asked for applies to a log."""

    NONE = "none"
    """The user asked for no end."""
    MADE = "made"
    """It is inside the log."""
    BEHIND = "behind"
    """It is at or after the end of the backup: the whole log is restored."""
    BEFORE = "before"
    """It is before the first record: nothing is restored. With `by_record`: no batch header, and none of the first
    batches, shows a record before it."""


class LogSurvey(msgspec.Struct, frozen=True, kw_only=True):
    """What `[start, end)` of a log holds. Transaction markers do not count as records."""

    log: LogName
    start: int
    end: int
    """The end to restore to."""
    cut: Cut = Cut.NONE
    records: int = 0
    """Includes aborted transactions, which an index does not show. An upper bound where some are left out."""
    left_out: int = 0
    """Upper bound of the records left out because of their time."""
    batches: int = 0
    bytes: int = 0
    """Size in the log of the batches with records of the range."""
    largest_batch_bytes: int = 0
    missing: int = 0
    """Offsets without a record, not counting aborted transactions."""
    holes: int = 0
    """Upper bound of the runs of missing offsets: an index does not show which records of a batch are missing. An
    aborted transaction seldom adds one: it precedes its marker, which is a hole already."""
    control_batches: int = 0
    transactional_batches: int = 0
    reencoded_bytes: int = 0
    """The size of batches that cannot be sent unchanged: they have holes, cross a border, or carry the append time."""
    first_time_ms: int = -1
    """The smallest first time of a batch; -1 when there is none."""
    damage: str = ""
    """Why the log cannot be surveyed; then the other values are unknown."""

    @property
    def transactional(self) -> bool:
        return bool(self.transactional_batches or self.control_batches)


class RestoreSurveyUnit(msgspec.Struct, frozen=True, kw_only=True):
    place: SourceRef
    logs: tuple[SurveyLog, ...]


class SurveyResult(msgspec.Struct, frozen=True, kw_only=True):
    logs: tuple[LogSurvey, ...]
    """In the order of the unit."""


def survey_units(place: SourceRef, logs: Iterable[SurveyLog]) -> list[RestoreSurveyUnit]:
    """Logs in their order, in units of a bounded number of segments. One log is never divided."""
    units: list[RestoreSurveyUnit] = []
    chosen: list[SurveyLog] = []
    for log in logs:
        if chosen and sum(len(c.segments) for c in chosen) + len(log.segments) > _UNIT_SEGMENTS:
            units.append(RestoreSurveyUnit(place=place, logs=tuple(chosen)))
            chosen = []
        chosen.append(log)
    return [*units, RestoreSurveyUnit(place=place, logs=tuple(chosen))] if chosen else units


def survey(unit: RestoreSurveyUnit, progress: Progress) -> SurveyResult:
    """A task. The log's survey reports damage; raises a StoreError when the store fails."""
    return SurveyResult(logs=tuple(_survey_log(unit.place, log, progress) for log in unit.logs))


def _survey_log(place: SourceRef, wanted: SurveyLog, progress: Progress) -> LogSurvey:
    try:
        return _Survey(place, wanted).run(progress)
    except (Damaged, ObjectMissing, FormatTooNew, UnsafeName) as error:
        return LogSurvey(log=wanted.log, start=wanted.start, end=wanted.end, damage=str(error))


class _Survey:
    """One log, segment by segment, until its end is reached."""

    def __init__(self, place: SourceRef, wanted: SurveyLog) -> None:
        self._place, self._wanted = place, wanted
        until = wanted.end if wanted.until_offset is None else wanted.until_offset
        self._end = min(max(until, wanted.start), wanted.end)
        self._found = self._early = False
        self._to_decode = _MOST_DECODED
        self._presence = Presence(place, wanted.segments)

    def run(self, progress: Progress) -> LogSurvey:
        tally = Tally(self._wanted.start)
        for segment in self._wanted.segments:
            if self._found or segment.start >= self._end:
                break
            if segment.has_object and segment.end > self._wanted.start:
                if self._wanted.presence:
                    self._presence.check(segment)
                tally.take(self._rows(segment))
            progress(segment.stored_bytes)
        cut = self._cut(tally)
        end = self._wanted.start if cut is Cut.BEFORE and not self._wanted.by_record else self._end
        tally.finish(end)
        return LogSurvey(log=self._wanted.log, start=self._wanted.start, end=end, cut=cut, **tally.counts)

    def _cut(self, tally: Tally) -> Cut:
        wanted = self._wanted
        if wanted.until_ms is None and wanted.until_offset is None:
            return Cut.NONE
        if wanted.by_record:
            return (Cut.MADE if self._early else Cut.BEFORE) if tally.counts["left_out"] else Cut.BEHIND
        if not self._found and (wanted.until_offset is None or wanted.until_offset >= wanted.end):
            return Cut.BEHIND
        return Cut.MADE if tally.counts["records"] else Cut.BEFORE

    def _rows(self, segment: Segment) -> Rows:
        """The batches of a segment with records of the range; counts of crossing batches end at its borders."""
        stored = StoredSegment(self._place, segment)
        start = max(segment.start, self._wanted.start)
        if self._wanted.by_record:
            self._early = self._early or self._early_in(stored, start, min(segment.end, self._end))
            before_ms = self._wanted.until_ms
            return rows_of(stored.index, start, min(segment.end, self._end), stored.offsets, before_ms)
        found = self._time_in(stored, start, min(segment.end, self._end))
        if found is not None:
            self._end, self._found = found, True
        return rows_of(stored.index, start, min(segment.end, self._end), stored.offsets)

    def _early_in(self, stored: "StoredSegment", start: int, end: int) -> bool:
        """Whether `[start, end)` has a record before the time: from headers, or from a few decoded batches.

        Headers show the first and the largest time. Where both are late, records between them may still be early, but
        the whole archive is not read to find them.
        """
        until, rows = self._wanted.until_ms, stored.index.rows
        if until is None:
            return True
        inside = (rows["last_offset"] >= start) & (rows["base_offset"] < end) & (rows["records"] > 0)
        inside &= (rows["attributes"] & np.int16(CONTROL)) == 0
        whole = (rows["base_offset"] >= start) & (rows["last_offset"] < end)
        timed = (rows["attributes"] & np.int16(APPEND_TIME | DELETE_HORIZON)) == 0
        if np.any(inside & whole & ((rows["max_time_ms"] < until) | (timed & (rows["base_time_ms"] < until)))):
            return True
        for row in np.flatnonzero(inside)[: self._to_decode].tolist():
            self._to_decode -= 1
            for part in stored.records(row):
                if bool(np.any(part.within(start, end).times_ms < until)):
                    return True
        return False

    def _time_in(self, stored: "StoredSegment", start: int, end: int) -> int | None:
        """The first offset of `[start, end)` with the requested time or a later one, by the rule of a broker.

        A broker counts markers too. If no record of the range has the time in a header, the next batch is read.
        """
        until = self._wanted.until_ms
        if until is None:
            return None
        rows = stored.index.rows
        inside = (rows["last_offset"] >= start) & (rows["base_offset"] < end) & (rows["records"] > 0)
        for row in np.flatnonzero(inside & (rows["max_time_ms"] >= until)).tolist():
            for part in stored.records(row):
                part_in = part.within(start, end)
                late = part_in.offsets[part_in.times_ms >= until]
                if len(late):
                    return int(late[0])
        return None


class StoredSegment:
    """A segment and its batch index, rebuilt if needed."""

    def __init__(self, place: SourceRef, segment: Segment) -> None:
        self._log = StoredLog.of(place, segment)
        found = index_beside(place, segment)
        self.index = rebuild_index(self._log, segment.sha256) if found is None else found

    def offsets(self, row: int) -> Longs:
        return np.concatenate([part.offsets.copy() for part in self.records(row)] or [np.empty(0, np.int64)])

    def records(self, row: int) -> Iterator[RecordColumns]:
        """The records of one batch; only this batch is read. Raises Damaged."""
        wanted = self.index.rows[row]
        data = b"".join(self._log.range(int(wanted["position"]), int(wanted["size"]), self.index))
        walked = walk(data)
        base = int(wanted["base_offset"])
        sound = walked.stop is WalkEnd.END and len(walked.batches) == 1 and int(walked.batches.base_offsets[0]) == base
        if not sound or first_broken(data, walked.batches) is not None:
            raise Damaged(f"the batch at offset {base} is not what was written", subject=self._log.name)
        for part in decode(data, walked.batches):
            if isinstance(part, Malformed):
                raise Damaged(str(part), subject=self._log.name)
            yield part
