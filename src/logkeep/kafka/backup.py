"""A backup of a Kafka cluster, as a list of steps.

facts → plan → copy in tasks → a second round for logs that became others → parts, record, manifest → commit.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from logkeep.errors import BackupFailed, TopicMissing
from logkeep.kafka.admin.offsets import offset_for_leader_epoch
from logkeep.kafka.assemble import (
    Assembled,
    assemble,
    done_ranges,
    earlier_results,
    left_logs,
    refuse_failures,
    together,
    why_left,
    within,
)
from logkeep.kafka.brokers import SettingsBrokers
from logkeep.kafka.cluster import Cluster
from logkeep.kafka.continuity import Broken, begun_since, broken_logs, changed_meanwhile, standing
from logkeep.kafka.copy import copy_ranges
from logkeep.kafka.courtesy import share
from logkeep.kafka.facts import Facts, gather
from logkeep.kafka.fetch import FetchLimits
from logkeep.kafka.notices import gone_topics, notices
from logkeep.kafka.plan import Plan, Reached, next_history, plan_backup, refuse_to_forget, same_topic
from logkeep.kafka.record import (
    ROLE,
    ClusterRecord,
    LogRecord,
    acls_of,
    check_consistent,
    groups_of,
    quotas_of,
    reached_in,
    topics_of,
)
from logkeep.kafka.scram import ROLE as SCRAM_ROLE
from logkeep.kafka.scram import ScramDocument, ScramWish, SealedScram, collect, left_out, probe
from logkeep.kafka.settings import ClientSettings
from logkeep.kafka.traits import LogTraits, all_joined
from logkeep.kafka.units import DEFAULT_SEGMENT_BYTES, CopyResult, CopyUnit, EpochRun, RangeResult
from logkeep.kafka.values import TopicPartition
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine
from logkeep.repository.attachments import put_attachment, read_attachment
from logkeep.repository.backup import OngoingBackup, Outcome, begin, check_wanted, resume
from logkeep.repository.chain import Place, read_chain
from logkeep.repository.fold import BackupEntry
from logkeep.repository.format import ZSTD_FRAMES, require_feature
from logkeep.repository.manifest import AttachmentRef, KnownGap
from logkeep.repository.resume import usable_receipts
from logkeep.repository.source import check_source, ensure_source, read_manifest
from logkeep.repository.writing import Writing, writing
from logkeep.store.throttled import shared_by

KIND = "kafka"


@dataclass(frozen=True)
class Wish:
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
class Done:
    """What became of it."""

    entry: BackupEntry
    facts: Facts
    plan: Plan
    gaps: tuple[KnownGap, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class KafkaBackup:
    """Everything a backup needs besides the wish."""

    place: Place
    settings: ClientSettings
    clock: Clock
    tokens: TokenSource

    def preview(self, wish: Wish) -> tuple[Facts, Plan]:
        """What a run would copy now. Writes nothing, and refuses what a run would have to refuse."""
        folded = read_chain(self.place)
        check_wanted(wish.wanted_id, folded.last_id)
        facts = self._gather(wish)
        check_source(self.place, KIND, _identity(facts))
        reached = self._reached(folded.completed[-1] if folded.completed else None)
        refuse_to_forget(facts.topics, reached)
        if wish.scram is not None:
            probe(wish.scram, self.settings)
        return facts, self._plan(facts, reached)[0]

    def run(self, wish: Wish, engine: Engine) -> Done:
        """Take the backup. Raises the cluster's and the store's errors; earlier backups are untouched by any."""
        with writing(self.place, "backup", self.clock, self.tokens, wish.lease_ttl) as session:
            facts = self._gather(wish)
            completed = session.folded.completed
            refuse_to_forget(facts.topics, self._reached(completed[-1] if completed else None))
            scram = collect(wish.scram, self.settings) if wish.scram is not None else None
            ongoing = self._begin(session, facts, wish)
            if wish.compression is Codec.ZSTD:
                require_feature(self.place.store, ZSTD_FRAMES)
            earlier = earlier_results(usable_receipts(session, ongoing, engine).values())
            plan, broken = self._plan(facts, self._reached(ongoing.base), earlier)
            assembled, facts = self._copy(ongoing, facts, plan, earlier, wish, engine)
            return self._complete(session, ongoing, facts, plan, _told(assembled, broken), scram)

    def _gather(self, wish: Wish) -> Facts:
        """All facts; asked anew when a topic is deleted between two questions."""
        for last in (False, False, True):
            try:
                with Cluster(self.settings) as cluster:
                    facts = gather(cluster, wish.include, wish.exclude, internal=wish.internal, pause=time.sleep)
                    unasked = left_out(cluster) if wish.scram is None else ()
                    return replace(facts, findings=(*facts.findings, *unasked))
            except TopicMissing:
                if last:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _begin(self, session: Writing, facts: Facts, wish: Wish) -> OngoingBackup:
        source = ensure_source(self.place, KIND, _identity(facts), self.clock())
        resumed = resume(session, source) if wish.resume else None
        return resumed or begin(session, source, wanted=wish.wanted_id, tags=wish.tags)

    def _reached(self, base: BackupEntry | None) -> dict[TopicPartition, Reached]:
        if base is None:
            return {}
        record = read_attachment(self.place, read_manifest(self.place, base), ROLE, ClusterRecord)
        return reached_in(record) if record is not None else {}

    def _plan(
        self, facts: Facts, reached: dict[TopicPartition, Reached], earlier: Sequence[CopyResult] = ()
    ) -> tuple[Plan, list[Broken]]:
        """Where each log goes on; one that does not continue its archived past begins its next history."""
        now = standing(facts.topics, facts.bounds, reached, earlier)
        with Cluster(self.settings) as cluster:
            broken = broken_logs(
                facts.topics, facts.bounds, now.furthest, lambda wanted: offset_for_leader_epoch(cluster, wanted)
            )
        anew = {b.log: Reached(next_history(b.history), facts.bounds[b.log].start, -1) for b in broken}
        known, furthest = {**now.reached, **anew}, {**now.furthest, **anew}
        plan = plan_backup(facts.topics, facts.bounds, facts.sizes, known, done_ranges(earlier), furthest)
        return plan, [*begun_since(reached, now), *broken]

    def _copy(
        self,
        ongoing: OngoingBackup,
        facts: Facts,
        plan: Plan,
        earlier: Sequence[CopyResult],
        wish: Wish,
        engine: Engine,
    ) -> tuple[Assembled, Facts]:
        """Copy, and copy once more what turned out to be another log than the one that was planned."""
        results = [*within(plan, earlier), *self._units(ongoing, plan, wish, engine)]
        refuse_failures(results)
        left = self._left(results, self._reached(ongoing.base))
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

    def _left(self, results: Sequence[CopyResult], base: Mapping[TopicPartition, Reached]) -> list[RangeResult]:
        """Ranges of logs that turned out to be others than planned, while they were copied or since."""
        with Cluster(self.settings) as cluster:
            topics = cluster.metadata().topics
            changed = changed_meanwhile(results, base, topics, lambda some: offset_for_leader_epoch(cluster, some))
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
        anew = {log: Reached(next_history(history), facts.bounds[log].start, -1) for log, history in ended.items()}
        return plan_backup(topics, facts.bounds, facts.sizes, anew)

    def _units(self, ongoing: OngoingBackup, plan: Plan, wish: Wish, engine: Engine) -> list[CopyResult]:
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
        assembled: Assembled,
        scram: SealedScram | None,
    ) -> Done:
        groups, clamped = groups_of(facts)
        findings = (*assembled.findings, *clamped, *notices(facts), *gone_topics(self._reached(ongoing.base), facts))
        record = ClusterRecord(
            repository=self.place.repository,
            source=self.place.source,
            id=ongoing.id,
            cluster_id=facts.metadata.cluster_id,
            topics=topics_of(facts),
            logs=self._logs(ongoing, facts, assembled),
            open_transactions=facts.open_transactions,
            groups=groups,
            acls=acls_of(facts),
            quotas=quotas_of(facts),
        )
        check_consistent(record, assembled.cut)
        refs = [put_attachment(self.place, ongoing.id, ROLE, record, session.tokens())]
        if scram is not None:
            refs.append(self._put_scram(session, ongoing, scram))
        outcome = Outcome(
            cut=assembled.cut, new=assembled.segments, gaps=assembled.gaps, attachments=refs, findings=findings
        )
        return Done(ongoing.complete(outcome), facts, plan, assembled.gaps, findings)

    def _put_scram(self, session: Writing, ongoing: OngoingBackup, sealed: SealedScram) -> AttachmentRef:
        document = ScramDocument(
            repository=self.place.repository,
            source=self.place.source,
            id=ongoing.id,
            recipients=sealed.recipients,
            credentials=sealed.credentials,
            age=sealed.age,
        )
        return put_attachment(self.place, ongoing.id, SCRAM_ROLE, document, session.tokens())

    def _logs(self, ongoing: OngoingBackup, facts: Facts, assembled: Assembled) -> tuple[LogRecord, ...]:
        before = self._reached(ongoing.base)
        open_since = {t.log: t.first_offset for t in reversed(facts.open_transactions)}
        records = []
        for cut in assembled.cut:
            log = TopicPartition(cut.log.name, cut.log.partition)
            known = before.get(log)
            same = known is not None and known.history == cut.log.history
            old = known if known is not None and same else Reached(cut.log.history, -1, -1, traits=LogTraits())
            tip = assembled.tips.get(cut.log, EpochRun(old.last_epoch, -1, old.last_end))
            records.append(
                LogRecord(
                    topic=log.topic,
                    partition=log.partition,
                    history=cut.log.history,
                    start=cut.start,
                    end=cut.end,
                    last_stable=open_since.get(log, cut.end),
                    last_epoch=tip.epoch,
                    last_end=tip.end,
                    traits=all_joined((old.traits, assembled.traits.get(cut.log, LogTraits()))),
                )
            )
        return tuple(records)


def _told(assembled: Assembled, broken: Sequence[Broken]) -> Assembled:
    findings = [
        Finding(
            code="new-history",
            severity=Severity.WARNING,
            where=str(b.log),
            what=f"the log does not continue what is archived of it ({b.cause}); it begins a new history, "
            "and earlier backups keep what it was",
        )
        for b in broken
    ]
    return replace(assembled, findings=(*assembled.findings, *findings))


def _identity(facts: Facts) -> dict[str, str]:
    return {"cluster_id": facts.metadata.cluster_id}


def _with_new(facts: Facts, again: Facts, left: Sequence[RangeResult]) -> Facts:
    """The facts of the first look, with those of the second for the logs that were copied again."""
    names = {TopicPartition(r.log.name, r.log.partition) for r in left}
    return replace(facts, look=facts.look.without(names).joined(again.look.only(names)))
