"""A restore into a running Kafka cluster, as a list of steps.

prepared plan → stored → topics and producers → records and their proof in tasks → a receipt that the records are there
→ groups, final configs, rules, limits → the receipt. Killed anywhere, `resume` goes on from what was stored and from
what the target says of itself. As soon as a receipt says that the records are there, they are never written again:
by then topics have their own configs, and others may write to them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.errors import Locked, TargetUnsafe, UnknownBackup, UsageError
from logkeep.formats.run_map.stored import decode_all
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.backup_view import KIND, KafkaBackupView, view_backup
from logkeep.kafka.restore.finish import There, as_first_found, finish
from logkeep.kafka.restore.plan.plan import RestorePlan, gap_findings
from logkeep.kafka.restore.plan.topics import difference_findings
from logkeep.kafka.restore.prepare import KafkaRestoreOptions, PreparedKafkaRestore
from logkeep.kafka.restore.results import RunStart, blank_receipt, ended, map_of, partition_rows, result_findings, whole
from logkeep.kafka.restore.topics import abort_topics
from logkeep.kafka.restore.write import LogWriting, Written
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, RestoreId
from logkeep.model.ranges import Range
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine, EngineFor
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.restores import (
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
    times_resumed,
    topic_ids,
)
from logkeep.repository.restores.stored import StoredRestore

GOOD = frozenset({RestoreVerdict.PROVEN, RestoreVerdict.UNPROVEN})


@dataclass(frozen=True)
class KafkaRestoreDone:
    """What became of it."""

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
    """A restore that was begun, as its documents tell it."""

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
    def there(self) -> ReceiptDocument | None:
        """The last receipt that says that all records are there."""
        return next((r for r in reversed(self.receipts) if r.records_there), None)

    @property
    def ended_well(self) -> bool:
        return any(r.verdict in GOOD for r in self.receipts)

    @property
    def groups(self) -> tuple[RestoredGroup, ...]:
        """What was set of groups, and where they stood before, by the last receipt that tells."""
        return next((r.groups for r in reversed(self.receipts) if r.groups), ())


@dataclass(frozen=True)
class KafkaRestore:
    """Everything a restore needs besides the plan."""

    place: SourceRef
    state: SourceRef
    """Where the restore's documents go; the repository itself, unless it may only be read."""
    settings: ClientSettings
    clock: Clock
    tokens: TokenSource

    def begin(
        self,
        prepared: PreparedKafkaRestore,
        wish: KafkaRestoreOptions,
        engine: Engine,
        options: Mapping[str, str],
        *,
        drill: bool = False,
        begun: Callable[[RestoreId], None] = lambda _: None,
    ) -> KafkaRestoreDone:
        """Carry out a plan that has no refusals. Raises StoreDenied before anything is changed.

        `begun` is told the id as soon as there is one: whoever is interrupted must know it.
        """
        new = NewRestore(
            backup=prepared.view.entry.id,
            kind=KIND,
            target=RestoreTargetRef(cluster_id=prepared.target.cluster_id),
            body=msgspec.json.encode(prepared.plan),
            options=dict(options),
            drill=drill,
        )
        restore = StoredRestore.begin(self.state, new, self.clock, self.tokens)
        begun(restore.id)
        stored = StoredKafkaRestore(restore, restore.body(RestorePlan), ())
        return self._carry_out(stored, prepared.view, engine, wish.limit_produce, prepared.findings)

    def resume(
        self, stored: StoredKafkaRestore, view: KafkaBackupView, engine_for: EngineFor, limit_produce: int | None = None
    ) -> KafkaRestoreDone:
        """Go on with what was stored. One that has ended well is only proven once more."""
        if stored.document.drill:
            raise UsageError("a drill is not resumed", subject=str(stored.id), remedy="run it again")
        self._refuse_another_cluster(stored.plan)
        if stored.ended_well:
            return self._prove_again(stored, view, engine_for(stored.plan.bytes))
        stored.restore.resume()
        return self._carry_out(
            stored, view, engine_for(stored.plan.bytes), limit_produce, _known_findings(view, stored.plan)
        )

    def abort(self, stored: StoredKafkaRestore) -> AbortedRestore:
        """Give a restore up: topics that it made are deleted, others get their configs back. May be repeated."""
        self.refuse_abort(stored)
        stored.restore.resume()
        with Cluster(self.settings) as cluster:
            deleted, findings = abort_topics(cluster, stored.plan.topics, topic_ids(self.state, stored.id))
        stored.restore.abort("aborted by its user")
        return AbortedRestore(stored.id, stored.plan, tuple(deleted), tuple(findings))

    def refuse_abort(self, stored: StoredKafkaRestore) -> None:
        """A restore that ended well is in use, and one in another cluster is not about the topics here."""
        self._refuse_another_cluster(stored.plan)
        if stored.ended_well:
            raise TargetUnsafe(
                "this restore has ended well: its topics may be in use",
                subject=str(stored.id),
                remedy="delete the topics yourself if that is meant; nothing was changed",
            )

    def stored(self, restore_id: RestoreId, *, aborted_too: bool = False) -> StoredKafkaRestore:
        """A restore by its id. See `StoredRestore.open`."""
        restore = StoredRestore.open(self.state, restore_id, KIND, self.clock, self.tokens, aborted_too=aborted_too)
        return StoredKafkaRestore(restore, restore.body(RestorePlan), tuple(read_receipts(self.state, restore_id)))

    def view(self, stored: StoredKafkaRestore) -> KafkaBackupView:
        """The backup that is being restored. Hold it while it is read."""
        entry = read_chain(self.place).entry(BackupId(stored.document.backup))
        if entry is None:
            raise UnknownBackup(
                f"backup {stored.document.backup}, which is being restored, is not there any more",
                subject=self.place.source,
            )
        return view_backup(self.place, entry)

    def _refuse_another_cluster(self, plan: RestorePlan) -> None:
        """Asked before anything is stored or changed."""
        with Cluster(self.settings) as cluster:
            found = cluster.metadata().cluster_id
        if found != plan.cluster_id:
            raise UsageError(
                f"this restore writes to the cluster {plan.cluster_id}, and this one is {found}",
                remedy="name the brokers of that cluster",
            )

    def _carry_out(
        self,
        stored: StoredKafkaRestore,
        view: KafkaBackupView,
        engine: Engine,
        limit_produce: int | None,
        findings: Sequence[Finding],
    ) -> KafkaRestoreDone:
        began = RunStart(stored.restore.started, self.tokens())  # also when it is resumed
        receipt, told = stored.there, tuple(findings)
        if receipt is None:
            writing = self._writing(stored, view, engine, began, limit_produce)
            written = writing.write() if stored.plan.topics else Written((), {})
            told = (*told, *written.findings, *result_findings(written.results))
            receipt = self._told(stored, began, written, told)
            if not receipt.records_there:
                return self._done(stored, receipt)
        return self._finished(stored, view, began, receipt, told)

    def _told(
        self, stored: StoredKafkaRestore, began: RunStart, written: Written, findings: tuple[Finding, ...]
    ) -> ReceiptDocument:
        """Store what the tasks said, before anything else is changed."""
        good = whole(written.results, prove=stored.plan.prove)
        if not good and any(r.records_there for r in read_receipts(self.state, stored.id)):
            raise Locked("another run has finished this restore meanwhile", subject=str(stored.id))
        receipt = msgspec.structs.replace(
            blank_receipt(stored.restore, began, written.results),
            records_there=good,
            partitions=partition_rows(stored.plan, written.results),
            groups=stored.groups,
            map=put_map(self.state, stored.id, map_of(written.results), self.tokens()),
            findings=findings,
        )
        return stored.restore.put(receipt)

    def _finished(
        self,
        stored: StoredKafkaRestore,
        view: KafkaBackupView,
        began: RunStart,
        receipt: ReceiptDocument,
        findings: tuple[Finding, ...],
    ) -> KafkaRestoreDone:
        producers = newest_producers(self.state, stored.id)
        maps = decode_all(read_map(self.state, stored.id, receipt.map)) if receipt.map else {}
        there = There(dict(producers.topics) if producers else {}, maps)

        def remember(rows: tuple[RestoredGroup, ...]) -> tuple[RestoredGroup, ...]:
            """Killed after this, groups can still be put back to where they stood."""
            first = as_first_found(rows, [r.groups for r in read_receipts(self.state, stored.id)])
            stored.restore.put(msgspec.structs.replace(receipt, groups=first))
            return first

        finished = finish(view, stored.plan, there, self.settings, remember)
        receipt = msgspec.structs.replace(
            ended(receipt, began, self.clock()),
            verdict=RestoreVerdict.FAILED if finished.damaged else _verdict(stored.plan),
            groups=finished.groups or stored.groups,
            findings=(*findings, *finished.findings),
        )
        return self._done(stored, stored.restore.put(receipt))

    def _prove_again(self, stored: StoredKafkaRestore, view: KafkaBackupView, engine: Engine) -> KafkaRestoreDone:
        """Compare once more. What others did to the topics since is found as well; it changes nothing about before:
        a receipt of its own says so, and those of the restore go on to count."""
        began = RunStart(self.clock(), self.tokens())
        last = next(r for r in reversed(stored.receipts) if r.verdict in GOOD)
        ends = {TopicPartition(row.topic, row.partition): row.end for row in last.partitions}
        written = self._writing(stored, view, engine, began, None).prove(ends)
        good = whole(written.results, prove=True)
        receipt = msgspec.structs.replace(
            blank_receipt(stored.restore, began, written.results),
            started=last.started,
            duration_s=last.duration_s,  # nothing was written: the recovery took as long as it took then
            records_there=good,
            verdict=RestoreVerdict.CHANGED if not good else RestoreVerdict.PROVEN if written.results else last.verdict,
            partitions=partition_rows(stored.plan, written.results),
            groups=stored.groups,
            map=last.map,
            findings=tuple(result_findings(written.results)),
        )
        return self._done(stored, stored.restore.put(receipt))

    def _writing(
        self,
        stored: StoredKafkaRestore,
        view: KafkaBackupView,
        engine: Engine,
        began: RunStart,
        limit_produce: int | None,
    ) -> LogWriting:
        resumed = times_resumed(self.state, stored.id)
        return LogWriting(
            stored.id, view, self.state, stored.plan, self.settings, engine, began.run, limit_produce, resumed
        )

    def _done(self, stored: StoredKafkaRestore, receipt: ReceiptDocument) -> KafkaRestoreDone:
        return KafkaRestoreDone(stored.id, BackupId(stored.document.backup), stored.plan, receipt)


def _known_findings(view: KafkaBackupView, plan: RestorePlan) -> list[Finding]:
    """What was said when the restore was planned and still holds."""
    ranges = {log.log: Range(log.start, log.end) for log in plan.logs}
    return [*difference_findings(plan.topics), *gap_findings(view.gaps(ranges))]


def _verdict(plan: RestorePlan) -> RestoreVerdict:
    """Only what was compared is proven."""
    return RestoreVerdict.PROVEN if plan.prove and plan.logs else RestoreVerdict.UNPROVEN
