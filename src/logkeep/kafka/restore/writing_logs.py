"""The part of a restore that writes records: topics made, producers stored, tasks run, and run again where that helps.

Three things can make a second round necessary, each said as a finding: a broker has forgotten our producer (then what
is there is compared with the archive, and a new producer goes on behind it), and an abort marker has come to stand
where a record belongs (then the topic that this restore made is deleted and made again: such a log cannot be mended).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from logkeep.errors import RestoreFailed
from logkeep.kafka.admin.new_topics import delete_topics
from logkeep.kafka.admin.producers import new_producer_id
from logkeep.kafka.cluster import Cluster
from logkeep.kafka.courtesy import share
from logkeep.kafka.restore.backup_view import BackupView
from logkeep.kafka.restore.bundles import bundles
from logkeep.kafka.restore.plan import PlannedLog, RestorePlan
from logkeep.kafka.restore.preparing import TRANSACTIONAL_PREFIX
from logkeep.kafka.restore.proving import ProveUnit, prove_logs
from logkeep.kafka.restore.replay import replay
from logkeep.kafka.restore.topics import make_topics
from logkeep.kafka.restore.units import (
    LogResult,
    Offsets,
    Outcome,
    Producer,
    ReplayLog,
    ReplayResult,
    ReplayUnit,
)
from logkeep.kafka.settings import ClientSettings
from logkeep.kafka.values import TopicPartition
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import RestoreId
from logkeep.model.ranges import Range
from logkeep.model.work import Engine
from logkeep.repository.chain import Place
from logkeep.repository.restores import ProducerRow, newest_producers, put_producers

_ROUNDS = 3


@dataclass(frozen=True)
class Written:
    """What the tasks said, one result for each log of the plan, and the topics they wrote to."""

    results: tuple[LogResult, ...]
    topic_ids: dict[str, str]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class LogWriting:
    """Everything that does not change from round to round."""

    restore_id: RestoreId
    view: BackupView
    state: Place
    """Where the restore's documents lie."""
    plan: RestorePlan
    settings: ClientSettings
    engine: Engine
    run: str
    limit_produce: int | None = None

    def write(self) -> Written:
        """Raises what the cluster refuses before the first record, and what every attempt of a task raised."""
        rows, ids = self._begun()
        results = self._replayed(self.plan.logs, rows, ids)
        findings: list[Finding] = []
        for _ in range(_ROUNDS):
            misplaced = {r.topic for r in results.values() if r.outcome is Outcome.MISPLACED}
            ours = {t.name for t in self.plan.topics if not t.existing} & misplaced
            if not ours:
                break
            findings += [_begun_again(name) for name in sorted(ours)]
            rows, ids = self._made_again(ours, rows, ids)
            results |= self._replayed([log for log in self.plan.logs if log.topic in ours], rows, ids)
        ordered = tuple(results[TopicPartition(log.topic, log.partition)] for log in self.plan.logs)
        return Written(ordered, ids, tuple(findings))

    def prove(self, ends: Mapping[TopicPartition, int]) -> Written:
        """Compare what is there already, up to these offsets. Writes nothing."""
        stored = newest_producers(self.state, self.restore_id)
        rows = {TopicPartition(r.topic, r.partition): r for r in stored.producers} if stored else {}
        ids = {r.topic: r.topic_id for r in rows.values()}
        wanted = self._wanted(
            [log for log in self.plan.logs if TopicPartition(log.topic, log.partition) in ends], rows, ids
        )
        units = [
            ProveUnit(
                place=self.view.place,
                settings=self.settings,
                logs=tuple(bundle),
                ends=tuple(ends[TopicPartition(log.topic, log.partition)] for log in bundle),
            )
            for bundle in self._bundles(wanted)
        ]
        done = self.engine.map(prove_logs, units, ReplayResult, label="prove", weight=lambda u: u.size_bytes)
        return Written(tuple(each for result in done for each in result.logs), ids)

    def _begun(self) -> tuple[dict[TopicPartition, ProducerRow], dict[str, str]]:
        """Topics and producers, as they were stored or new; stored before anything is sent."""
        stored = newest_producers(self.state, self.restore_id)
        rows = {TopicPartition(r.topic, r.partition): r for r in stored.producers} if stored else {}
        known = {r.topic: r.topic_id for r in rows.values()}
        with Cluster(self.settings) as cluster:
            ids = make_topics(cluster, self.plan.topics, known)
            if self.plan.logs and not rows:
                rows = self._stored(cluster, ids, {})
        return rows, ids

    def _stored(
        self, cluster: Cluster, ids: Mapping[str, str], kept: Mapping[TopicPartition, ProducerRow]
    ) -> dict[TopicPartition, ProducerRow]:
        """A new producer for all logs but those that keep theirs. One is enough: sequences are per partition."""
        producer = new_producer_id(cluster)
        rows = {
            log: kept.get(log)
            or ProducerRow(
                topic=each.topic,
                topic_id=ids[each.topic],
                partition=each.partition,
                producer_id=producer.producer_id,
                epoch=producer.epoch,
                position=each.base,
            )
            for each in self.plan.logs
            if (log := TopicPartition(each.topic, each.partition))
        }
        put_producers(self.state, self.restore_id, tuple(rows.values()), self.run)
        return rows

    def _made_again(
        self, topics: set[str], rows: Mapping[TopicPartition, ProducerRow], ids: Mapping[str, str]
    ) -> tuple[dict[TopicPartition, ProducerRow], dict[str, str]]:
        with Cluster(self.settings) as cluster:
            refused = delete_topics(cluster, {name: UUID(hex=ids[name]) for name in topics})
            if refused:
                raise RestoreFailed("a topic has to be made again and cannot be deleted", subject=", ".join(refused))
            kept = {log: row for log, row in rows.items() if log.topic not in topics}
            made = make_topics(cluster, self.plan.topics, {t: i for t, i in ids.items() if t not in topics})
            return self._stored(cluster, made, kept), made

    def _replayed(
        self, logs: Sequence[PlannedLog], rows: Mapping[TopicPartition, ProducerRow], ids: Mapping[str, str]
    ) -> dict[TopicPartition, LogResult]:
        units = [
            ReplayUnit(
                place=self.view.place,
                settings=self.settings,
                logs=tuple(bundle),
                bytes_per_s=share(self.limit_produce, self.engine.at_once(len(logs))),
                prove=self.plan.prove,
            )
            for bundle in self._bundles(self._wanted(logs, rows, ids))
        ]
        done = self.engine.map(replay, units, ReplayResult, label="restore", weight=lambda u: u.work_bytes)
        return {TopicPartition(each.topic, each.partition): each for result in done for each in result.logs}

    def _bundles(self, wanted: Sequence[ReplayLog]) -> list[list[ReplayLog]]:
        with Cluster(self.settings) as cluster:
            metadata = cluster.metadata()

        def leader(log: ReplayLog) -> int:
            found = metadata.find(TopicPartition(log.topic, log.partition))
            return found.leader if found else -1

        return bundles(wanted, leader, lambda log: log.size_bytes, self.engine.at_once(len(wanted)))

    def _wanted(
        self, logs: Sequence[PlannedLog], rows: Mapping[TopicPartition, ProducerRow], ids: Mapping[str, str]
    ) -> list[ReplayLog]:
        segments = self.view.segments({log.log: Range(log.start, log.end) for log in logs})
        return [
            ReplayLog(
                log=log.log,
                start=log.start,
                end=log.end,
                segments=segments[log.log],
                transactional=log.transactional,
                topic=log.topic,
                topic_id=ids[log.topic],
                partition=log.partition,
                offsets=self.plan.offsets,
                base=log.base,
                producer=_producer(rows[TopicPartition(log.topic, log.partition)]),
                transactional_id=self._transactional_id(log),
                isolation=self.plan.isolation,
            )
            for log in logs
        ]

    def _transactional_id(self, log: PlannedLog) -> str:
        if self.plan.offsets is not Offsets.PRESERVE:
            return ""
        return f"{TRANSACTIONAL_PREFIX}{self.restore_id}-{log.topic}-{log.partition}"


def _producer(row: ProducerRow) -> Producer:
    return Producer(row.producer_id, row.epoch, row.position)


def _begun_again(topic: str) -> Finding:
    return Finding(
        code="topic-begun-again",
        severity=Severity.NOTE,
        where=topic,
        what="an abort marker had come to stand where a record belongs: the topic was deleted and restored anew",
    )
