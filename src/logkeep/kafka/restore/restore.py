"""A restore into a running Kafka cluster, as a list of steps.

prepared plan → stored → topics and producers → records and their proof in tasks → final configs, groups, rules, limits
→ receipt. Killed anywhere, `resume` goes on from what was stored and from what the target says of itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from logkeep.errors import ObjectMissing, UnknownBackup, UsageError
from logkeep.kafka.cluster import Cluster
from logkeep.kafka.restore.backup_view import KIND, BackupView, view_backup
from logkeep.kafka.restore.finishing import (
    Finished,
    as_first_found,
    finish,
    map_of,
    partition_rows,
    result_findings,
    whole,
)
from logkeep.kafka.restore.plan import RestorePlan
from logkeep.kafka.restore.preparing import Prepared, RestoreWish
from logkeep.kafka.restore.topics import abort_topics
from logkeep.kafka.restore.units import LogResult
from logkeep.kafka.restore.writing_logs import LogWriting, Written
from logkeep.kafka.settings import ClientSettings
from logkeep.kafka.values import TopicPartition
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, RestoreId
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.model.work import Engine, EngineFor
from logkeep.repository.chain import Place, read_chain
from logkeep.repository.owner import this_process
from logkeep.repository.restores import (
    FIRST,
    NewRestore,
    ReceiptDocument,
    RestoredGroup,
    RestorePlanDocument,
    Target,
    Verdict,
    begin_restore,
    newest_producers,
    newest_receipt,
    plan_body,
    put_aborted,
    put_map,
    put_receipt,
    read_aborted,
    read_plan,
    read_receipts,
)


@dataclass(frozen=True)
class Done:
    """What became of it."""

    restore_id: RestoreId
    backup: BackupId
    plan: RestorePlan
    results: tuple[LogResult, ...]
    receipt: ReceiptDocument

    @property
    def good(self) -> bool:
        return self.receipt.verdict in {Verdict.PROVEN, Verdict.UNPROVEN}


@dataclass(frozen=True)
class Aborted:
    restore_id: RestoreId
    plan: RestorePlan
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class KafkaRestore:
    """Everything a restore needs besides the plan."""

    place: Place
    state: Place
    """Where the restore's documents go; the repository itself, unless it may only be read."""
    settings: ClientSettings
    clock: Clock
    tokens: TokenSource

    def begin(
        self, prepared: Prepared, wish: RestoreWish, engine: Engine, options: Mapping[str, str], *, drill: bool = False
    ) -> Done:
        """Carry out a plan that has no refusals. Raises StoreDenied before anything is changed."""
        new = NewRestore(
            backup=prepared.view.entry.id,
            kind=KIND,
            target=Target(cluster_id=prepared.target.cluster_id),
            body=msgspec.json.encode(prepared.plan),
            options=dict(options),
            drill=drill,
        )
        restore_id = begin_restore(self.state, new, self.clock, self.tokens)
        document = read_plan(self.state, restore_id)
        return self._carry_out(document, prepared.view, prepared.plan, engine, wish.limit_produce, prepared.findings)

    def resume(self, restore_id: RestoreId, engine_for: EngineFor, limit_produce: int | None = None) -> Done:
        """Go on with what was stored. One that has ended well is only proven once more; one given up is refused."""
        document, plan = self._stored(restore_id)
        view = self._view(document)
        last = newest_receipt(self.state, restore_id)
        if last is not None and last.verdict in {Verdict.PROVEN, Verdict.UNPROVEN}:
            return self._prove_again(document, view, plan, last, engine_for(plan.bytes))
        return self._carry_out(document, view, plan, engine_for(plan.bytes), limit_produce, ())

    def abort(self, restore_id: RestoreId, *, pretend: bool = False) -> Aborted:
        """Give a restore up: topics that it made are deleted, others get their configs back."""
        document, plan = self._stored(restore_id)
        if pretend:
            return Aborted(restore_id, plan, ())
        stored = newest_producers(self.state, restore_id)
        ids = {row.topic: row.topic_id for row in stored.producers} if stored else {}
        with Cluster(self.settings) as cluster:
            self._refuse_another_cluster(cluster, plan)
            findings = abort_topics(cluster, plan.topics, ids)
        put_aborted(self.state, document, "given up by its user", self.clock, self.tokens)
        return Aborted(restore_id, plan, tuple(findings))

    def _stored(self, restore_id: RestoreId) -> tuple[RestorePlanDocument, RestorePlan]:
        try:
            document = read_plan(self.state, restore_id)
        except ObjectMissing:
            raise UnknownBackup(
                f"no restore has the id {restore_id}",
                subject=self.place.source,
                remedy="`logkeep receipts list` shows the restores there are",
            ) from None
        if read_aborted(self.state, restore_id) is not None:
            raise UsageError(
                "this restore was given up and cannot go on", subject=str(restore_id), remedy="begin a new one"
            )
        return document, plan_body(document, RestorePlan)

    def _view(self, document: RestorePlanDocument) -> BackupView:
        entry = read_chain(self.place).entry(BackupId(document.backup))
        if entry is None:
            raise UnknownBackup(
                f"backup {document.backup}, which is being restored, is not there any more", subject=self.place.source
            )
        return view_backup(self.place, entry)

    def _refuse_another_cluster(self, cluster: Cluster, plan: RestorePlan) -> None:
        found = cluster.metadata().cluster_id
        if found != plan.cluster_id:
            raise UsageError(
                f"this restore writes to the cluster {plan.cluster_id}, and this one is {found}",
                remedy="name the brokers of that cluster",
            )

    def _carry_out(
        self,
        document: RestorePlanDocument,
        view: BackupView,
        plan: RestorePlan,
        engine: Engine,
        limit_produce: int | None,
        findings: Sequence[Finding],
    ) -> Done:
        began = _Began(self.clock(), self.tokens())
        writing = self._writing(document, view, plan, engine, began, limit_produce)
        written = writing.write() if plan.topics else Written((), {})
        good = whole(written.results, prove=plan.prove)
        told = (*findings, *written.findings, *result_findings(written.results))
        stored = put_map(self.state, writing.restore_id, map_of(written.results), self.tokens())
        receipt = msgspec.structs.replace(
            self._receipt(document, began, written.results),
            partitions=partition_rows(plan, written.results),
            map=stored,
            findings=told,
        )
        finished = Finished()
        if good:
            finished = finish(view, plan, written, self.settings, lambda rows: self._remember(receipt, rows))
        receipt = msgspec.structs.replace(
            receipt,
            verdict=_verdict(plan, good=good),
            groups=finished.groups,
            findings=(*told, *finished.findings),
            **self._times(began),
        )
        receipt = put_receipt(self.state, receipt)
        return Done(writing.restore_id, BackupId(document.backup), plan, written.results, receipt)

    def _prove_again(
        self, document: RestorePlanDocument, view: BackupView, plan: RestorePlan, last: ReceiptDocument, engine: Engine
    ) -> Done:
        began = _Began(self.clock(), self.tokens())
        ends = {TopicPartition(row.topic, row.partition): row.end for row in last.partitions}
        written = self._writing(document, view, plan, engine, began, None).prove(ends)
        receipt = msgspec.structs.replace(
            self._receipt(document, began, written.results),
            verdict=Verdict.PROVEN if whole(written.results, prove=True) else Verdict.FAILED,
            partitions=partition_rows(plan, written.results),
            groups=last.groups,
            map=last.map,
            findings=tuple(result_findings(written.results)),
            **self._times(began),
        )
        receipt = put_receipt(self.state, receipt)
        return Done(RestoreId(document.restore), BackupId(document.backup), plan, written.results, receipt)

    def _writing(
        self,
        document: RestorePlanDocument,
        view: BackupView,
        plan: RestorePlan,
        engine: Engine,
        began: "_Began",
        limit_produce: int | None,
    ) -> LogWriting:
        with Cluster(self.settings) as cluster:
            self._refuse_another_cluster(cluster, plan)
        restore_id = RestoreId(document.restore)
        return LogWriting(restore_id, view, self.state, plan, self.settings, engine, began.run, limit_produce)

    def _receipt(self, document: RestorePlanDocument, began: "_Began", results: Sequence[LogResult]) -> ReceiptDocument:
        """What is known of a receipt before it is known how all ends: until then it has failed."""
        seconds = max((self.clock() - began.moment).total_seconds(), 1e-3)
        return ReceiptDocument(
            repository=self.state.repository,
            source=self.state.source,
            restore=document.restore,
            number=FIRST,
            backup=document.backup,
            drill=document.drill,
            verdict=Verdict.FAILED,
            owner=this_process(began.run),
            target=document.target,
            rates=_rates(results, seconds),
            **self._times(began),
        )

    def _times(self, began: "_Began") -> dict[str, Any]:
        now = self.clock()
        seconds = max((now - began.moment).total_seconds(), 0.0)
        return {"started": rfc3339(began.moment), "finished": rfc3339(now), "duration_s": seconds}

    def _remember(self, receipt: ReceiptDocument, rows: tuple[RestoredGroup, ...]) -> tuple[RestoredGroup, ...]:
        """Store where groups stood before they are moved: a run that is killed then can still be rolled back."""
        earlier = [each.groups for each in read_receipts(self.state, RestoreId(receipt.restore))]
        first = as_first_found(rows, earlier)
        if first:
            put_receipt(self.state, msgspec.structs.replace(receipt, groups=first))
        return first


@dataclass(frozen=True)
class _Began:
    """When a run began, and which one it is."""

    moment: datetime
    run: str


def _verdict(plan: RestorePlan, *, good: bool) -> Verdict:
    if not good:
        return Verdict.FAILED
    return Verdict.PROVEN if plan.prove else Verdict.UNPROVEN


def _rates(results: Sequence[LogResult], seconds: float) -> dict[str, float]:
    records, sent = sum(r.records for r in results), sum(r.sent_bytes for r in results)
    return {"records_per_s": round(records / seconds, 1), "sent_bytes_per_s": round(sent / seconds, 1)}
