"""The steps of `kafka restore` to a running cluster.

prepared plan → stored → topics and producers → records and their proof in tasks → a receipt for the records → final
configs, groups, ACLs, quotas → the final receipt. After a kill, `resume` continues from the stored documents and the
state of the target. Once a receipt says that all records are restored, they are never written again: by then topics
have their final configs, and other clients may write to them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from logkeep.errors import (
    ClusterError,
    ClusterNotReady,
    LogkeepError,
    RestoreFailed,
    TargetUnsafe,
    UnknownBackup,
    UsageError,
)
from logkeep.formats.run_map.file_format import decode_all
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.backup_view import KafkaBackupView, view_backup
from logkeep.kafka.record.documents import KIND
from logkeep.kafka.restore.finish import RestoredRecords, finish, with_first_offsets
from logkeep.kafka.restore.plan.findings import gap_findings, tear_findings
from logkeep.kafka.restore.plan.folded_points import folded_since
from logkeep.kafka.restore.plan.groups import NOT_EXACT
from logkeep.kafka.restore.plan.topics import difference_findings
from logkeep.kafka.restore.plan.values import RestorePlan, with_buried
from logkeep.kafka.restore.prepare import KafkaRestoreOptions, PreparedKafkaRestore
from logkeep.kafka.restore.results import (
    RunStart,
    all_restored,
    blank_receipt,
    map_of,
    partition_rows,
    result_findings,
    with_end,
)
from logkeep.kafka.restore.topics import abort_topics
from logkeep.kafka.restore.write import KafkaLogWriter, WriteResult
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, RestoreId
from logkeep.model.ranges import Range
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine, EngineFor
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.restores import (
    WITH_BURIED,
    NewRestore,
    ReceiptDocument,
    RestoredGroup,
    RestorePlanDocument,
    RestoreTargetRef,
    RestoreVerdict,
    newest_producers,
    put_map,
    read_map,
    read_receipts,
    topic_ids,
)
from logkeep.repository.restores.stored import StoredRestore

_LATER_FIELDS = 2
"""The version of a plan document whose body says how small batches are merged, or which transactions a cut tears."""
GOOD = frozenset({RestoreVerdict.PROVEN, RestoreVerdict.UNPROVEN})
_BESIDE_ANOTHER_RUN = frozenset({ClusterError, ClusterNotReady, RestoreFailed})
"""Errors that another run of the same restore may cause: it fences this one's producers, and may recreate a topic."""


@dataclass(frozen=True)
class KafkaRestoreDone:
    """The result of a restore."""

    restore_id: RestoreId
    backup: BackupId
    plan: RestorePlan
    receipt: ReceiptDocument

    @property
    def good(self) -> bool:
        return self.receipt.verdict in GOOD


@dataclass(frozen=True)
class AbortedRestore:
    restore_id: RestoreId
    plan: RestorePlan
    deleted: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class StoredKafkaRestore:
    """The stored documents of a restore."""

    restore: StoredRestore
    plan: RestorePlan
    receipts: tuple[ReceiptDocument, ...]

    @property
    def id(self) -> RestoreId:
        return self.restore.id

    @property
    def document(self) -> RestorePlanDocument:
        return self.restore.plan

    @property
    def records_receipt(self) -> ReceiptDocument | None:
        """The last receipt that says that all records are restored."""
        return next((r for r in reversed(self.receipts) if r.records_there), None)

    @property
    def ended_well(self) -> bool:
        return any(r.verdict in GOOD for r in self.receipts)

    @property
    def groups(self) -> tuple[RestoredGroup, ...]:
        """The group rows of the last receipt that has any."""
        return next((r.groups for r in reversed(self.receipts) if r.groups), ())


@dataclass(frozen=True)
class KafkaRestore:
    """Runs, resumes and aborts restores."""

    place: SourceRef
    state: SourceRef
    """The source for the restore's documents; the repository itself, unless it is read-only."""
    settings: ClientSettings
    clock: Clock
    tokens: TokenSource
    add_records: Callable[[KafkaBackupView, RestorePlan], None] = lambda _view, _plan: None
    """Called when all planned records are there and before groups are set; again when a restore is resumed there."""

    def begin(
        self,
        prepared: PreparedKafkaRestore,
        restore_options: KafkaRestoreOptions,
        engine: Engine,
        options: Mapping[str, str],
        *,
        drill: bool = False,
        begun: Callable[[RestoreId], None] = lambda _: None,
    ) -> KafkaRestoreDone:
        """Carry out a plan that has no refusals. Raises StoreDenied before anything is changed.

        `begun` is called with the id as soon as there is one: the user needs it after an interruption.
        """
        new = NewRestore(
            backup=prepared.view.entry.id,
            kind=KIND,
            target=RestoreTargetRef(cluster_id=prepared.target.cluster_id),
            body=msgspec.json.encode(prepared.plan),
            options=dict(options),
            drill=drill,
            version=_version(prepared.plan),
        )
        restore = StoredRestore.begin(self.state, new, self.clock, self.tokens)
        begun(restore.id)
        stored = StoredKafkaRestore(restore, restore.body(RestorePlan), ())
        return self._carry_out(stored, prepared.view, engine, restore_options.limit_produce, prepared.findings)

    def resume(
        self, stored: StoredKafkaRestore, view: KafkaBackupView, engine_for: EngineFor, limit_produce: int | None = None
    ) -> KafkaRestoreDone:
        """Resume a stored restore. One that was completed is only compared again."""
        if stored.document.drill:
            raise UsageError("a drill is not resumed", subject=str(stored.id), remedy="run it again")
        self._refuse_another_cluster(stored.plan)
        view.refuse_trimmed({log.log: Range(log.start, log.end) for log in stored.plan.logs})
        _refuse_folded_since(stored, view)
        stored = replace(stored, plan=with_buried(stored.plan, view.burials))  # their objects may be joined since
        if stored.ended_well:
            return self._prove_again(stored, view, engine_for(stored.plan.bytes))
        number = stored.restore.resume()
        findings = _known_findings(view, stored.plan)
        return self._carry_out(stored, view, engine_for(stored.plan.bytes), limit_produce, findings, number)

    def abort(self, stored: StoredKafkaRestore) -> AbortedRestore:
        """Abort a restore: delete the topics that it created, and reset the configs of others. May be repeated."""
        self.refuse_abort(stored)
        stored.restore.resume()
        with Cluster(self.settings) as cluster:
            deleted, findings = abort_topics(cluster, stored.plan.topics, topic_ids(self.state, stored.id))
        stored.restore.abort("aborted by its user")
        return AbortedRestore(stored.id, stored.plan, tuple(deleted), tuple(findings))

    def refuse_abort(self, stored: StoredKafkaRestore) -> None:
        """Refuse a restore that was completed, because its topics may be in use, and one to another cluster."""
        self._refuse_another_cluster(stored.plan)
        if stored.ended_well:
            raise TargetUnsafe(
                "this restore was completed: its topics may be in use",
                subject=str(stored.id),
                remedy="delete the topics yourself if that is intended; nothing was changed",
            )

    def stored(self, restore_id: RestoreId, *, aborted_too: bool = False) -> StoredKafkaRestore:
        """A restore by its id. See `StoredRestore.open`."""
        restore = StoredRestore.open(self.state, restore_id, KIND, self.clock, self.tokens, aborted_too=aborted_too)
        return StoredKafkaRestore(restore, restore.body(RestorePlan), tuple(read_receipts(self.state, restore_id)))

    def view(self, stored: StoredKafkaRestore) -> KafkaBackupView:
        """The backup that is being restored. The caller must hold it while it is read."""
        entry = read_chain(self.place).entry(BackupId(stored.document.backup))
        if entry is None:
            raise UnknownBackup(
                f"backup {stored.document.backup}, which is being restored, no longer exists",
                subject=self.place.source,
            )
        return view_backup(self.place, entry)

    def _refuse_another_cluster(self, plan: RestorePlan) -> None:
        """Check the cluster id before anything is stored or changed."""
        with Cluster(self.settings) as cluster:
            found = cluster.metadata().cluster_id
        if found != plan.cluster_id:
            raise UsageError(
                f"this restore writes to cluster {plan.cluster_id}, and this is {found}",
                remedy="name the brokers of that cluster",
            )

    def _carry_out(
        self,
        stored: StoredKafkaRestore,
        view: KafkaBackupView,
        engine: Engine,
        limit_produce: int | None,
        findings: Sequence[Finding],
        resumed: int = 0,
    ) -> KafkaRestoreDone:
        began = RunStart(stored.restore.started, self.tokens())  # the first start, also when it is resumed
        receipt, reported = stored.records_receipt, tuple(findings)
        if receipt is None:
            writer = self._writer(stored, view, engine, began, limit_produce, resumed)
            written = self._write(stored, writer) if stored.plan.topics else WriteResult((), {})
            reported = (*reported, *written.findings, *result_findings(written.results))
            receipt = self._store_results(stored, began, written, reported)
            if not receipt.records_there:
                return self._done(stored, receipt)
        self.add_records(view, stored.plan)
        return self._finish(stored, view, began, receipt, reported)

    def _write(self, stored: StoredKafkaRestore, writer: KafkaLogWriter) -> WriteResult:
        """Two drivers end each other's transactions: what fails then is not a failure of the restore."""
        try:
            return writer.write()
        except LogkeepError as error:
            if type(error) in _BESIDE_ANOTHER_RUN:
                stored.restore.refuse_beside_another_run()
            raise

    def _store_results(
        self, stored: StoredKafkaRestore, began: RunStart, written: WriteResult, findings: tuple[Finding, ...]
    ) -> ReceiptDocument:
        """Store the results of the tasks, before anything else is changed."""
        good = all_restored(written.results, prove=stored.plan.prove)
        if not good:
            stored.restore.refuse_beside_another_run()
        receipt = msgspec.structs.replace(
            blank_receipt(stored.restore, began, written.results),
            records_there=good,
            partitions=partition_rows(stored.plan, written.results),
            groups=stored.groups,
            map=put_map(self.state, stored.id, map_of(written.results), self.tokens()),
            findings=findings,
        )
        return stored.restore.put(receipt)

    def _finish(
        self,
        stored: StoredKafkaRestore,
        view: KafkaBackupView,
        began: RunStart,
        receipt: ReceiptDocument,
        findings: tuple[Finding, ...],
    ) -> KafkaRestoreDone:
        producers = newest_producers(self.state, stored.id)
        maps = decode_all(read_map(self.state, stored.id, receipt.map)) if receipt.map else {}
        there = RestoredRecords(dict(producers.topics) if producers else {}, maps)

        def remember(rows: tuple[RestoredGroup, ...]) -> tuple[RestoredGroup, ...]:
            """Store the earlier offsets first, so that a killed run can be rolled back."""
            first = with_first_offsets(rows, [r.groups for r in read_receipts(self.state, stored.id)])
            stored.restore.put(msgspec.structs.replace(receipt, groups=first))
            return first

        finished = finish(view, stored.plan, there, self.settings, remember)
        receipt = msgspec.structs.replace(
            with_end(receipt, began, self.clock()),
            verdict=RestoreVerdict.FAILED if finished.damaged else _verdict(stored.plan),
            groups=finished.groups or stored.groups,
            # The plan has already said which groups are not exact, before the offsets of records were known.
            findings=(*(f for f in findings if f.code != NOT_EXACT), *finished.findings),
        )
        return self._done(stored, stored.restore.put(receipt))

    def _prove_again(self, stored: StoredKafkaRestore, view: KafkaBackupView, engine: Engine) -> KafkaRestoreDone:
        """Compare the target again. This also finds later changes by other clients: a separate receipt records them,
        and the receipts of the restore stay valid."""
        began = RunStart(self.clock(), self.tokens())
        last = next(r for r in reversed(stored.receipts) if r.verdict in GOOD)
        ends = {TopicPartition(row.topic, row.partition): row.end for row in last.partitions}
        written = self._writer(stored, view, engine, began).prove(ends)
        good = all_restored(written.results, prove=True)
        receipt = msgspec.structs.replace(
            blank_receipt(stored.restore, began, written.results),
            started=last.started,
            duration_s=last.duration_s,  # nothing was written: the duration of the restore itself stays
            records_there=good,
            verdict=RestoreVerdict.CHANGED if not good else RestoreVerdict.PROVEN if written.results else last.verdict,
            partitions=partition_rows(stored.plan, written.results),
            groups=stored.groups,
            map=last.map,
            findings=tuple(result_findings(written.results)),
        )
        return self._done(stored, stored.restore.put(receipt))

    def _writer(
        self,
        stored: StoredKafkaRestore,
        view: KafkaBackupView,
        engine: Engine,
        began: RunStart,
        limit_produce: int | None = None,
        resumed: int = 0,
    ) -> KafkaLogWriter:
        return KafkaLogWriter(
            stored.id, view, self.state, stored.plan, self.settings, engine, began.run, limit_produce, resumed
        )

    def _done(self, stored: StoredKafkaRestore, receipt: ReceiptDocument) -> KafkaRestoreDone:
        return KafkaRestoreDone(stored.id, BackupId(stored.document.backup), stored.plan, receipt)


def _known_findings(view: KafkaBackupView, plan: RestorePlan) -> list[Finding]:
    """Findings of the plan that still hold when it is resumed."""
    ranges = {log.log: Range(log.start, log.end) for log in plan.logs}
    lost = [*gap_findings(view.gaps(ranges)), *view.unproven_deletions(ranges), *view.trim_findings(ranges)]
    return [*tear_findings(plan), *difference_findings(plan.topics), *lost]


def _version(plan: RestorePlan) -> int:
    if plan.buries or any(log.fold for log in plan.logs):
        return WITH_BURIED
    return _LATER_FIELDS if plan.merges or plan.torn else 1


def _verdict(plan: RestorePlan) -> RestoreVerdict:
    """PROVEN only if the records were compared."""
    return RestoreVerdict.PROVEN if plan.prove and plan.logs else RestoreVerdict.UNPROVEN


def _refuse_folded_since(stored: StoredKafkaRestore, view: KafkaBackupView) -> None:
    """A log that was folded since has fewer records than the target may have by now: the two cannot be compared."""
    for log in folded_since(view.folds, stored.plan.logs):
        raise UsageError(
            "this log was folded after the restore had begun, and records that it restored are gone from the archive",
            subject=f"{log.name}/{log.partition}",
            remedy=f"run `logkeep kafka restore abort {stored.id}` and begin again, or leave a restore that was "
            "completed as it is",
        )
