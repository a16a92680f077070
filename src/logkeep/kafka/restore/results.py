"""Task results as receipts and as findings. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from logkeep.formats.compare.digest import Digest
from logkeep.formats.run_map.file_format import Route, bundle
from logkeep.kafka.restore.facts.units import LogProof, LogResult, ReplayOutcome, SourceResult
from logkeep.kafka.restore.plan.values import RestorePlan
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.time import rfc3339
from logkeep.repository.restores import ReceiptDocument, RestoredPartition, RestoreVerdict
from logkeep.repository.restores.stored import StoredRestore


def all_restored(results: Sequence[LogResult], *, prove: bool) -> bool:
    """Whether every log was restored and, with `prove`, compared. A comparison that was made must not differ."""
    return all(
        r.outcome is ReplayOutcome.DONE and (r.proof.good if r.proof is not None else not prove) for r in results
    )


def map_of(results: Sequence[LogResult]) -> bytes:
    """The offset maps of all partitions as one object."""
    return bundle(
        {
            Route(source.log.name, source.log.partition, r.topic, r.partition): source.runs
            for r in results
            for source in r.sources
            if source.runs
        }
    )


def partition_rows(plan: RestorePlan, results: Sequence[LogResult]) -> tuple[RestoredPartition, ...]:
    """Rows of a receipt: one for each archived log of a partition, each with the partition's proof."""
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
    """The outcome of the replay; if that was good, of the proof."""
    compared = result.proof is None or result.proof.good
    return result.outcome if result.outcome is not ReplayOutcome.DONE or compared else "proof-failed"


def _bytes(result: LogResult, source: SourceResult) -> int:
    """The bytes of one log; if the partition has several, its share by the number of records."""
    total = result.proof.bytes if result.proof else result.sent_bytes
    return total * source.records // result.records if result.others and result.records else total


_REMEDIES = {
    ReplayOutcome.FOREIGN: "stop the client that writes there; then `kafka restore abort` and restore again",
    ReplayOutcome.MISPLACED: "delete the topic and restore it again",
    ReplayOutcome.FORGOTTEN: "use --resume: the records there are compared, and a new producer continues",
    ReplayOutcome.REFUSED: "the broker's message gives the reason; fix it and use --resume",
    ReplayOutcome.DENIED: "grant the permission and use --resume",
    ReplayOutcome.DISK_FAILED: "make room on that broker's disk, or repair it (see its server log); start the broker "
    "again, then use --resume",
    ReplayOutcome.DAMAGED: "`logkeep verify` shows what is damaged; restore an earlier backup, or leave this topic out",
    ReplayOutcome.GONE: "the topic was deleted; start a new restore",
}


def difference(proof: LogProof) -> str:
    """The text of a failed comparison."""
    at = f" at offset {proof.first_difference}" if proof.first_difference >= 0 else ""
    return f"the target differs from the archive{at}: {proof.detail or 'digests differ'}"


def result_findings(results: Sequence[LogResult]) -> list[Finding]:
    """Findings of all partitions."""
    return [f for r in results for f in _result_findings(r)]


def _append_times(where: str, proof: LogProof | None) -> list[Finding]:
    """A finding if records had append times. Only a broker can write these: restored records have the same times,
    marked as set by a producer."""
    count = Digest.parse(proof.archive_digest).append_times if proof is not None and proof.archive_digest else 0
    if not count:
        return []
    return [
        Finding(
            code="append-times",
            severity=Severity.NOTE,
            where=where,
            what=f"{plural(count, 'record')} had append times of the broker: the times are the same, marked as set "
            "by a producer",
        )
    ]


def _result_findings(result: LogResult) -> list[Finding]:
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
        return _append_times(where, result.proof)
    return [
        Finding(
            code="proof-failed",
            severity=Severity.DAMAGE,
            where=where,
            what=difference(result.proof),
            remedy="check whether another client writes to the topic, or retention or compaction deleted records",
        )
    ]


@dataclass(frozen=True)
class RunStart:
    """The start time and the token of a run."""

    moment: datetime
    run: str


def blank_receipt(stored: StoredRestore, began: RunStart, results: Sequence[LogResult]) -> ReceiptDocument:
    """A receipt with the verdict FAILED, which holds until the run has ended."""
    receipt = stored.draft(RestoreVerdict.FAILED, run=began.run)
    seconds = max((datetime.fromisoformat(receipt.finished) - began.moment).total_seconds(), 1e-3)
    records, sent = sum(r.records for r in results), sum(r.sent_bytes for r in results)
    rates = {"records_per_s": round(records / seconds, 1), "sent_bytes_per_s": round(sent / seconds, 1)}
    return msgspec.structs.replace(receipt, duration_s=seconds, rates=rates)


def with_end(receipt: ReceiptDocument, began: RunStart, now: datetime) -> ReceiptDocument:
    """The receipt with the end of this run. A run that finishes the work of another one has that one's start time."""
    first = min(datetime.fromisoformat(receipt.started), began.moment)
    seconds = max((now - first).total_seconds(), 0.0)
    return msgspec.structs.replace(receipt, finished=rfc3339(now), duration_s=seconds)
