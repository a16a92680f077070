"""What the tasks of a restore said, as a receipt keeps it and as people read it. Pure.

Receipts of a Kafka restore in the making. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from logkeep.formats.compare.digest import Digest
from logkeep.formats.run_map.stored import Route, bundle
from logkeep.kafka.restore.facts.units import LogProof, LogResult, ReplayOutcome, SourceResult
from logkeep.kafka.restore.plan.plan import RestorePlan
from logkeep.model.findings import Finding, Severity
from logkeep.model.time import rfc3339
from logkeep.repository.restores import ReceiptDocument, RestoredPartition, RestoreVerdict
from logkeep.repository.restores.stored import StoredRestore


def whole(results: Sequence[LogResult], *, prove: bool) -> bool:
    """Whether every log came back and, if that was asked for, was proven. What was compared all the same must fit."""
    return all(
        r.outcome is ReplayOutcome.DONE and (r.proof.good if r.proof is not None else not prove) for r in results
    )


def map_of(results: Sequence[LogResult]) -> bytes:
    """The maps of all partitions as one object."""
    return bundle(
        {
            Route(source.log.name, source.log.partition, r.topic, r.partition): source.runs
            for r in results
            for source in r.sources
            if source.runs
        }
    )


def partition_rows(plan: RestorePlan, results: Sequence[LogResult]) -> tuple[RestoredPartition, ...]:
    """As a receipt keeps them: one for each archived log that went into a partition, all with the partition's proof."""
    return tuple(
        RestoredPartition(
            source_topic=source.log.name,
            source_partition=source.log.partition,
            topic=r.topic,
            partition=r.partition,
            mode=plan.offsets,
            records=source.records,
            bytes=_bytes(r, source),
            end=r.end,
            archive_digest=r.proof.archive_digest if r.proof else "",
            target_digest=r.proof.target_digest if r.proof else "",
            outcome=_outcome(r),
            detail=r.detail or (r.proof.detail if r.proof else ""),
        )
        for r in results
        for source in r.sources
    )


def _outcome(result: LogResult) -> str:
    """What went wrong first."""
    compared = result.proof is None or result.proof.good
    return result.outcome if result.outcome is not ReplayOutcome.DONE or compared else "proof-failed"


def _bytes(result: LogResult, source: SourceResult) -> int:
    """What came from one log: of several, its share by the number of records."""
    whole = result.proof.bytes if result.proof else result.sent_bytes
    return whole * source.records // result.records if result.others and result.records else whole


_REMEDIES = {
    ReplayOutcome.FOREIGN: "stop whoever writes there; then `kafka restore abort` and restore again",
    ReplayOutcome.MISPLACED: "delete the topic and restore it again",
    ReplayOutcome.FORGOTTEN: "go on with --resume: what is there is compared, and a new producer goes on",
    ReplayOutcome.REFUSED: "the broker's words say why; mend it and go on with --resume",
    ReplayOutcome.DENIED: "grant the permission and go on with --resume",
    ReplayOutcome.DISK_FAILED: "make room on that broker's disk, or repair it (see its server log); start the broker "
    "again, then go on with --resume",
    ReplayOutcome.DAMAGED: "`logkeep verify` shows what is damaged; restore an earlier backup, or leave this topic out",
    ReplayOutcome.GONE: "somebody deleted the topic; begin a new restore",
}


def difference(proof: LogProof) -> str:
    """What a comparison that failed says."""
    at = f" at offset {proof.first_difference}" if proof.first_difference >= 0 else ""
    return f"what is there is not what is archived{at}: {proof.detail or 'digests differ'}"


def result_findings(results: Sequence[LogResult]) -> list[Finding]:
    """What went wrong, partition by partition."""
    return [f for r in results for f in _troubles(r)]


def _retyped(where: str, proof: LogProof | None) -> list[Finding]:
    """Only a broker can write append times: records show the same times, as those of their producers."""
    count = Digest.parse(proof.archive_digest).append_times if proof is not None and proof.archive_digest else 0
    if not count:
        return []
    return [
        Finding(
            code="append-times",
            severity=Severity.NOTE,
            where=where,
            what=f"{count:,} records had the time at which their broker appended them: they show the same times, "
            "and that a producer set them",
        )
    ]


def _troubles(result: LogResult) -> list[Finding]:
    where = f"{result.topic}/{result.partition}"
    if result.outcome is not ReplayOutcome.DONE:
        return [
            Finding(
                code=str(result.outcome),
                severity=Severity.DAMAGE,
                where=where,
                what=result.detail or str(result.outcome),
                remedy=_REMEDIES[result.outcome],
            )
        ]
    if result.proof is None or result.proof.good:
        return _retyped(where, result.proof)
    return [
        Finding(
            code="proof-failed",
            severity=Severity.DAMAGE,
            where=where,
            what=difference(result.proof),
            remedy="find out who else writes to the topic, or whether retention or compaction were at work there",
        )
    ]


@dataclass(frozen=True)
class RunStart:
    """When a run began, and which one it is."""

    moment: datetime
    run: str


def blank_receipt(stored: StoredRestore, began: RunStart, results: Sequence[LogResult]) -> ReceiptDocument:
    """What is known before it is known how all ends: until then it has failed."""
    receipt = stored.draft(RestoreVerdict.FAILED, run=began.run)
    seconds = max((datetime.fromisoformat(receipt.finished) - began.moment).total_seconds(), 1e-3)
    records, sent = sum(r.records for r in results), sum(r.sent_bytes for r in results)
    rates = {"records_per_s": round(records / seconds, 1), "sent_bytes_per_s": round(sent / seconds, 1)}
    return msgspec.structs.replace(receipt, duration_s=seconds, rates=rates)


def ended(receipt: ReceiptDocument, began: RunStart, now: datetime) -> ReceiptDocument:
    """The receipt with the end of this run. A run that only finished another one's work begins where that began."""
    first = min(datetime.fromisoformat(receipt.started), began.moment)
    seconds = max((now - first).total_seconds(), 0.0)
    return msgspec.structs.replace(receipt, finished=rfc3339(now), duration_s=seconds)
