"""The part of a restore that writes records: create topics, store producers, run tasks, and repeat them where it helps.

Two events make another round necessary; a finding reports each. A broker has forgotten our producer: then the records
in the target are compared with the archive, and a new producer continues after them. An abort marker has the offset of
a record: then the topic that this restore created is deleted and created again, because such a log cannot be repaired.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec

from logkeep.errors import Locked, RestoreFailed, TargetUnsafe
from logkeep.formats.warm import warm
from logkeep.kafka.admin.offsets import list_offsets
from logkeep.kafka.admin.producers import new_producer_id
from logkeep.kafka.admin.topic_changes import delete_topics
from logkeep.kafka.client.cluster import Cluster, long_retry_cluster
from logkeep.kafka.client.rate_limit import share
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.restore.facts.units import (
    LogResult,
    Offsets,
    Producer,
    ReplayLog,
    ReplayOutcome,
    ReplayResult,
    ReplayUnit,
    SourceLog,
)
from logkeep.kafka.restore.plan.refusals import join_names
from logkeep.kafka.restore.plan.values import PlannedLog, RestorePlan
from logkeep.kafka.restore.prepare import TRANSACTIONAL_PREFIX
from logkeep.kafka.restore.proof.task import ProveUnit, prove_logs
from logkeep.kafka.restore.replay.bundles import bundles
from logkeep.kafka.restore.replay.task import replay
from logkeep.kafka.restore.results import difference
from logkeep.kafka.restore.topics import make_topics
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import RestoreId
from logkeep.model.ranges import Range
from logkeep.model.work import Engine
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import (
    ProducerRow,
    ProducersDocument,
    newest_producers,
    put_producers,
    read_receipts,
    times_resumed,
    topic_ids,
)

_ROUNDS = 3
Ends = Mapping[TopicPartition, int]
"""The target offset up to which each partition was restored."""


def write_label(*, prove: bool) -> str:
    """With a proof, progress counts what is sent and what is read back; the label names both."""
    return "restore and compare" if prove else "restore"


@dataclass(frozen=True)
class WriteResult:
    """The results of the tasks, one for each target partition, and the topics they wrote to."""

    results: tuple[LogResult, ...]
    topic_ids: dict[str, str]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class KafkaLogWriter:
    """Everything that stays the same in all rounds."""

    restore_id: RestoreId
    view: KafkaBackupView
    state: SourceRef
    """The source that holds the restore's documents."""
    plan: RestorePlan
    settings: ClientSettings
    engine: Engine
    run: str
    limit_produce: int | None = None
    resumed: int = 0
    """How often the restore had been resumed when this run started."""

    def write(self) -> WriteResult:
        """Write the records. Raises when the cluster refuses something before the first record, or when all attempts of
        a task failed."""
        stored = self._begin()
        results = self._replay(self.plan.logs, stored)
        findings: list[Finding] = []
        for _ in range(_ROUNDS):
            forgotten = {log: r.end for log, r in results.items() if r.outcome is ReplayOutcome.FORGOTTEN}
            misplaced = {r.topic for r in results.values() if r.outcome is ReplayOutcome.MISPLACED}
            again = {t.name for t in self.plan.topics if not t.existing} & misplaced
            if again:
                findings += [_recreated(name) for name in sorted(again)]
                stored = self._recreate(again, stored)
            ours = {log: end for log, end in forgotten.items() if log.topic not in again}
            proven, wrong = self._compare_beginnings(ours, stored)
            results |= wrong
            if proven:
                findings += [_resumed(log) for log in sorted(proven)]
                stored = self._replace_producers(stored, {log: ours[log] for log in proven})
            todo = [log for log in self.plan.logs if log.topic in again or log.target in proven]
            if not todo:
                break
            results |= self._replay(todo, stored)
        return WriteResult(tuple(results[log] for log in self.plan.targets), dict(stored.topics), tuple(findings))

    def prove(self, ends: Ends) -> WriteResult:
        """Compare the target with the archive up to these offsets. Writes nothing."""
        stored = newest_producers(self.state, self.restore_id)
        if stored is None:
            return WriteResult((), {})
        done = self._prove(ends, stored)
        return WriteResult(tuple(done[log] for log in self.plan.targets if log in done), dict(stored.topics))

    def _begin(self) -> ProducersDocument:
        """Stored topics and producers, or new ones, which are stored before anything is sent."""
        stored = newest_producers(self.state, self.restore_id)
        known = {name: each for name, each in stored.topics.items() if each} if stored else {}
        with long_retry_cluster(self.settings) as cluster:
            if stored is None:
                self._refuse_written_topics(cluster)
            elif doomed := _doomed(self.state, self.restore_id, stored):
                _delete(cluster, doomed)  # a run was killed before it deleted them
            ids = make_topics(cluster, self.plan.topics, known)
        if stored is not None and known.keys() == {t.name for t in self.plan.topics}:
            return stored
        kept = {log: row for log, row in _rows(stored).items() if log.topic in known} if stored else {}
        return self._put(ids, kept, {}, after=stored.number if stored else 0)

    def _refuse_written_topics(self, cluster: Cluster) -> None:
        """Existing topics must still end at the planned offsets; another client may have written in the meantime."""
        existing = {t.name for t in self.plan.topics if t.existing}
        planned = {log.target: log.base for log in self.plan.logs if log.topic in existing}
        found = list_offsets(cluster, planned.keys()) if planned else {}
        moved = [str(log) for log, base in planned.items() if found[log].offset != base]
        if moved:
            raise TargetUnsafe(
                "another client writes to topics that were to be restored into",
                subject=join_names(moved),
                remedy="stop their producers and start again; nothing was changed",
            )

    def _put(
        self,
        topics: Mapping[str, str],
        kept: Mapping[TopicPartition, ProducerRow],
        positions: Ends,
        after: int,
    ) -> ProducersDocument:
        """Store the topics, and a new producer for all logs that do not keep theirs.

        One producer is enough, because sequence numbers are counted per partition. It starts at the base of the log,
        or at the position up to which the target was compared.
        """
        rows = []
        if self.plan.logs:
            with long_retry_cluster(self.settings) as cluster:
                new = new_producer_id(cluster)
            rows = [
                kept.get(log)
                or ProducerRow(
                    topic=log.topic,
                    partition=log.partition,
                    producer_id=new.producer_id,
                    epoch=new.epoch,
                    position=positions.get(log, base),
                )
                for log, base in {log.target: log.base for log in self.plan.logs}.items()
            ]
        return put_producers(self.state, self.restore_id, topics, rows, self.run, after=after)

    def _replace_producers(self, before: ProducersDocument, positions: Ends) -> ProducersDocument:
        """Store a new producer that continues at these positions."""
        kept = {log: row for log, row in _rows(before).items() if log not in positions}
        return self._put(before.topics, kept, positions, after=before.number)

    def _recreate(self, topics: set[str], before: ProducersDocument) -> ProducersDocument:
        """Delete and create topics again. The intent is stored first, so that a later run knows it after a kill."""
        self._refuse_superseded(before)
        kept = {log: row for log, row in _rows(before).items() if log.topic not in topics}
        intent = put_producers(
            self.state,
            self.restore_id,
            {**before.topics, **dict.fromkeys(topics, "")},
            tuple(_rows(before).values()),
            self.run,
            after=before.number,
        )
        with long_retry_cluster(self.settings) as cluster:
            _delete(cluster, {name: before.topics[name] for name in topics})
            known = {name: each for name, each in intent.topics.items() if each}
            ids = make_topics(cluster, self.plan.topics, known)
        return self._put(ids, kept, {}, after=intent.number)

    def _refuse_superseded(self, before: ProducersDocument) -> None:
        """A run that another run has resumed must not delete anything: the topic may be in use by now."""
        newest = newest_producers(self.state, self.restore_id)
        done = any(r.records_there for r in read_receipts(self.state, self.restore_id))
        superseded = newest is None or newest.number != before.number
        if done or superseded or times_resumed(self.state, self.restore_id) != self.resumed:
            raise Locked("another run has resumed this restore", subject=str(self.restore_id))

    def _compare_beginnings(
        self, ends: Ends, stored: ProducersDocument
    ) -> tuple[set[TopicPartition], dict[TopicPartition, LogResult]]:
        """Logs whose beginning, up to these offsets, equals the archive; and results with the reason for the others."""
        done = self._prove(ends, stored, beginnings=True) if ends else {}
        good = {log for log, r in done.items() if r.proof is not None and r.proof.good}
        return good, {log: _foreign(r) for log, r in done.items() if log not in good}

    def _replay(self, logs: Sequence[PlannedLog], stored: ProducersDocument) -> dict[TopicPartition, LogResult]:
        wanted = self._replay_logs(logs, stored)
        tasks = self.engine.at_once(len(wanted)) if wanted else 1
        if tasks > 1:
            warm()  # once, before several processes compile the same functions
        units = [
            ReplayUnit(
                place=self.view.place,
                settings=self.settings,
                logs=tuple(bundle),
                bytes_per_s=share(self.limit_produce, tasks),
                prove=self.plan.prove,
            )
            for bundle in self._bundles(wanted)
        ]
        label = write_label(prove=self.plan.prove)
        done = self.engine.map(replay, units, ReplayResult, label=label, weight=lambda u: u.work_bytes)
        return {TopicPartition(each.topic, each.partition): each for result in done for each in result.logs}

    def _prove(
        self, ends: Ends, stored: ProducersDocument, *, beginnings: bool = False
    ) -> dict[TopicPartition, LogResult]:
        wanted = self._replay_logs([log for log in self.plan.logs if log.target in ends], stored)
        units = [
            ProveUnit(
                place=self.view.place,
                settings=self.settings,
                logs=tuple(bundle),
                ends=tuple(ends[log.key] for log in bundle),
                beginnings=beginnings,
            )
            for bundle in self._bundles(wanted)
        ]
        done = self.engine.map(prove_logs, units, ReplayResult, label="prove", weight=lambda u: u.size_bytes)
        return {TopicPartition(each.topic, each.partition): each for result in done for each in result.logs}

    def _bundles(self, wanted: Sequence[ReplayLog]) -> list[list[ReplayLog]]:
        if not wanted:
            return []
        with long_retry_cluster(self.settings) as cluster:
            metadata = cluster.metadata()

        def leader(log: ReplayLog) -> int:
            found = metadata.find(log.key)
            return found.leader if found else -1

        return bundles(wanted, leader, lambda log: log.size_bytes, self.engine.at_once(len(wanted)))

    def _replay_logs(self, logs: Sequence[PlannedLog], stored: ProducersDocument) -> list[ReplayLog]:
        segments = self.view.segments({log.log: Range(log.start, max(log.end, log.settled_to or -1)) for log in logs})
        rows, by_target = _rows(stored), dict[TopicPartition, list[PlannedLog]]()
        for log in logs:
            by_target.setdefault(log.target, []).append(log)
        return [
            ReplayLog(
                sources=tuple(
                    SourceLog(
                        log=each.log,
                        start=each.start,
                        end=each.end,
                        segments=segments[each.log],
                        transactional=each.transactional,
                        settled_to=each.settled_to or -1,
                        left_out=each.left_out or (),
                        buried=each.buried or (),
                    )
                    for each in planned
                ),
                topic=target.topic,
                topic_id=stored.topics[target.topic],
                partition=target.partition,
                offsets=self.plan.offsets,
                base=planned[0].base,
                producer=Producer(rows[target].producer_id, rows[target].epoch, rows[target].position),
                transactional_id=self._transactional_id(target),
                isolation=self.plan.isolation,
                before_ms=planned[0].before_ms,
                spread_over=planned[0].spread_over,
                merge=self.plan.merge_rule(planned[0]),
            )
            for target, planned in by_target.items()
        ]

    def _transactional_id(self, target: TopicPartition) -> str:
        if self.plan.offsets is not Offsets.PRESERVE:
            return ""
        return f"{TRANSACTIONAL_PREFIX}{self.restore_id}-{target.topic}-{target.partition}"


def _rows(stored: ProducersDocument) -> dict[TopicPartition, ProducerRow]:
    return {TopicPartition(r.topic, r.partition): r for r in stored.producers}


def _foreign(result: LogResult) -> LogResult:
    """The result of a log whose beginning is not ours; it must not count as restored."""
    if result.proof is None or result.proof.good:
        return result  # it already says why the log could not be compared
    return msgspec.structs.replace(result, outcome=ReplayOutcome.FOREIGN, detail=difference(result.proof))


def _doomed(state: SourceRef, restore_id: RestoreId, stored: ProducersDocument) -> dict[str, str]:
    """Topics that are to be created again, with their former ids."""
    had = topic_ids(state, restore_id)
    return {name: had[name] for name, topic_id in stored.topics.items() if not topic_id and name in had}


def _delete(cluster: Cluster, ids: Mapping[str, str]) -> None:
    there = {t.name: t.id.hex for t in cluster.metadata().topics}
    doomed = {name: UUID(hex=each) for name, each in ids.items() if there.get(name) == each}
    refused = delete_topics(cluster, doomed) if doomed else {}
    if refused:
        raise RestoreFailed("a topic has to be created again and cannot be deleted", subject=", ".join(refused))
    _wait_until_gone(cluster, ids)


def _wait_until_gone(cluster: Cluster, ids: Mapping[str, str]) -> None:
    """Brokers list a deleted topic for a moment; it must not be mistaken for the new one."""
    for _ in cluster.backoff.tries():
        if not any(t.id.hex == ids.get(t.name) for t in cluster.metadata().topics):
            return


def _recreated(topic: str) -> Finding:
    return Finding(
        code="topic-begun-again",
        severity=Severity.NOTE,
        where=topic,
        what="an abort marker had the offset of a record: the topic was deleted and restored again",
    )


def _resumed(log: TopicPartition) -> Finding:
    return Finding(
        code="producer-forgotten",
        severity=Severity.NOTE,
        where=str(log),
        what="the broker had forgotten our producer: the target was compared, and a new producer continued after it",
    )
