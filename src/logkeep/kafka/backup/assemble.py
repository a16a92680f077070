"""The results of all copied units, joined: segments that tile the cut, gaps, findings. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec

from logkeep.errors import BackupFailed, ClusterNotReady, NotAuthorised
from logkeep.kafka.backup.claims import join_claims
from logkeep.kafka.backup.plan import REMOVED_MEANWHILE, Plan, history_of
from logkeep.kafka.backup.units import CopyOutcome, CopyResult, RangeResult, result_of
from logkeep.kafka.client.topology import Topic
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.logs.leader_epochs import EpochRun
from logkeep.kafka.logs.log_traits import LogTraits, all_joined
from logkeep.kafka.logs.lost_offset import Cause
from logkeep.kafka.logs.read_times import ReadTimes, all_times
from logkeep.kafka.record.history_names import topic_id_of
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.catch_ups import CatchUpReceipt
from logkeep.repository.backups.journal import UnitReceipt
from logkeep.repository.backups.manifest import KnownGap, LogCut

T = TypeVar("T")
_DELETIONS = (Cause.DELETED, Cause.RECREATED)
_DELETED = "the topic was deleted before it was copied"


@dataclass(frozen=True)
class Assembled:
    """What the backup commits."""

    cut: tuple[LogCut, ...]
    segments: tuple[Segment, ...]
    gaps: tuple[KnownGap, ...]
    findings: tuple[Finding, ...]
    tips: Mapping[LogName, EpochRun]
    """Leader epoch and end of the last batch that was copied, by log."""
    traits: Mapping[LogName, LogTraits | None] = field(default_factory=dict)
    """The traits of what was copied, by log; None if those of a part are not known."""
    last_batches: Mapping[LogName, LastBatch | None] = field(default_factory=dict)
    """The last batch that was copied, by log; None if it is not known. Logs without a copied batch are left out."""
    times: Mapping[LogName, ReadTimes | None] = field(default_factory=dict)
    """When each log with copied ranges was read; None if that is not known for one of its ranges."""
    retention_ms: Mapping[LogName, int] = field(default_factory=dict)
    """The smallest `delete.retention.ms` while a catch-up read a log."""
    offsets: int = 0
    """How many offsets the segments cover."""


def earlier_results(receipts: Iterable[UnitReceipt | CatchUpReceipt]) -> list[CopyResult]:
    """What an interrupted run finished. Only units that copied all of their ranges count; receipts whose note cannot be
    read are ignored."""
    found = []
    for receipt in receipts:
        with suppress(msgspec.MsgspecError):
            result = result_of(receipt)
            if result.complete:
                found.append(result)
    return found


def done_ranges(results: Iterable[CopyResult]) -> dict[LogName, list[Range]]:
    """Ranges that need not be copied again."""
    done: dict[LogName, list[Range]] = {}
    for result in results:
        for each in result.ranges:
            done.setdefault(each.log, []).append(Range(each.lo, each.hi))
    return done


def results_in_plan(plan: Plan, results: Iterable[CopyResult]) -> list[CopyResult]:
    """Earlier results of logs in this plan: a topic may have been deleted or re-created since."""
    logs = {c.log for c in plan.cut}
    return [
        msgspec.structs.replace(
            r,
            ranges=tuple(each for each in r.ranges if each.log in logs),
            segments=tuple(s for s in r.segments if s.log in logs),
        )
        for r in results
    ]


def changed_logs(results: Iterable[CopyResult]) -> list[RangeResult]:
    """Ranges whose log turned out not to be the planned one: to be copied once more, as a new history."""
    return [r for r in _new_history_ranges(results) if r.cause not in _DELETIONS]


def deleted_logs(results: Iterable[CopyResult]) -> list[RangeResult]:
    """Ranges whose topic was deleted meanwhile. What was copied of them may be the only copy left."""
    return [r for r in _new_history_ranges(results) if r.cause in _DELETIONS]


def refuse_unconfirmed_deletions(deleted: Iterable[RangeResult], topics: Iterable[Topic]) -> None:
    """Raise ClusterNotReady if a topic that a broker reported as deleted exists: what was copied can be resumed.

    A broker that has just started may not know a topic yet.
    """
    there = {(t.name, history_of(t)) for t in topics}
    for each in deleted:
        if (each.log.name, topic_id_of(each.log.history)) in there:
            raise ClusterNotReady(
                "a broker did not know the topic for a while, but it exists",
                subject=str(each.log),
                remedy="run again with --resume, which keeps what was copied",
            )


def _new_history_ranges(results: Iterable[CopyResult]) -> Iterator[RangeResult]:
    return (r for result in results for r in result.ranges if r.outcome is CopyOutcome.NEW_HISTORY)


def refuse_failures(results: Iterable[CopyResult]) -> None:
    """Raise for a log that cannot be copied: a topic is never left out silently."""
    for result in results:
        for each in result.ranges:
            if each.outcome is CopyOutcome.DENIED:
                raise NotAuthorised(f"reading is denied: {each.detail}", subject=str(each.log))
            if each.outcome is CopyOutcome.OLD_FORMAT:
                raise BackupFailed(
                    f"it holds messages of a format older than Kafka 0.11: {each.detail}",
                    subject=str(each.log),
                    remedy="rewrite the topic with a current producer, or leave it out with --exclude",
                )


def assemble(plan: Plan, results: Iterable[CopyResult], postponed: Collection[LogName] = ()) -> Assembled:
    """Join the claims of all units and find what is missing; without the logs that are `postponed` to another round."""
    done = list(results)
    joined = [j for j in join_claims(done) if j.log not in postponed]
    deleted = {r.log for r in deleted_logs(done)}
    gaps = [
        KnownGap(j.log, gap.start, gap.end, _DELETED if j.log in deleted else REMOVED_MEANWHILE)
        for j in joined
        for gap in j.gaps
    ]
    reached = {j.log: j.segments[-1].end for j in joined if j.segments}
    last_ranges = _last_ranges(done)
    return Assembled(
        cut=tuple(_whole_batches(c, reached.get(c.log, c.end)) for c in plan.cut if c.log not in postponed),
        segments=tuple(s for j in joined for s in j.segments),
        gaps=(*(gap for gap in plan.gaps if gap.log not in postponed), *gaps),
        findings=(*map(_new_history, plan.new_histories), *_deleted_topic_findings(deleted_logs(done))),
        tips={log: last_run(copied) for log, copied in last_ranges.items()},
        traits=_joined_by_log(done, lambda copied: copied.traits, all_joined),
        last_batches={log: copied.last_batch for log, copied in last_ranges.items()},
        times=_joined_by_log(done, lambda copied: copied.times, all_times),
        retention_ms=_least_retention(done),
        offsets=sum(s.end - s.start for j in joined for s in j.segments),
    )


def _whole_batches(cut: LogCut, reached: int) -> LogCut:
    """The cut, moved to the end of the batch that contains it: the next run must not begin inside a batch.

    Only a log that lost its end and grew again between plan and copy can have a batch there.
    """
    return LogCut(cut.log, cut.start, max(cut.end, reached))


def join_rounds(first: Assembled, second: Assembled) -> Assembled:
    """Two rounds of one backup: the second has the logs that the first postponed."""
    return replace(
        first,
        cut=(*first.cut, *second.cut),
        segments=(*first.segments, *second.segments),
        gaps=(*first.gaps, *second.gaps),
        findings=(*first.findings, *second.findings),
        tips={**first.tips, **second.tips},
        traits={**first.traits, **second.traits},
        last_batches={**first.last_batches, **second.last_batches},
        times={**first.times, **second.times},
        retention_ms={**first.retention_ms, **second.retention_ms},
        offsets=first.offsets + second.offsets,
    )


def changed_log_findings(results: Iterable[RangeResult]) -> list[Finding]:
    """One finding for each log that changed while it was copied, however many units noticed."""
    words = {
        Cause.OTHER_PAST: "the log turned out to have another past",
        Cause.TRUNCATED: "the log lost its end",
        Cause.UNKNOWN_EPOCH: "the log is not the one that was archived",
    }
    return [
        Finding(
            code="new-history",
            severity=Severity.WARNING,
            where=str(log),
            what=f"{words.get(cause, cause)} while the backup ran; earlier backups keep the log as it was",
        )
        for log, cause in {r.log: r.cause for r in results}.items()
    ]


def _deleted_topic_findings(results: Iterable[RangeResult]) -> list[Finding]:
    """One finding for each topic, however many units noticed."""
    words = {
        Cause.DELETED: "the topic was deleted while the backup ran",
        Cause.RECREATED: "the topic was re-created while the backup ran; the next run archives the new one",
    }
    return [
        Finding(
            code="topic-ended",
            severity=Severity.WARNING,
            where=name,
            what=f"{words[cause]}; this backup has the old one as far as it was copied",
        )
        for name, cause in sorted({r.log.name: r.cause for r in results}.items())
    ]


def _new_history(log: LogName) -> Finding:
    """The first history is named by the topic's id alone; one after a lost end has a number as well."""
    lost_its_end = "-" in log.history
    why = "the log lost its end" if lost_its_end else "the topic was deleted and re-created"
    return Finding(
        code="new-history",
        severity=Severity.WARNING if lost_its_end else Severity.NOTE,
        where=str(log),
        what=f"{why} since the last backup; it begins a new history",
    )


def _last_ranges(results: Iterable[CopyResult]) -> dict[LogName, RangeResult]:
    """By log, the range that has its last batch. Logs without batches are left out."""
    found: dict[LogName, RangeResult] = {}
    for each in (r for result in results for r in result.ranges if r.epochs):
        if each.log not in found or last_run(each).end > last_run(found[each.log]).end:
            found[each.log] = each
    return found


def last_run(copied: RangeResult) -> EpochRun:
    return max(copied.epochs, key=lambda run: run.end)


def _least_retention(results: Iterable[CopyResult]) -> dict[LogName, int]:
    found: dict[LogName, int] = {}
    for each in (r for result in results for r in result.ranges if r.retention_ms >= 0):
        found[each.log] = min(each.retention_ms, found.get(each.log, each.retention_ms))
    return found


def _joined_by_log(
    results: Iterable[CopyResult],
    part: Callable[[RangeResult], T | None],
    together: Callable[[Sequence[T | None]], T | None],
) -> dict[LogName, T | None]:
    found: dict[LogName, list[T | None]] = {}
    for each in (r for result in results for r in result.ranges):
        found.setdefault(each.log, []).append(part(each))
    return {log: together(some) for log, some in found.items()}


def exit_code(gaps: int, warnings: int, *, allow_gaps: bool) -> int:
    """21 for data that was lost before it could be archived; 2 if the user accepts that, or there are warnings."""
    if gaps:
        return 2 if allow_gaps else 21
    return 2 if warnings else 0
