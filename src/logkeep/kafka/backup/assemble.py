"""What all copied units together make: segments whose claims tile the cut, gaps, findings. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import msgspec

from logkeep.errors import BackupFailed, ClusterNotReady, NotAuthorised
from logkeep.kafka.backup.claims import join
from logkeep.kafka.backup.plan import Plan, history_of
from logkeep.kafka.backup.units import CopyOutcome, CopyResult, RangeResult, result_of
from logkeep.kafka.client.topology import Topic
from logkeep.kafka.logs.batch_traits import LogTraits, all_joined
from logkeep.kafka.logs.leader_epochs import EpochRun
from logkeep.kafka.logs.lost_offset import Cause
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.journal import UnitReceipt
from logkeep.repository.backups.manifest import KnownGap, LogCut

_ENDED = (Cause.DELETED, Cause.RECREATED)
_RETENTION = "retention removed it while the backup ran"
_DELETED = "the topic was deleted before it was copied"


@dataclass(frozen=True)
class Assembled:
    """Ready to be completed."""

    cut: tuple[LogCut, ...]
    segments: tuple[Segment, ...]
    gaps: tuple[KnownGap, ...]
    findings: tuple[Finding, ...]
    tips: Mapping[LogName, EpochRun]
    """Leader epoch and end of the last batch that was copied, by log."""
    traits: Mapping[LogName, LogTraits | None] = field(default_factory=dict)
    """Of what was copied, by log; None when a part of it is not known."""
    offsets: int = 0
    """Positions that the segments answer for."""


def earlier_results(receipts: Iterable[UnitReceipt]) -> list[CopyResult]:
    """What an interrupted run had finished. Only whole ranges count; a note that is not ours counts for nothing."""
    found = []
    for receipt in receipts:
        with suppress(msgspec.MsgspecError):
            result = result_of(receipt)
            if result.complete:
                found.append(result)
    return found


def done_ranges(results: Iterable[CopyResult]) -> dict[LogName, list[Range]]:
    """The ranges that need not be copied again."""
    done: dict[LogName, list[Range]] = {}
    for result in results:
        for each in result.ranges:
            done.setdefault(each.log, []).append(Range(each.lo, each.hi))
    return done


def within(plan: Plan, results: Iterable[CopyResult]) -> list[CopyResult]:
    """Earlier results as far as they belong to logs of this plan: a topic may be gone, or be another one by now."""
    logs = {c.log for c in plan.cut}
    return [
        msgspec.structs.replace(
            r,
            ranges=tuple(each for each in r.ranges if each.log in logs),
            segments=tuple(s for s in r.segments if s.log in logs),
        )
        for r in results
    ]


def left_logs(results: Iterable[CopyResult]) -> list[RangeResult]:
    """Ranges whose log turned out to have another past than planned: to be copied once more, as a new history."""
    return [r for r in _changed(results) if r.cause not in _ENDED]


def ended_logs(results: Iterable[CopyResult]) -> list[RangeResult]:
    """Ranges whose topic was deleted meanwhile. What was copied of them may be all that is left in the world."""
    return [r for r in _changed(results) if r.cause in _ENDED]


def refuse_hearsay(ended: Iterable[RangeResult], topics: Iterable[Topic]) -> None:
    """A broker that has just started may not know a topic yet. If it is there after all, nothing was deleted.

    Raises ClusterNotReady: what was copied is kept for a resumed run.
    """
    there = {(t.name, history_of(t)) for t in topics}
    for each in ended:
        if (each.log.name, each.log.history.partition("-")[0]) in there:
            raise ClusterNotReady(
                "a broker did not know the topic for a while, and it is there",
                subject=str(each.log),
                remedy="run again with --resume, which keeps what was copied",
            )


def _changed(results: Iterable[CopyResult]) -> Iterator[RangeResult]:
    return (r for result in results for r in result.ranges if r.outcome is CopyOutcome.NEW_HISTORY)


def refuse_failures(results: Iterable[CopyResult]) -> None:
    """A log that cannot be copied fails the backup: a topic is never left out silently."""
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


def assemble(plan: Plan, results: Iterable[CopyResult], left: Collection[LogName] = ()) -> Assembled:
    """Join the claims of all units and say what is missing; without the logs that are `left` to another round."""
    done = list(results)
    joined = [j for j in join(done) if j.log not in left]
    ended = {r.log for r in ended_logs(done)}
    gaps = [
        KnownGap(j.log, gap.start, gap.end, _DELETED if j.log in ended else _RETENTION)
        for j in joined
        for gap in j.gaps
    ]
    reached = {j.log: j.segments[-1].end for j in joined if j.segments}
    return Assembled(
        cut=tuple(_whole_batches(c, reached.get(c.log, c.end)) for c in plan.cut if c.log not in left),
        segments=tuple(s for j in joined for s in j.segments),
        gaps=(*plan.gaps, *gaps),
        findings=(*map(_new_history, plan.new_histories), *_told_ended(ended_logs(done))),
        tips=_tips(done),
        traits=_traits(done),
        offsets=sum(s.end - s.start for j in joined for s in j.segments),
    )


def _whole_batches(cut: LogCut, reached: int) -> LogCut:
    """A log that lost its end and grew again between the look and the copy may have a batch where it was to be cut.

    Batches are archived whole, so the cut moves behind it: the next run must not begin inside of one.
    """
    return LogCut(cut.log, cut.start, max(cut.end, reached))


def together(first: Assembled, second: Assembled) -> Assembled:
    """Two rounds of one backup: the second has the logs that the first had to leave."""
    return replace(
        first,
        cut=(*first.cut, *second.cut),
        segments=(*first.segments, *second.segments),
        gaps=(*first.gaps, *second.gaps),
        findings=(*first.findings, *second.findings),
        tips={**first.tips, **second.tips},
        traits={**first.traits, **second.traits},
        offsets=first.offsets + second.offsets,
    )


def why_left(results: Iterable[RangeResult]) -> list[Finding]:
    """Tell the user that a log became another one while it was copied; once, however many units found out."""
    words = {
        Cause.TRUNCATED: "the log lost its end",
        Cause.UNKNOWN_EPOCH: "the log is another one than the one that was archived",
    }
    return [
        Finding(
            code="new-history",
            severity=Severity.WARNING,
            where=str(log),
            what=f"{words.get(cause, cause)} while the backup ran; earlier backups keep what it was",
        )
        for log, cause in {r.log: r.cause for r in results}.items()
    ]


def _told_ended(results: Iterable[RangeResult]) -> list[Finding]:
    """Once per topic, however many units found out."""
    words = {
        Cause.DELETED: "the topic was deleted while the backup ran",
        Cause.RECREATED: "the topic was deleted and made again while the backup ran; the next run archives the new one",
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
    """A first history is named by the topic's id alone, one after a lost end has a number behind it."""
    lost_its_end = "-" in log.history
    why = "the log lost its end" if lost_its_end else "the topic was deleted and made again"
    return Finding(
        code="new-history",
        severity=Severity.WARNING if lost_its_end else Severity.NOTE,
        where=str(log),
        what=f"{why} since the last backup; it begins a new history",
    )


def _tips(results: Iterable[CopyResult]) -> dict[LogName, EpochRun]:
    tips: dict[LogName, EpochRun] = {}
    for each in (r for result in results for r in result.ranges if r.epochs):
        last = max(each.epochs, key=lambda run: run.end)
        if each.log not in tips or last.end > tips[each.log].end:
            tips[each.log] = last
    return tips


def _traits(results: Iterable[CopyResult]) -> dict[LogName, LogTraits | None]:
    found: dict[LogName, list[LogTraits | None]] = {}
    for result in results:
        for each in result.ranges:
            found.setdefault(each.log, []).append(each.traits)
    return {log: all_joined(some) for log, some in found.items()}


def exit_code(gaps: int, warnings: int, *, allow_gaps: bool) -> int:
    """21 for data that was lost before it could be archived; 2 when that is accepted, or something deserves a look."""
    if gaps:
        return 2 if allow_gaps else 21
    return 2 if warnings else 0
