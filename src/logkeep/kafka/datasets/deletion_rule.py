"""Whether a dataset may hold records of keys that were deleted at the source: the rule for compacted topics. Pure.

Brokers keep a tombstone for at least `delete.retention.ms`. A run that reads everything within that time since the last
cut reads every tombstone, and so does a run that finds a record at every offset. Any other span is unproven until the
topic is written anew. The time since the last cut proves nothing about records that the dataset lost after it, and a
record at every offset nothing about those that a killed run read before. If the source is a backup, the backup says
what is unproven, what was buried since, and whether offsets after the end of the dataset were folded.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from logkeep.kafka.client.topology import is_internal
from logkeep.kafka.datasets.values import ExportableLogs, ExportedLog, LogToExport
from logkeep.kafka.logs.read_times import ReadTimes
from logkeep.kafka.record.dataset_document import NotedLog
from logkeep.kafka.record.deletion_times import UNPROVEN, CleanupRule, DeletionTimes, margin_ms, rule_of
from logkeep.kafka.record.documents import TopicRecord
from logkeep.model.clock_time import ClockName, ClockTime, same_clock
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.ranges import Range


@dataclass(frozen=True)
class JudgedExport:
    """What is noted of a log, and why deletions may be missing; empty if none can."""

    times: DeletionTimes | None
    why: str = ""


def judge_export(
    planned: LogToExport,
    done: ExportedLog | None,
    note: NotedLog | None,
    facts: ExportableLogs,
    before: TopicRecord | None,
) -> JudgedExport:
    """What the run proves of one log. `note`: what the last run noted of it; `before`: its topic as it was then."""
    topic = next(t for t in facts.topics if t.name == planned.log.topic)
    rule = _stricter(rule_of(topic), rule_of(before) if before is not None else None)
    known = note.deletions if note is not None else None
    earlier = known.unproven if known is not None else None
    doubtful = rule.compacts and (not is_internal(topic.name, topic.internal) or topic.name in facts.named)
    why = _doubt(planned, done, note, facts, rule.retention_ms) if doubtful else ""
    spans = [span for span in (earlier, Range(planned.source.start, planned.end) if why else None) if span is not None]
    if facts.cut is None and not spans:
        return JudgedExport(None)
    cut = facts.cut
    times = DeletionTimes(
        cut_ms=cut.ms if cut is not None else 0,
        clock=cut.clock if cut is not None else ClockName.OWN,
        host=cut.host if cut is not None else "",
        retention_ms=rule.retention_ms,
        unproven_from=min((span.start for span in spans), default=-1),
        unproven_to=max((span.end for span in spans), default=-1),
    )
    left = "an earlier run left them unproven" if earlier is not None and doubtful else ""
    return JudgedExport(times, why or left)


def _stricter(now: CleanupRule, before: CleanupRule | None) -> CleanupRule:
    if before is None:
        return now
    return CleanupRule(now.compacts or before.compacts, min(now.retention_ms, before.retention_ms))


def _doubt(
    planned: LogToExport, done: ExportedLog | None, note: NotedLog | None, facts: ExportableLogs, retention_ms: int
) -> str:
    if not facts.live:
        return _archived_doubt(planned, note)
    unfinished = planned.last > (note.last if note is not None else -1)  # a run read these, and did not judge them
    if not planned.offsets and not planned.passed and not unfinished:
        return ""
    if planned.passed or planned.hole is not None or (done is not None and done.lost):
        return "the log start has passed the end of the dataset"
    if done is not None and done.dense and not unfinished:
        return ""
    if _lost_its_end(planned, note):
        return (
            f"the dataset lost its records after offset {planned.last}; offsets are missing among those that were read "
            "again, and only the lost ones may have had a deletion"
        )
    return _too_late(planned, note, _read_times(planned, done, facts.cut), retention_ms)


def _lost_its_end(planned: LogToExport, note: NotedLog | None) -> bool:
    """A dataset that lost all its records holds no deleted key either."""
    return note is not None and note.last > planned.last >= 0


def _read_times(planned: LogToExport, done: ExportedLog | None, cut: ClockTime | None) -> ReadTimes | None:
    if planned.offsets or cut is None:
        return done.times if done is not None else None
    return ReadTimes(cut.ms, cut.ms, cut.clock, cut.host)  # nothing was left to read


def _is_first_copy(planned: LogToExport, note: NotedLog | None) -> bool:
    return note is None or (note.covered < 0 and planned.last < 0)


def times_at_begin(planned: LogToExport, note: NotedLog | None, facts: ExportableLogs) -> DeletionTimes | None:
    """What is noted of a log when a run begins, for the next one if this one is killed."""
    known, cut = note.deletions if note is not None else None, facts.cut
    if not facts.live or cut is None:
        return known
    if _is_first_copy(planned, note):
        topic = next(t for t in facts.topics if t.name == planned.log.topic)
        return DeletionTimes(cut_ms=cut.ms, clock=cut.clock, host=cut.host, retention_ms=rule_of(topic).retention_ms)
    if not _lost_its_end(planned, note):
        return known
    known = known or DeletionTimes(cut_ms=0, clock=ClockName.OWN, retention_ms=0)
    spans = [span for span in (known.unproven, Range(planned.source.start, planned.end)) if span is not None]
    first, after = min(span.start for span in spans), max(span.end for span in spans)
    return msgspec.structs.replace(known, unproven_from=first, unproven_to=after)


def _archived_doubt(planned: LogToExport, note: NotedLog | None) -> str:
    if note is not None and note.covered >= 0:
        if planned.source.buried > note.buried:
            count = planned.source.buried - note.buried
            return f"backups buried {plural(count, 'record')} since the last export, and the dataset may have them"
        if planned.source.folded_to > note.covered:
            return (
                f"the archived log was folded to offset {planned.source.folded_to}, the dataset had it up to "
                f"{note.covered}, and a fold may drop deletions between them"
            )
    return planned.source.unproven


def _too_late(planned: LogToExport, note: NotedLog | None, read: ReadTimes | None, retention_ms: int) -> str:
    if read is None:
        return "when they were read is not known"
    since_ms, since = read.begin_ms, "the first record was read"
    if not _is_first_copy(planned, note):
        known = note.deletions if note is not None else None
        if known is None or not same_clock(known, read):
            return "when the last run read the end of the log is not known"
        since_ms, since = known.cut_ms, "the last cut"
    margin = margin_ms(retention_ms)
    if 0 <= read.end_ms - since_ms < retention_ms - margin:
        return ""
    return (
        f"{read.end_ms - since_ms} ms passed since {since}, offsets are missing among the new ones, and brokers keep "
        f"a tombstone for {retention_ms} ms (delete.retention.ms), of which {margin} ms are left as a margin"
    )


def unproven_findings(judged: Mapping[LogToExport, JudgedExport]) -> list[Finding]:
    return [
        Finding(
            code=UNPROVEN,
            severity=Severity.WARNING,
            where=str(planned.log),
            what=f"deletions may be missing, so the dataset may have keys that were deleted: {each.why}",
            remedy=f"--rewrite {planned.log.topic} writes the topic anew and replaces the old one; a run more often "
            "than delete.retention.ms needs that never",
        )
        for planned, each in judged.items()
        if each.why
    ]
