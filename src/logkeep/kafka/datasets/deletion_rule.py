"""Whether a dataset may hold records of keys that were deleted at the source: the rule for compacted topics. Pure.

Brokers keep a tombstone for at least `delete.retention.ms`. A run that reads everything within that time since the last
cut reads every tombstone, and so does a run that finds a record at every offset. Any other span is unproven until the
topic is written anew. If the source is a backup, the backup says what is unproven, and what was buried since.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from logkeep.kafka.client.topology import is_internal
from logkeep.kafka.datasets.values import ExportableLogs, ExportedLog, LogToExport
from logkeep.kafka.logs.read_times import ReadTimes
from logkeep.kafka.record.dataset_document import NotedLog
from logkeep.kafka.record.deletion_times import UNPROVEN, CleanupRule, DeletionTimes, margin_ms, rule_of
from logkeep.kafka.record.documents import TopicRecord
from logkeep.model.clock_time import ClockName, same_clock
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
    if not planned.offsets and not planned.passed:
        return ""
    if planned.passed or planned.hole is not None or (done is not None and done.lost):
        return "the log start has passed the end of the dataset"
    if done is not None and done.dense:
        return ""
    return _too_late(note.deletions if note is not None else None, done.times if done else None, note, retention_ms)


def _archived_doubt(planned: LogToExport, note: NotedLog | None) -> str:
    if note is not None and note.covered >= 0 and planned.source.buried > note.buried:
        count = planned.source.buried - note.buried
        return f"backups buried {plural(count, 'record')} since the last export, and the dataset may have them"
    return planned.source.unproven


def _too_late(known: DeletionTimes | None, read: ReadTimes | None, note: NotedLog | None, retention_ms: int) -> str:
    if read is None:
        return "when they were read is not known"
    since_ms, since = read.begin_ms, "the first record was read"
    if note is not None and note.covered >= 0:
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
