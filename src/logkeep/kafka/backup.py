"""A backup of a Kafka cluster, as a list of steps.

facts → plan → copy in tasks → a second round for logs that became others → parts, record, manifest → commit.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from logkeep.errors import BackupFailed, TopicMissing
from logkeep.kafka.admin.offsets import EpochEnd, offset_for_leader_epoch
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
from logkeep.kafka.continuity import Broken, broken_logs, positions
from logkeep.kafka.copy import copy_ranges
from logkeep.kafka.divergence import Cause
from logkeep.kafka.facts import Facts, gather
from logkeep.kafka.plan import Plan, Reached, history_of, next_history, plan_backup
from logkeep.kafka.record import (
    ROLE,
    ClusterRecord,
    LogRecord,
    acls_of,
    groups_of,
    quotas_of,
    reached_in,
    topics_of,
)
from logkeep.kafka.settings import ClientSettings
from logkeep.kafka.units import DEFAULT_SEGMENT_BYTES, CopyResult, CopyUnit, RangeResult
from logkeep.kafka.values import TopicPartition
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Engine
from logkeep.repository.attachments import put_attachment, read_attachment
from logkeep.repository.backup import OngoingBackup, Outcome, begin, check_wanted, resume
from logkeep.repository.chain import Place, read_chain
from logkeep.repository.fold import BackupEntry
from logkeep.repository.manifest import KnownGap
from logkeep.repository.resume import usable_receipts
from logkeep.repository.source import check_source, ensure_source, read_manifest
from logkeep.repository.writing import Writing, writing

KIND = "kafka"
_LOOKS_AT_TOPICS = 10
"""Each look takes well under a second: only who deletes topics all the time would need more."""


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
    lease_ttl: timedelta = timedelta(minutes=5)


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
        return facts, self._plan(facts, self._reached(folded.completed[-1] if folded.completed else None))[0]

    def run(self, wish: Wish, engine: Engine) -> Done:
        """Take the backup. Raises the cluster's and the store's errors; earlier backups are untouched by any."""
        with writing(self.place, "backup", self.clock, self.tokens, wish.lease_ttl) as session:
            facts = self._gather(wish)
            ongoing = self._begin(session, facts, wish)
            earlier = earlier_results(usable_receipts(session, ongoing, engine).values())
            plan, broken = self._plan(facts, self._reached(ongoing.base), earlier)
            assembled, facts = self._copy(ongoing, facts, plan, earlier, wish, engine)
            return self._complete(session, ongoing, facts, plan, _told(assembled, broken))

    def _gather(self, wish: Wish) -> Facts:
        """Asked from the beginning again when a topic is deleted between two questions: the others are still there."""
        with Cluster(self.settings) as cluster:
            for _ in range(_LOOKS_AT_TOPICS - 1):
                with suppress(TopicMissing):
                    return gather(cluster, wish.include, wish.exclude, internal=wish.internal, pause=time.sleep)
            return gather(cluster, wish.include, wish.exclude, internal=wish.internal, pause=time.sleep)

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
        furthest = positions(reached, earlier)
        with Cluster(self.settings) as cluster:
            broken = broken_logs(facts.topics, facts.bounds, furthest, lambda wanted: _epoch_ends(cluster, wanted))
        anew = {b.log: Reached(next_history(b.history), facts.bounds[b.log].start, -1) for b in broken}
        plan = plan_backup(facts.topics, facts.bounds, facts.sizes, {**reached, **anew}, done_ranges(earlier), furthest)
        return plan, broken

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
        assembled, left = assemble(plan, results), left_logs(results)
        if not left:
            return assembled, facts
        again = self._gather(wish)
        second = self._again(again, left)
        repeated = self._units(ongoing, second, wish, engine)
        refuse_failures(repeated)
        if left_logs(repeated):
            raise BackupFailed("logs keep changing their history while they are copied", subject=str(left[0].log))
        whole = together(assembled, assemble(second, repeated))
        return replace(whole, findings=(*whole.findings, *why_left(left))), _with_new(facts, again, left)

    def _again(self, facts: Facts, left: Sequence[RangeResult]) -> Plan:
        """A plan of the logs that became others: from their beginning, as a history of their own."""
        names = {TopicPartition(r.log.name, r.log.partition): r for r in left}
        reached: dict[TopicPartition, Reached] = {}
        topics = []
        for topic in facts.topics:
            kept = tuple(p for p in topic.partitions if TopicPartition(topic.name, p.index) in names)
            if not kept:
                continue
            topics.append(replace(topic, partitions=kept))
            for partition in kept:
                log = TopicPartition(topic.name, partition.index)
                old = names[log]
                if old.cause is not Cause.RECREATED and old.log.history.startswith(history_of(topic)):
                    # The same topic with another past: its next history, which nothing is archived of yet.
                    start = facts.bounds[log].start
                    reached[log] = Reached(next_history(old.log.history), start, -1)
        return plan_backup(topics, facts.bounds, facts.sizes, reached)

    def _units(self, ongoing: OngoingBackup, plan: Plan, wish: Wish, engine: Engine) -> list[CopyResult]:
        brokers = SettingsBrokers(self.settings)
        units = [
            CopyUnit(u.name, self.place, ongoing.id, ongoing.run, u.broker, u.ranges, brokers, wish.segment_bytes)
            for u in plan.units
        ]
        return engine.map(copy_ranges, units, CopyResult, label="copy", weight=lambda u: u.size_bytes)

    def _complete(
        self, session: Writing, ongoing: OngoingBackup, facts: Facts, plan: Plan, assembled: Assembled
    ) -> Done:
        groups, clamped = groups_of(facts)
        findings = (*assembled.findings, *clamped, *_notes(facts), *_gone(self._reached(ongoing.base), facts))
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
        ref = put_attachment(self.place, ongoing.id, ROLE, record, session.tokens())
        outcome = Outcome(
            cut=assembled.cut, new=assembled.segments, gaps=assembled.gaps, attachments=(ref,), findings=findings
        )
        return Done(ongoing.complete(outcome), facts, plan, assembled.gaps, findings)

    def _logs(self, ongoing: OngoingBackup, facts: Facts, assembled: Assembled) -> tuple[LogRecord, ...]:
        before = self._reached(ongoing.base)
        records = []
        for cut in assembled.cut:
            log = TopicPartition(cut.log.name, cut.log.partition)
            known = before.get(log)
            old = known.last_epoch if known is not None and known.history == cut.log.history else -1
            records.append(
                LogRecord(
                    topic=log.topic,
                    partition=log.partition,
                    history=cut.log.history,
                    start=cut.start,
                    end=cut.end,
                    last_stable=min(facts.bounds[log].last_stable, cut.end),
                    last_epoch=assembled.last_epochs.get(cut.log, old),
                )
            )
        return tuple(records)


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
    gone = {t.name for t in facts.topics} - {t.name for t in again.topics}
    renewed = {t.name: t for t in again.topics if any(n.topic == t.name for n in names)}
    return replace(
        facts,
        topics=tuple(renewed.get(t.name, t) for t in facts.topics if t.name not in gone),
        bounds={**facts.bounds, **{log: again.bounds[log] for log in names if log in again.bounds}},
    )


def _notes(facts: Facts) -> list[Finding]:
    restless = [
        Finding(
            code="group-restless",
            severity=Severity.WARNING,
            where=f"group {name}",
            what="it committed faster than it could be read: its position may lie before the output that is archived",
        )
        for name in facts.restless_groups
    ]
    return restless + [
        Finding(code="not-asked", severity=Severity.WARNING, where=facts.metadata.cluster_id, what=note)
        for note in facts.notes
    ]


def _gone(reached: Iterable[TopicPartition], facts: Facts) -> list[Finding]:
    """Topics of the last backup that the cluster does not show any more: deleted, or hidden from this user."""
    there = {t.name for t in facts.metadata.topics}
    return [
        Finding(
            code="topic-gone",
            severity=Severity.NOTE,
            where=name,
            what="it was in the last backup, and is not seen any more: deleted, or hidden from this user",
        )
        for name in sorted({log.topic for log in reached} - there)
    ]
