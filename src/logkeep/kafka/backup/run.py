"""A backup of a Kafka cluster, as a list of steps.

facts → plan → copy in tasks → a second round for logs that became others → parts, record, manifest → commit.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from logkeep.errors import BackupFailed, TopicMissing
from logkeep.kafka.admin.offsets import EpochEnd, offset_for_leader_epoch
from logkeep.kafka.backup.assemble import (
    Assembled,
    assemble,
    done_ranges,
    earlier_results,
    ended_logs,
    left_logs,
    refuse_failures,
    refuse_hearsay,
    together,
    why_left,
    within,
)
from logkeep.kafka.backup.copy_task import copy_ranges
from logkeep.kafka.backup.facts import Facts, gather
from logkeep.kafka.backup.findings import gone_topics, notices, on_damage
from logkeep.kafka.backup.history_check import Broken, begun_since, broken_logs, changed_meanwhile, standing
from logkeep.kafka.backup.plan import Plan, next_history, plan_backup, refuse_to_forget, same_topic
from logkeep.kafka.backup.record_builder import acls_of, groups_of, logs_of, quotas_of, topics_of
from logkeep.kafka.backup.units import DEFAULT_SEGMENT_BYTES, CopyResult, CopyUnit, RangeResult
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.rate_limit import share
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.record.documents import (
    ROLE,
    ArchivedReach,
    ClusterRecord,
    PartitionRecord,
    check_consistent,
    reached_in,
    same_cluster,
)
from logkeep.kafka.record.scram import ScramWish, SealedScram, collect, left_out, probe, put_sealed
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine, EngineFor
from logkeep.repository.backups.attachments import put_attachment, read_attachment
from logkeep.repository.backups.backup import FinishedRun, OngoingBackup, begin, check_wanted, resume
from logkeep.repository.backups.journal import open_ids
from logkeep.repository.backups.manifest import KnownGap
from logkeep.repository.backups.source import check_source, ensure_source, read_manifest
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.format import ZSTD_FRAMES, require_feature
from logkeep.repository.chain.write_session import Writing, writing
from logkeep.repository.resume import usable_receipts
from logkeep.store.throttled import shared_by

KIND = "kafka"
_LOOKS_AT_TOPICS = 10
"""Each look takes well under a second: only who deletes topics all the time would need more."""


@dataclass(frozen=True)
class KafkaBackupOptions:
    """What the user asked for."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    internal: bool = False
    wanted_id: BackupId | None = None
    resume: bool = False
    tags: tuple[str, ...] = ()
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    compression: Codec = Codec.NONE
    limit_download: int | None = None
    """Bytes per second from all brokers to all tasks together."""
    lease_ttl: timedelta = timedelta(minutes=5)
    scram: ScramWish | None = None


@dataclass(frozen=True)
class PreviousBackup:
    """The backup that a run goes on from, read once."""

    entry: BackupEntry | None = None
    findings: tuple[Finding, ...] = ()
    record: ClusterRecord | None = None

    @cached_property
    def reached(self) -> dict[TopicPartition, ArchivedReach]:
        return reached_in(self.record) if self.record is not None else {}


@dataclass(frozen=True)
class PreparedBackup:
    """What a run would do."""

    facts: Facts
    plan: Plan
    findings: tuple[Finding, ...]
    """Those that are known before anything is copied."""
    generation: int
    """Of the chain that it was planned on."""
    base: PreviousBackup


@dataclass(frozen=True)
class KafkaBackupDone:
    """What became of it."""

    entry: BackupEntry
    facts: Facts
    plan: Plan
    gaps: tuple[KnownGap, ...]
    findings: tuple[Finding, ...]
    logs: tuple[PartitionRecord, ...]
    offsets: int = 0
    """How many are new in it, with those that an interrupted run had copied."""
    changed: bool = True
    """False: nothing was committed, because `entry` still says all there is to say."""


@dataclass(frozen=True)
class KafkaBackup:
    """Everything a backup needs besides the wish."""

    place: SourceRef
    settings: ClientSettings
    clock: Clock
    tokens: TokenSource

    def prepare(self, wish: KafkaBackupOptions) -> PreparedBackup:
        """What a run would copy now. Writes nothing, and refuses what a run would have to refuse."""
        folded = read_chain(self.place)
        check_wanted(wish.wanted_id, folded.last_id)
        facts = self._gather(wish)
        check_source(self.place, KIND, _identity(facts))
        base = self._newest(folded)
        refuse_to_forget(facts.topics, base.reached)
        if wish.scram is not None:
            probe(wish.scram, self.settings)
        plan, broken = self._plan(facts, base.reached)
        foreseen = (*assemble(plan, ()).findings, *_new_histories(broken), *groups_of(facts)[1])
        findings = (*foreseen, *notices(facts), *gone_topics(base.reached, facts))
        return PreparedBackup(facts, plan, findings, folded.generation, base)

    def run(self, wish: KafkaBackupOptions, engine: Engine, prepared: PreparedBackup | None = None) -> KafkaBackupDone:
        """Take the backup. Raises the cluster's and the store's errors; earlier backups are untouched by any.

        What was prepared is used if no other run came between: the cluster need not be asked twice.
        """
        with writing(self.place, "backup", self.clock, self.tokens, wish.lease_ttl) as session:
            if prepared is not None and prepared.generation == session.folded.generation:
                return self._run(session, prepared.facts, prepared.base, wish, engine)
            return self._run(session, self._gather(wish), self._newest(session.folded), wish, engine)

    def run_if_changed(self, wish: KafkaBackupOptions, engine_for: EngineFor) -> KafkaBackupDone:
        """The same, unless the last backup still equals the cluster: then nothing is written but the lease."""
        with writing(self.place, "backup", self.clock, self.tokens, wish.lease_ttl) as session:
            facts, base = self._gather(wish), self._newest(session.folded)
            plan, same = self._look(session, facts, base)
            return same or self._run(session, facts, base, wish, engine_for(plan.size_bytes))

    def _run(
        self, session: Writing, facts: Facts, base: PreviousBackup, wish: KafkaBackupOptions, engine: Engine
    ) -> KafkaBackupDone:
        refuse_to_forget(facts.topics, base.reached)
        scram = collect(wish.scram, self.settings) if wish.scram is not None else None
        ongoing = self._begin(session, facts, wish)
        if wish.compression is Codec.ZSTD:
            require_feature(self.place.store, ZSTD_FRAMES)
        if ongoing.base != base.entry:
            base = self._read_base(ongoing.base)  # a resumed run goes on from where it began
        earlier = earlier_results(usable_receipts(session, ongoing, engine).values())
        plan, broken = self._plan(facts, base.reached, earlier)
        assembled, facts = self._copy(ongoing, facts, plan, base.reached, earlier, wish, engine)
        assembled = replace(assembled, findings=(*assembled.findings, *_new_histories(broken)))
        return self._complete(session, ongoing, facts, plan, base.reached, assembled, scram)

    def _look(self, session: Writing, facts: Facts, base: PreviousBackup) -> tuple[Plan, KafkaBackupDone | None]:
        """What is to be copied, and the last backup if it says all of it already."""
        plan, broken = self._plan(facts, base.reached)
        if base.entry is None or broken or not plan.empty or open_ids(self.place, session.folded.last_id):
            return plan, None
        record, findings = self._record(base.entry.id, base.reached, facts, assemble(plan, ()))
        if base.record is None or not same_cluster(base.record, record) or not set(findings) <= set(base.findings):
            return plan, None
        return plan, KafkaBackupDone(base.entry, facts, plan, (), (), record.logs, changed=False)

    def _gather(self, wish: KafkaBackupOptions) -> Facts:
        """All facts; asked from the beginning again when a topic is deleted between two questions."""
        with Cluster(self.settings) as cluster:
            for _ in range(_LOOKS_AT_TOPICS - 1):
                with suppress(TopicMissing):
                    return self._facts(cluster, wish)
            return self._facts(cluster, wish)

    def _facts(self, cluster: Cluster, wish: KafkaBackupOptions) -> Facts:
        facts = gather(cluster, wish.include, wish.exclude, internal=wish.internal, pause=time.sleep)
        unasked = left_out(cluster) if wish.scram is None else ()
        return replace(facts, findings=(*facts.findings, *unasked))

    def _begin(self, session: Writing, facts: Facts, wish: KafkaBackupOptions) -> OngoingBackup:
        source = ensure_source(self.place, KIND, _identity(facts), self.clock())
        resumed = resume(session, source) if wish.resume else None
        return resumed or begin(session, source, wanted=wish.wanted_id, tags=wish.tags)

    def _newest(self, folded: Folded) -> PreviousBackup:
        return self._read_base(folded.completed[-1] if folded.completed else None)

    def _read_base(self, entry: BackupEntry | None) -> PreviousBackup:
        if entry is None:
            return PreviousBackup()
        manifest = read_manifest(self.place, entry)
        return PreviousBackup(entry, manifest.findings, read_attachment(self.place, manifest, ROLE, ClusterRecord))

    def _plan(
        self, facts: Facts, reached: Mapping[TopicPartition, ArchivedReach], earlier: Sequence[CopyResult] = ()
    ) -> tuple[Plan, list[Broken]]:
        """Where each log goes on; one that does not continue its archived past begins its next history."""
        now = standing(facts.topics, facts.bounds, reached, earlier)
        with Cluster(self.settings) as cluster:
            broken = broken_logs(facts.topics, facts.bounds, now.furthest, lambda wanted: _epoch_ends(cluster, wanted))
        anew = {b.log: ArchivedReach(next_history(b.history), facts.bounds[b.log].start, -1) for b in broken}
        known, furthest = {**now.reached, **anew}, {**now.furthest, **anew}
        plan = plan_backup(facts.topics, facts.bounds, facts.sizes, known, done_ranges(earlier), furthest)
        return plan, [*begun_since(reached, now), *broken]

    def _copy(
        self,
        ongoing: OngoingBackup,
        facts: Facts,
        plan: Plan,
        reached: Mapping[TopicPartition, ArchivedReach],
        earlier: Sequence[CopyResult],
        wish: KafkaBackupOptions,
        engine: Engine,
    ) -> tuple[Assembled, Facts]:
        """Copy, and copy once more what turned out to be another log than the one that was planned."""
        results = [*within(plan, earlier), *self._units(ongoing, plan, wish, engine)]
        refuse_failures(results)
        left = self._left(results, reached)
        assembled = assemble(plan, results, {r.log for r in left})
        if not left:
            return assembled, facts
        again = self._gather(wish)
        second = self._again(again, left)
        repeated = self._units(ongoing, second, wish, engine)
        refuse_failures(repeated)
        if changing := self._left(repeated, {}):
            raise BackupFailed("logs keep changing their history while they are copied", subject=str(changing[0].log))
        whole = together(assembled, assemble(second, repeated))
        return replace(whole, findings=(*whole.findings, *why_left(left))), _with_new(facts, again, left)

    def _left(self, results: Sequence[CopyResult], base: Mapping[TopicPartition, ArchivedReach]) -> list[RangeResult]:
        """Ranges of logs that turned out to be others than planned, while they were copied or since."""
        with Cluster(self.settings) as cluster:
            topics = cluster.metadata().topics
            refuse_hearsay(ended_logs(results), topics)
            changed = changed_meanwhile(results, base, topics, lambda some: _epoch_ends(cluster, some))
        return [*left_logs(results), *changed]

    def _again(self, facts: Facts, left: Sequence[RangeResult]) -> Plan:
        """A plan of the logs that lost their end: from their beginning, as a history of their own."""
        ended = {TopicPartition(r.log.name, r.log.partition): r.log.history for r in left}
        topics = []
        for topic in facts.topics:
            kept = tuple(p for p in topic.partitions if TopicPartition(topic.name, p.index) in ended)
            if kept:
                topics.append(replace(topic, partitions=kept))
        there = {TopicPartition(t.name, p.index): t for t in topics for p in t.partitions}
        for log, history in ended.items():
            if log not in there or not same_topic(history, there[log]):
                raise BackupFailed("it lost its end and was deleted, both while it was copied", subject=str(log))
        anew = {
            log: ArchivedReach(next_history(history), facts.bounds[log].start, -1) for log, history in ended.items()
        }
        return plan_backup(topics, facts.bounds, facts.sizes, anew)

    def _units(self, ongoing: OngoingBackup, plan: Plan, wish: KafkaBackupOptions, engine: Engine) -> list[CopyResult]:
        tasks = engine.at_once(len(plan.units))
        limits = FetchLimits(
            rack=self.settings.rack,
            client_id=self.settings.client_id,
            bytes_per_s=share(wish.limit_download, tasks),
        )
        place = replace(self.place, store=shared_by(self.place.store, tasks))
        units = [
            CopyUnit(
                name=u.name,
                place=place,
                backup=ongoing.id,
                run=ongoing.run,
                broker=u.broker,
                ranges=u.ranges,
                brokers=SettingsBrokers(self.settings),
                segment_bytes=wish.segment_bytes,
                limits=limits,
                codec=wish.compression,
            )
            for u in plan.units
        ]
        return engine.map(copy_ranges, units, CopyResult, label="copy", weight=lambda u: u.size_bytes)

    def _complete(
        self,
        session: Writing,
        ongoing: OngoingBackup,
        facts: Facts,
        plan: Plan,
        reached: Mapping[TopicPartition, ArchivedReach],
        assembled: Assembled,
        scram: SealedScram | None,
    ) -> KafkaBackupDone:
        record, findings = self._record(ongoing.id, reached, facts, assembled)
        check_consistent(record, assembled.cut)
        refs = [put_attachment(self.place, ongoing.id, ROLE, record, session.tokens())]
        if scram is not None:
            refs.append(put_sealed(self.place, ongoing.id, scram, session.tokens()))
        outcome = FinishedRun(
            cut=assembled.cut, new=assembled.segments, gaps=assembled.gaps, attachments=refs, findings=findings
        )
        entry = ongoing.complete(outcome)
        told = (*findings, *on_damage(ongoing.rests_on))
        return KafkaBackupDone(entry, facts, plan, assembled.gaps, told, record.logs, offsets=assembled.offsets)

    def _record(
        self, backup_id: int, reached: Mapping[TopicPartition, ArchivedReach], facts: Facts, assembled: Assembled
    ) -> tuple[ClusterRecord, tuple[Finding, ...]]:
        """What is kept of the cluster besides its logs, and all that its user should know."""
        groups, clamped = groups_of(facts)
        record = ClusterRecord(
            repository=self.place.repository,
            source=self.place.source,
            id=backup_id,
            cluster_id=facts.metadata.cluster_id,
            topics=topics_of(facts),
            logs=logs_of(reached, facts, assembled),
            open_transactions=facts.open_transactions,
            groups=groups,
            acls=acls_of(facts),
            quotas=quotas_of(facts),
        )
        return record, (*assembled.findings, *clamped, *notices(facts), *gone_topics(reached, facts))


def _epoch_ends(cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
    """Topics that were deleted since they were seen are left out: the copy will find out and tell."""
    try:
        return offset_for_leader_epoch(cluster, wanted)
    except TopicMissing:
        found: dict[TopicPartition, EpochEnd] = {}
        for topic in sorted({log.topic for log in wanted}):
            with suppress(TopicMissing):
                found |= offset_for_leader_epoch(cluster, {log: wanted[log] for log in wanted if log.topic == topic})
        return found


def _new_histories(broken: Sequence[Broken]) -> list[Finding]:
    return [
        Finding(
            code="new-history",
            severity=Severity.WARNING,
            where=str(b.log),
            what=f"the log does not continue what is archived of it ({b.cause}); it begins a new history, "
            "and earlier backups keep what it was",
        )
        for b in broken
    ]


def _identity(facts: Facts) -> dict[str, str]:
    return {"cluster_id": facts.metadata.cluster_id}


def _with_new(facts: Facts, again: Facts, left: Sequence[RangeResult]) -> Facts:
    """The facts of the first look, with those of the second for the logs that were copied again."""
    names = {TopicPartition(r.log.name, r.log.partition) for r in left}
    return replace(facts, look=facts.look.without(names).joined(again.look.only(names)))
