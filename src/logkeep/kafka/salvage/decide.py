"""Decides what is archived of each log on the disks: which range, as which history, and how much is proven. Pure.

A log continues where the last backup of the same topic ended, if the leader epochs on the disk and the last batch that
both have show that it is the same log; otherwise it starts a new history. A disk that has less than the archive adds
nothing, and the archive keeps what it has: the dead broker may have lagged behind.

Proven is what is below the highest high watermark that any broker had stored, what online backups have archived, and
the whole log where the metadata log shows only one replica, because its leader's records are committed. Later records
are archived and marked as unproven.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from uuid import UUID

from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.backup.continuity.past_check import PastVerdict
from logkeep.kafka.backup.findings import undecided_past
from logkeep.kafka.client.fetch import DivergingEpoch
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.scan_results import ReplicaScan
from logkeep.kafka.logs.lost_offset import Cause, LogFacts, LogPosition, explain
from logkeep.kafka.record.documents import PartitionRecord
from logkeep.kafka.record.history_names import topic_id_of
from logkeep.kafka.salvage.replicas import MergedReplicas, merge_replicas
from logkeep.model.findings import Finding, Severity

NOWHERE = DivergingEpoch(-1, -1)


@dataclass(frozen=True)
class FoundLog:
    """One log found on the disks."""

    log: TopicPartition
    topic_id: UUID
    scans: tuple[ReplicaScan, ...]
    high_watermark: int
    replicas: int
    """The number of replicas according to the metadata log; 0: unknown."""
    compacted: bool = True
    """Whether offsets may be missing because the topic is compacted; also true if its configs are unknown."""

    @cached_property
    def choice(self) -> MergedReplicas:
        return merge_replicas(self.scans, compacted=self.compacted)

    @property
    def taken(self) -> ReplicaScan:
        return self.scans[self.choice.replica]


@dataclass(frozen=True)
class LogDecision:
    found: FoundLog
    bounds: LogBounds
    proven_end: int
    cause: Cause
    """Why the log starts a new history, if it does."""
    findings: tuple[Finding, ...]
    ahead: bool
    """Whether the archive has all of the log, or more."""


def epoch_end(scan: ReplicaScan, asked: int) -> DivergingEpoch:
    """What a broker with this disk would answer to OffsetForLeaderEpoch."""
    epochs = sorted(scan.epochs, key=lambda e: e.epoch)
    if asked < 0 or not epochs or asked > epochs[-1].epoch:
        return NOWHERE
    if asked == epochs[-1].epoch:
        return DivergingEpoch(asked, scan.end)
    later = next(e for e in epochs if e.epoch > asked)
    known = [e.epoch for e in epochs if e.epoch <= asked]
    return DivergingEpoch(max(known, default=asked), later.offset)


def decide(found: FoundLog, known: PartitionRecord | None, past: PastVerdict = PastVerdict.SAME) -> LogDecision:
    """`known` is the last backup's record of this log, `past` the comparison of both at the end of the shorter one."""
    if known is not None and past is PastVerdict.OTHER and _older(found.taken, known):
        past = PastVerdict.UNDECIDED
    decided = _decide(found, known, past)
    doubtful = past is PastVerdict.UNDECIDED and not decided.cause.new_history
    if known is None or not doubtful:
        return decided
    return replace(decided, findings=(*decided.findings, undecided_past(known.log)))


def _older(scan: ReplicaScan, known: PartitionRecord) -> bool:
    """Whether the disk may be that of a replica that kept what later leaders did not have: the archive is newer."""
    return scan.end <= known.end and scan.last_epoch < known.last_epoch


def _decide(found: FoundLog, known: PartitionRecord | None, past: PastVerdict) -> LogDecision:
    scan, other = found.taken, past is PastVerdict.OTHER
    same = known is not None and topic_id_of(known.history) == found.topic_id.hex
    fits = known is not None and scan.end <= known.end and scan.last_epoch <= known.last_epoch
    if known is not None and same and fits and not other:
        start = min(max(scan.start, known.start), known.end)
        bounds = LogBounds(start, known.last_stable, known.end, scan.last_epoch)
        proven = max(_archived_proof(known), min(found.high_watermark, known.end))
        notes = (*_notes(found, known.end, ahead=True), *_unproven(found, proven, known.end))
        return LogDecision(found, bounds, proven, Cause.NONE, notes, ahead=True)
    cause = Cause.NONE
    if known is not None and same:
        facts = LogFacts(found.topic_id, scan.start, scan.end, epoch_end(scan, known.last_epoch))
        verdict = explain(LogPosition(found.topic_id, known.end, known.last_epoch, known.last_end), facts)
        cause = verdict.cause if verdict.cause.new_history else Cause.OTHER_PAST if other else Cause.NONE
    continued = known if same and not cause.new_history else None
    start = max(scan.start, continued.start if continued else 0)
    stable = min([scan.end, *(o.first_offset for o in scan.open_since)])
    proven = _proven_end(found, start, _archived_proof(continued) if continued else 0)
    bounds = LogBounds(start, max(stable, start), max(scan.end, start), scan.last_epoch)
    return LogDecision(found, bounds, proven, cause, tuple(_notes(found, proven)), ahead=False)


def _archived_proof(known: PartitionRecord) -> int:
    """The offset up to which an earlier backup knew that the cluster had committed the records."""
    return known.end if known.unproven_from < 0 else known.unproven_from


def _proven_end(found: FoundLog, start: int, archived: int) -> int:
    end = max(found.taken.end, start)
    if found.replicas == 1:
        return end
    return min(max(found.high_watermark, archived, start), end)


def _notes(found: FoundLog, proven: int, *, ahead: bool = False) -> list[Finding]:
    scan, log = found.taken, str(found.log)
    notes = [n for index, each in enumerate(found.scans) for n in _damages(log, each, index == found.choice.replica)]
    notes += [
        _finding("file-left-out", Severity.NOTE, log, f"{each.directory}/{name}: {why}")
        for each in found.scans
        for name, why in each.left_out
    ]
    if ahead:
        if scan.end < proven:
            what = f"the archive has it up to {proven}, these disks only up to {scan.end}: nothing is added"
            notes.append(_finding("archive-ahead", Severity.NOTE, log, what))
        return notes
    notes += _unproven(found, proven, scan.end)
    if found.high_watermark > scan.end:
        what = f"offsets [{scan.end}, {found.high_watermark}) were committed, and these disks have no undamaged copy"
        notes.append(_finding("lost-tail", Severity.WARNING, log, what))
    return notes


def _unproven(found: FoundLog, proven: int, end: int) -> list[Finding]:
    if end <= proven:
        return []
    what = (
        f"offsets [{proven}, {end}) are above the highest known high watermark: they are archived, "
        "but no disk proves that the cluster had committed them"
    )
    return [_finding("unproven-tail", Severity.WARNING, str(found.log), what)]


def _damages(log: str, scan: ReplicaScan, chosen: bool) -> list[Finding]:
    notes = []
    for damage in scan.damages:
        lost = f"offsets {damage.lost} are unreadable there" if damage.lost else "no valid batch follows"
        harmless = damage.harmless
        what = (
            f"{scan.directory}/{damage.file}: {damage.reason} from byte {damage.at_byte} on, at offset {damage.offset}"
        )
        severity = Severity.NOTE if harmless else Severity.WARNING
        code = "zero-tail" if harmless else "damaged" if chosen else "copy-damaged"
        notes.append(_finding(code, severity, log, what if harmless else f"{what}; {lost}"))
    return notes


def _finding(code: str, severity: Severity, where: str, what: str) -> Finding:
    return Finding(code=code, severity=severity, where=where, what=what)
