"""A restore into a running Kafka cluster, as a list of steps.

prepared plan → stored → topics and producers → records and their proof in tasks → final configs, groups, rules, limits
→ receipt. Killed anywhere, `resume` goes on from what was stored and from what the target says of itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from logkeep.errors import ObjectMissing, UnknownBackup, UsageError
from logkeep.kafka.cluster import Cluster
from logkeep.kafka.restore.backup_view import KIND, BackupView, view_backup
from logkeep.kafka.restore.finishing import (
    Finished,
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
    RestorePlanDocument,
    Target,
    Verdict,
    begin_restore,
    newest_producers,
    plan_body,
    put_aborted,
    put_map,
    put_receipt,
    read_aborted,
    read_plan,
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
        """Go on with what was stored. A restore that was given up is refused."""
        document, plan = self._stored(restore_id)
        view = self._view(document)
        engine = engine_for(plan.bytes)
        return self._carry_out(document, view, plan, engine, limit_produce, ())

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
        started = self.clock()
        restore_id, run = RestoreId(document.restore), self.tokens()
        with Cluster(self.settings) as cluster:
            self._refuse_another_cluster(cluster, plan)
        writing = LogWriting(restore_id, view, self.state, plan, self.settings, engine, run, limit_produce)
        written = writing.write() if plan.topics else Written((), {})
        good = whole(written.results, prove=plan.prove)
        finished = finish(view, plan, written, self.settings) if good else Finished()
        finished = replace(
            finished,
            findings=(*findings, *written.findings, *result_findings(written.results), *finished.findings),
        )
        ended = self.clock()
        seconds = max((ended - started).total_seconds(), 1e-3)
        receipt = ReceiptDocument(
            repository=self.state.repository,
            source=self.state.source,
            restore=restore_id,
            number=FIRST,
            backup=document.backup,
            drill=document.drill,
            verdict=_verdict(plan, good=good),
            owner=this_process(run),
            started=rfc3339(started),
            finished=rfc3339(ended),
            duration_s=seconds,
            target=document.target,
            partitions=partition_rows(plan, written.results),
            groups=finished.groups,
            map=put_map(self.state, restore_id, map_of(written.results), self.tokens()),
            findings=finished.findings,
            rates=_rates(written.results, seconds),
        )
        receipt = put_receipt(self.state, receipt)
        return Done(restore_id, BackupId(document.backup), plan, written.results, receipt)


def _verdict(plan: RestorePlan, *, good: bool) -> Verdict:
    if not good:
        return Verdict.FAILED
    return Verdict.PROVEN if plan.prove else Verdict.UNPROVEN


def _rates(results: Sequence[LogResult], seconds: float) -> dict[str, float]:
    records, sent = sum(r.records for r in results), sum(r.sent_bytes for r in results)
    return {"records_per_s": round(records / seconds, 1), "sent_bytes_per_s": round(sent / seconds, 1)}
