"""Plan and receipt of an offline restore in the repository: the plan before the first file, the receipt at the end.

The note in each directory is for the next run and stays on the disk; the receipt records what was restored, where,
when, and whether it was read back.
"""

import hashlib
from datetime import datetime

import msgspec

from logkeep.kafka.offline_restore.values import LogWritten, OfflineReport, OfflineRestoreOptions, OfflineRestorePlan
from logkeep.model.findings import Finding
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process
from logkeep.repository.restores import (
    FIRST,
    NewRestore,
    ReceiptDocument,
    RestoredPartition,
    RestoreTargetRef,
    RestoreVerdict,
    begin_restore,
    put_receipt,
)

KIND = "kafka-offline"
"""Not resumed by its id: the same command continues from the state of the directories."""
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


class OfflineReceipt:
    """The receipt of one run. Raises StoreDenied before anything is changed if it cannot be stored."""

    def __init__(
        self,
        state: SourceRef,
        options: OfflineRestoreOptions,
        plan: OfflineRestorePlan,
        clock: Clock,
        tokens: TokenSource,
    ) -> None:
        self._state, self._clock, self._run = state, clock, tokens()
        self._target = RestoreTargetRef(cluster_id=plan.cluster_id, name=", ".join(map(str, options.roots)))
        self._backup, self._began = plan.backup, clock()
        new = NewRestore(plan.backup, KIND, self._target, msgspec.json.encode(_body(plan)))
        self.id = begin_restore(state, new, clock, tokens)

    def done(self, report: OfflineReport) -> None:
        verdict = RestoreVerdict.PROVEN if report.good else RestoreVerdict.FAILED
        rows, size = tuple(row_of(log) for log in report.logs), sum(log.size_bytes for log in report.logs)
        files = sum(len(log.files) for log in report.logs)
        seconds = max((self._clock() - self._began).total_seconds(), 1e-3)
        rates = {"records_per_s": report.records / seconds, "written_bytes_per_s": size / seconds}
        receipt = msgspec.structs.replace(
            self._blank(verdict, report.findings),
            records_there=report.good,
            partitions=rows,
            rates={name: round(rate, 1) for name, rate in rates.items()},
            facts={"files": str(files), "proof": _PROOF} if report.good else {"files": str(files)},
        )
        put_receipt(self._state, receipt)

    def failed(self, finding: Finding) -> None:
        put_receipt(self._state, self._blank(RestoreVerdict.FAILED, (finding,)))

    def _blank(self, verdict: RestoreVerdict, findings: tuple[Finding, ...]) -> ReceiptDocument:
        now: datetime = self._clock()
        return ReceiptDocument(
            repository=self._state.repository,
            source=self._state.source,
            restore=self.id,
            number=FIRST,
            backup=self._backup,
            drill=False,
            verdict=verdict,
            owner=this_process(self._run),
            started=rfc3339(self._began),
            finished=rfc3339(now),
            duration_s=max((now - self._began).total_seconds(), 0.0),
            target=self._target,
            findings=findings,
        )


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
