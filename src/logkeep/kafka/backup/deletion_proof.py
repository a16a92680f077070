"""Whether a run read every deletion of a compacted log: proven by time, by density, or not. Pure.

By time: a tombstone, and the end marker of a transaction, stays at least `delete.retention.ms` after it was written. It
was written after the last cut, so a run that has read everything within that time since the last cut has seen it. A
margin covers clocks that differ. By density: compaction leaves a hole where it removed something, so offsets that all
have their record, or their marker, are as they were written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from logkeep.kafka.backup.assemble import Assembled
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.client.topology import TopicPartition, is_internal
from logkeep.kafka.logs.read_times import ReadTimes
from logkeep.kafka.record.deletion_times import CleanupRule, DeletionTimes, cleanup_rule, margin_ms, rule_of
from logkeep.kafka.record.documents import ArchivedReach, ClusterRecord
from logkeep.kafka.record.unproven_deletions import is_dense, unproven_finding
from logkeep.model.clock_time import same_clock
from logkeep.model.findings import Finding
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.model.time import rfc3339
from logkeep.repository.backups.manifest import KnownGap, LogCut


@dataclass(frozen=True)
class KnownLogs:
    """What the last backup has of each log."""

    reached: Mapping[TopicPartition, ArchivedReach]
    rules: Mapping[str, CleanupRule]
    """The cleanup rule of each topic, as the last backup recorded it."""
    unproven: Mapping[TopicPartition, Range]
    """For logs without recorded times: the offsets whose deletions are not proven by density."""


@dataclass(frozen=True)
class JudgedLog:
    """What the record keeps of a log, and what is not proven."""

    log: LogName
    times: DeletionTimes | None
    why: str = ""
    """Why the new offsets are not proven; empty if they are."""

    @property
    def unproven(self) -> Range | None:
        return self.times.unproven if self.times is not None else None


def known_logs(
    reached: Mapping[TopicPartition, ArchivedReach],
    record: ClusterRecord | None,
    unproven: Mapping[TopicPartition, Range],
) -> KnownLogs:
    return KnownLogs(reached, {t.name: rule_of(t) for t in record.topics} if record is not None else {}, unproven)


def judge_logs(known: KnownLogs, facts: Facts, assembled: Assembled) -> dict[LogName, JudgedLog]:
    """Every log of the cut. Logs that are not compacted have times too: their policy may change."""
    segments: dict[LogName, list[Segment]] = {}
    for each in assembled.segments:
        segments.setdefault(each.log, []).append(each)
    return {
        cut.log: _judge(cut, known, facts, assembled, segments.get(cut.log, ()))
        for cut in assembled.cut
        if cut.log.name in facts.configs
    }


def _judge(cut: LogCut, known: KnownLogs, facts: Facts, assembled: Assembled, segments: Sequence[Segment]) -> JudgedLog:
    if facts.cut is None:
        return JudgedLog(cut.log, None)
    log, configs = TopicPartition(cut.log.name, cut.log.partition), facts.configs[cut.log.name]
    base = known.reached.get(log)
    base = base if base is not None and base.history == cut.log.history else None
    now = cleanup_rule(configs.own, configs.inherited)
    before = known.rules.get(log.topic, now) if base is not None else now
    while_read_ms = assembled.retention_ms.get(cut.log, now.retention_ms)
    retention_ms = min(now.retention_ms, before.retention_ms, while_read_ms)
    read = assembled.times.get(cut.log)
    new = Range(min(max(base.end, cut.start), cut.end), cut.end) if base is not None else Range(cut.start, cut.end)
    why = ""
    if now.compacts or before.compacts:
        lost = [gap for gap in assembled.gaps if gap.log == cut.log and gap.end > cut.start]
        why = _doubt(new, base, read, segments, lost, retention_ms)
    open_spans = [*_earlier(base, known.unproven.get(log), cut.start), *([new] if why else [])]
    same = read is not None and same_clock(read, facts.cut)
    times = DeletionTimes(
        cut_ms=facts.cut.ms,
        clock=facts.cut.clock,
        host=facts.cut.host,
        read_begin_ms=read.begin_ms if read is not None and same else -1,
        read_end_ms=read.end_ms if read is not None and same else -1,
        retention_ms=retention_ms,
        unproven_from=min((span.start for span in open_spans), default=-1),
        unproven_to=max((span.end for span in open_spans), default=-1),
    )
    return JudgedLog(cut.log, times, why)


def _earlier(base: ArchivedReach | None, unknown: Range | None, start: int) -> list[Range]:
    """What the last backup left unproven, without offsets that are below the log start now: they are not restored."""
    if base is None:
        return []
    left = base.deletions.unproven if base.deletions is not None else unknown
    return [Range(max(left.start, start), left.end)] if left is not None and left.end > start else []


def _doubt(
    new: Range,
    base: ArchivedReach | None,
    read: ReadTimes | None,
    segments: Sequence[Segment],
    lost: Sequence[KnownGap],
    retention_ms: int,
) -> str:
    """Why deletions may be missing in the new offsets; empty if that is impossible."""
    if not len(new):
        return ""
    if lost:
        return f"retention removed offsets [{lost[0].start}, {lost[0].end}) before they were copied"
    if sum(s.end - s.start for s in segments) >= len(new) and all(map(is_dense, segments)):
        return ""
    return _too_late(base, read, retention_ms)


def _too_late(base: ArchivedReach | None, read: ReadTimes | None, retention_ms: int) -> str:
    """Why the time bound does not hold; empty if it does."""
    if read is None:
        return "when they were read is not known"
    since_ms, since = read.begin_ms, "the first one was read"
    if base is not None:
        if base.deletions is None:
            return "when the last backup read the end of the log is not known"
        if not same_clock(base.deletions, read):
            return "the last backup and this one read different clocks"
        since_ms, since = base.deletions.cut_ms, "the last cut was made"
    if 0 <= read.end_ms - since_ms < retention_ms - margin_ms(retention_ms):
        return ""
    return (
        f"{since} at {_text(since_ms)}, the last one was read at {_text(read.end_ms)}, "
        f"and brokers keep a tombstone for {retention_ms} ms (delete.retention.ms)"
    )


def _text(time_ms: int) -> str:
    return rfc3339(datetime.fromtimestamp(time_ms / 1000, UTC))


def expected_doubts(known: KnownLogs, facts: Facts, cut: tuple[LogCut, ...]) -> list[JudgedLog]:
    """The logs that a run would have to compare, if offsets are missing among the new ones. For a dry run."""
    now = facts.cut
    times = {c.log: ReadTimes(now.ms, now.ms, now.clock, now.host) for c in cut} if now is not None else {}
    judged = judge_logs(known, facts, Assembled(cut, (), (), (), {}, times=times))
    internal = {t.name for t in facts.topics if is_internal(t.name, t.internal)} - facts.named
    return [each for each in judged.values() if each.unproven is not None and each.log.name not in internal]


def with_later_cuts(
    reached: Mapping[TopicPartition, ArchivedReach], later: Mapping[TopicPartition, ArchivedReach]
) -> dict[TopicPartition, ArchivedReach]:
    """`reached` with the cut times of a later round that found the same logs with the same ends, and stored nothing."""
    moved = dict(reached)
    for log, known in reached.items():
        seen = later.get(log)
        if seen is not None and (seen.history, seen.end) == (known.history, known.end) and seen.deletions is not None:
            moved[log] = replace(known, deletions=seen.deletions)
    return moved


def proof_findings(judged: Iterable[JudgedLog], facts: Facts) -> list[Finding]:
    """One for each log with unproven deletions. Kafka's own topics are archived for their history: those need none
    unless the user named them."""
    internal = {t.name for t in facts.topics if is_internal(t.name, t.internal)} - facts.named
    return [
        unproven_finding(str(each.log), each.unproven, each.why or "an earlier backup left them unproven")
        for each in judged
        if each.unproven is not None and each.log.name not in internal
    ]
