"""Plan and receipt of an offline restore in the repository: the plan before the first file, the receipt at the end.

The note in each directory is for the next run and stays on the disk; the receipt records what was restored, where,
when, and whether it was read back.
"""

import hashlib

import msgspec

from logkeep.kafka.offline_restore.values import LogWritten, OfflineReport, OfflineRestoreOptions, OfflineRestorePlan
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import NewRestore, RestoredPartition, RestoreTargetRef, RestoreVerdict
from logkeep.repository.restores.stored import StoredRestore

KIND = "kafka-offline"
"""The kind of these restores. They are not resumed by id: the same command continues from what the directories hold."""
_PROOF = "every file was read back: the CRC-32C of each batch, and the fingerprint of what was archived"


class OfflineLog(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    start: int
    end: int
    directory: str


class OfflineBody(msgspec.Struct, frozen=True, kw_only=True):
    """The stored plan."""

    logs: tuple[OfflineLog, ...]


def begin_offline(
    state: SourceRef, options: OfflineRestoreOptions, plan: OfflineRestorePlan, clock: Clock, tokens: TokenSource
) -> StoredRestore:
    """Store the plan, before anything is changed. Raises StoreDenied where nothing may be written."""
    target = RestoreTargetRef(cluster_id=plan.cluster_id, name=", ".join(map(str, options.roots)))
    new = NewRestore(plan.backup, KIND, target, msgspec.json.encode(_body(plan)))
    return StoredRestore.begin(state, new, clock, tokens)


def put_report(stored: StoredRestore, report: OfflineReport) -> None:
    """Store how the run ended."""
    verdict = RestoreVerdict.PROVEN if report.good else RestoreVerdict.FAILED
    files = sum(len(log.files) for log in report.logs)
    facts = {"files": str(files), "proof": _PROOF} if report.good else {"files": str(files)}
    receipt = stored.draft(verdict, report.findings, facts)
    seconds = max(receipt.duration_s, 1e-3)
    rates = {
        "records_per_s": round(report.records / seconds, 1),
        "written_bytes_per_s": round(sum(log.size_bytes for log in report.logs) / seconds, 1),
    }
    stored.put(msgspec.structs.replace(receipt, partitions=tuple(map(row_of, report.logs)), rates=rates))


def row_of(log: LogWritten) -> RestoredPartition:
    """The result of one log as a row of receipts and reports."""
    compared = "" if log.problem else _fingerprint(log)
    return RestoredPartition(
        source_topic=log.log.name,
        source_partition=log.log.partition,
        topic=log.topic,
        partition=log.partition,
        mode="preserve",
        records=log.records,
        bytes=log.size_bytes,
        end=log.end,
        archive_digest=compared,
        target_digest=compared,
        outcome="failed" if log.problem else "done",
        detail=log.problem,
    )


def _fingerprint(log: LogWritten) -> str:
    """The fingerprint of all files of a log, the same for the archive and the files read back."""
    return "files:" + hashlib.sha256("".join(file.fingerprint for file in log.files).encode()).hexdigest()


def _body(plan: OfflineRestorePlan) -> OfflineBody:
    return OfflineBody(
        logs=tuple(
            OfflineLog(
                topic=log.topic, partition=log.partition, start=log.start, end=log.end, directory=str(log.directory)
            )
            for log in plan.logs
        )
    )
