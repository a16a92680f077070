"""The part of a restore that writes records: topics made, producers stored, tasks run, and run again where that helps.

Two things make another round necessary, and both are said. A broker has forgotten our producer: then what is there is
compared with the archive, and a new producer goes on behind it. An abort marker has come to stand where a record
belongs: then the topic that this restore made is deleted and made again, because such a log cannot be mended.
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
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.rate_limit import share
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.backup_view import KafkaBackupView
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
from logkeep.kafka.restore.plan.plan import PlannedLog, RestorePlan
from logkeep.kafka.restore.plan.refusals import named
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
"""Up to which offset of the target something is there."""


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
    view: KafkaBackupView
    state: SourceRef
    """Where the restore's documents lie."""
    plan: RestorePlan
    settings: ClientSettings
    engine: Engine
    run: str
    limit_produce: int | None = None
    resumed: int = 0
    """How often the restore had been resumed when this run began."""

    def write(self) -> Written:
        """Raises what the cluster refuses before the first record, and what every attempt of a task raised."""
        stored = self._begun()
        results = self._replayed(self.plan.logs, stored)
        findings: list[Finding] = []
        for _ in range(_ROUNDS):
            forgotten = {log: r.end for log, r in results.items() if r.outcome is ReplayOutcome.FORGOTTEN}
            misplaced = {r.topic for r in results.values() if r.outcome is ReplayOutcome.MISPLACED}
            again = {t.name for t in self.plan.topics if not t.existing} & misplaced
            if again:
                findings += [_begun_again(name) for name in sorted(again)]
                stored = self._made_again(again, stored)
            ours = {log: end for log, end in forgotten.items() if log.topic not in again}
            proven, wrong = self._compared(ours, stored)
            results |= wrong
            if proven:
                findings += [_went_on(log) for log in sorted(proven)]
                stored = self._stored(stored, {log: ours[log] for log in proven})
            todo = [log for log in self.plan.logs if log.topic in again or _key(log) in proven]
            if not todo:
                break
            results |= self._replayed(todo, stored)
        return Written(tuple(results[log] for log in self.plan.targets), dict(stored.topics), tuple(findings))

    def prove(self, ends: Ends) -> Written:
        """Compare what is there already, up to these offsets. Writes nothing."""
        stored = newest_producers(self.state, self.restore_id)
        if stored is None:
            return Written((), {})
        done = self._proven(ends, stored)
        return Written(tuple(done[log] for log in self.plan.targets if log in done), dict(stored.topics))

    def _begun(self) -> ProducersDocument:
        """Topics and producers, as they were stored or new; stored before anything is sent."""
        stored = newest_producers(self.state, self.restore_id)
        known = {name: each for name, each in stored.topics.items() if each} if stored else {}
        with Cluster(self.settings) as cluster:
            if stored is None:
                self._refuse_moved(cluster)
            elif doomed := _doomed(self.state, self.restore_id, stored):
                _delete(cluster, doomed)  # a run was killed while it was about to
            ids = make_topics(cluster, self.plan.topics, known)
        if stored is not None and known.keys() == {t.name for t in self.plan.topics}:
            return stored
        kept = {log: row for log, row in _rows(stored).items() if log.topic in known} if stored else {}
        return self._put(ids, kept, {}, after=stored.number if stored else 0)

    def _refuse_moved(self, cluster: Cluster) -> None:
        """Topics that were there before must still end where the plan says: somebody may have written meanwhile."""
        existing = {t.name for t in self.plan.topics if t.existing}
        planned = {_key(log): log.base for log in self.plan.logs if log.topic in existing}
        found = list_offsets(cluster, planned.keys()) if planned else {}
        moved = [str(log) for log, base in planned.items() if found[log].offset != base]
        if moved:
            raise TargetUnsafe(
                "somebody writes to topics that were to be restored into",
                subject=named(moved),
                remedy="stop their producers and begin again; nothing was changed",
            )

    def _put(
        self,
        topics: Mapping[str, str],
        kept: Mapping[TopicPartition, ProducerRow],
        positions: Ends,
        after: int,
    ) -> ProducersDocument:
        """Store topics with a new producer for all logs but those that keep theirs.

        One producer is enough: sequences are counted per partition. It begins where the log is empty, or at a
        position up to which what is there was compared.
        """
        rows = []
        if self.plan.logs:
            with Cluster(self.settings) as cluster:
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
                for log, base in {_key(log): log.base for log in self.plan.logs}.items()
            ]
        return put_producers(self.state, self.restore_id, topics, rows, self.run, after=after)

    def _stored(self, before: ProducersDocument, positions: Ends) -> ProducersDocument:
        """A new producer goes on at these positions."""
        kept = {log: row for log, row in _rows(before).items() if log not in positions}
        return self._put(before.topics, kept, positions, after=before.number)

    def _made_again(self, topics: set[str], before: ProducersDocument) -> ProducersDocument:
        """Delete and make anew. That it is going to happen is stored first: a kill in between is no riddle then."""
        self._refuse_overtaken(before)
        kept = {log: row for log, row in _rows(before).items() if log.topic not in topics}
        told = put_producers(
            self.state,
            self.restore_id,
            {**before.topics, **dict.fromkeys(topics, "")},
            tuple(_rows(before).values()),
            self.run,
            after=before.number,
        )
        with Cluster(self.settings) as cluster:
            _delete(cluster, {name: before.topics[name] for name in topics})
            known = {name: each for name, each in told.topics.items() if each}
            ids = make_topics(cluster, self.plan.topics, known)
        return self._put(ids, kept, {}, after=told.number)

    def _refuse_overtaken(self, before: ProducersDocument) -> None:
        """Nothing is deleted by a run that somebody else has gone on from: by then the topic may be in use."""
        newest = newest_producers(self.state, self.restore_id)
        done = any(r.records_there for r in read_receipts(self.state, self.restore_id))
        overtaken = newest is None or newest.number != before.number
        if done or overtaken or times_resumed(self.state, self.restore_id) != self.resumed:
            raise Locked("another run has taken this restore over", subject=str(self.restore_id))

    def _compared(
        self, ends: Ends, stored: ProducersDocument
    ) -> tuple[set[TopicPartition], dict[TopicPartition, LogResult]]:
        """Logs whose beginning, up to these offsets, is what is archived; and for the others why not."""
        done = self._proven(ends, stored, beginnings=True) if ends else {}
        good = {log for log, r in done.items() if r.proof is not None and r.proof.good}
        return good, {log: _foreign(r) for log, r in done.items() if log not in good}

    def _replayed(self, logs: Sequence[PlannedLog], stored: ProducersDocument) -> dict[TopicPartition, LogResult]:
        wanted = self._wanted(logs, stored)
        tasks = self.engine.at_once(len(wanted)) if wanted else 1
        if tasks > 1:
            warm()  # once, before processes that would all compile the same
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
        # What is written is read back: progress counts both, and its name says so.
        label = "restore and compare" if self.plan.prove else "restore"
        done = self.engine.map(replay, units, ReplayResult, label=label, weight=lambda u: u.work_bytes)
        return {TopicPartition(each.topic, each.partition): each for result in done for each in result.logs}

    def _proven(
        self, ends: Ends, stored: ProducersDocument, *, beginnings: bool = False
    ) -> dict[TopicPartition, LogResult]:
        wanted = self._wanted([log for log in self.plan.logs if _key(log) in ends], stored)
        units = [
            ProveUnit(
                place=self.view.place,
                settings=self.settings,
                logs=tuple(bundle),
                ends=tuple(ends[TopicPartition(log.topic, log.partition)] for log in bundle),
                beginnings=beginnings,
            )
            for bundle in self._bundles(wanted)
        ]
        done = self.engine.map(prove_logs, units, ReplayResult, label="prove", weight=lambda u: u.size_bytes)
        return {TopicPartition(each.topic, each.partition): each for result in done for each in result.logs}

    def _bundles(self, wanted: Sequence[ReplayLog]) -> list[list[ReplayLog]]:
        if not wanted:
            return []
        with Cluster(self.settings) as cluster:
            metadata = cluster.metadata()

        def leader(log: ReplayLog) -> int:
            found = metadata.find(TopicPartition(log.topic, log.partition))
            return found.leader if found else -1

        return bundles(wanted, leader, lambda log: log.size_bytes, self.engine.at_once(len(wanted)))

    def _wanted(self, logs: Sequence[PlannedLog], stored: ProducersDocument) -> list[ReplayLog]:
        segments = self.view.segments({log.log: Range(log.start, log.end) for log in logs})
        rows, together = _rows(stored), dict[TopicPartition, list[PlannedLog]]()
        for log in logs:
            together.setdefault(_key(log), []).append(log)
        return [
            ReplayLog(
                log=log.log,
                start=log.start,
                end=log.end,
                segments=segments[log.log],
                transactional=log.transactional,
                topic=log.topic,
                topic_id=stored.topics[log.topic],
                partition=log.partition,
                offsets=self.plan.offsets,
                base=log.base,
                producer=_producer(rows[_key(log)]),
                transactional_id=self._transactional_id(log),
                isolation=self.plan.isolation,
                before_ms=log.before_ms,
                spread_over=log.spread_over,
                others=tuple(
                    SourceLog(
                        log=other.log,
                        start=other.start,
                        end=other.end,
                        segments=segments[other.log],
                        transactional=other.transactional,
                    )
                    for other in others
                ),
            )
            for log, *others in together.values()
        ]

    def _transactional_id(self, log: PlannedLog) -> str:
        if self.plan.offsets is not Offsets.PRESERVE:
            return ""
        return f"{TRANSACTIONAL_PREFIX}{self.restore_id}-{log.topic}-{log.partition}"


def _key(log: PlannedLog) -> TopicPartition:
    return log.target


def _rows(stored: ProducersDocument) -> dict[TopicPartition, ProducerRow]:
    return {TopicPartition(r.topic, r.partition): r for r in stored.producers}


def _producer(row: ProducerRow) -> Producer:
    return Producer(row.producer_id, row.epoch, row.position)


def _foreign(result: LogResult) -> LogResult:
    """A log whose beginning is not ours: it was not finished, so that nobody may take it for one that came back."""
    if result.proof is None or result.proof.good:
        return result  # why it could not be compared is told already
    return msgspec.structs.replace(result, outcome=ReplayOutcome.FOREIGN, detail=difference(result.proof))


def _doomed(state: SourceRef, restore_id: RestoreId, stored: ProducersDocument) -> dict[str, str]:
    """Topics that are to be made again, with the ids that they had."""
    had = topic_ids(state, restore_id)
    return {name: had[name] for name, topic_id in stored.topics.items() if not topic_id and name in had}


def _delete(cluster: Cluster, ids: Mapping[str, str]) -> None:
    there = {t.name: t.id.hex for t in cluster.metadata().topics}
    doomed = {name: UUID(hex=each) for name, each in ids.items() if there.get(name) == each}
    refused = delete_topics(cluster, doomed) if doomed else {}
    if refused:
        raise RestoreFailed("a topic has to be made again and cannot be deleted", subject=", ".join(refused))
    _wait_until_gone(cluster, ids)


def _wait_until_gone(cluster: Cluster, ids: Mapping[str, str]) -> None:
    """Brokers show a deleted topic for a moment; who asks one of them too early would take it for the new one."""
    for _ in cluster.backoff.tries():
        if not any(t.id.hex == ids.get(t.name) for t in cluster.metadata().topics):
            return


def _begun_again(topic: str) -> Finding:
    return Finding(
        code="topic-begun-again",
        severity=Severity.NOTE,
        where=topic,
        what="an abort marker had come to stand where a record belongs: the topic was deleted and restored anew",
    )


def _went_on(log: TopicPartition) -> Finding:
    return Finding(
        code="producer-forgotten",
        severity=Severity.NOTE,
        where=str(log),
        what="the broker had forgotten our producer: what was there was compared, and a new producer went on behind it",
    )
