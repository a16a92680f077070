"""Takes the checkpoint of an application on Kafka: a marker, the answer of every task, and the positions of the cut."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import msgspec

from logkeep.application.kafka.cluster_topics import ClusterTopics, VisibleRecord
from logkeep.application.kafka.cut_document import ApplicationLog, CutReader, ParticipantCut, put_cut
from logkeep.application.kafka.documents import (
    MarkerDocument,
    ParticipantDeclaration,
    TaskCheckpoint,
    checkpoints_topic,
    control_topic,
    key_of,
    sealed,
    tasks_of,
    unsealed,
)
from logkeep.application.kafka.headers import Stamps
from logkeep.application.kafka.in_transit import CutBounds, InTransit, in_transit
from logkeep.errors import BackupFailed, Damaged, UsageError
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import CommitRecord, GroupRecord
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.model.plurals import plural
from logkeep.repository.backups.manifest import AttachmentRef
from logkeep.repository.chain.commits import SourceRef

NOT_EXACT = "cut-not-exact"
_PAUSE_S = 0.05
_PARTITION = 0

Task = tuple[str, tuple[tuple[str, int], ...]]
"""Group and inputs."""


@dataclass
class ParticipantCutter:
    """One cut of one application. See `kafka.backup.values.ApplicationCut`."""

    application: str
    settings: ClientSettings
    place: SourceRef
    nonce: str
    timeout_s: float
    say: Callable[[str], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    _taken: ParticipantCut | None = field(default=None, init=False)

    def topics(self) -> tuple[str, ...]:
        """All topics of the application, as its participants declared them. Raises UsageError if there is none."""
        with _connected(self.settings) as topics:
            return _topics_of(self._declarations(topics))

    def take(self, backup_id: BackupId) -> None:
        with _connected(self.settings) as topics:
            self._taken = self._take(topics, backup_id)

    def groups(self, found: tuple[GroupRecord, ...]) -> tuple[GroupRecord, ...]:
        cut = self._cut
        commits: dict[str, list[CommitRecord]] = {}
        for log in cut.logs:
            for each in log.readers:
                row = CommitRecord(log.topic, log.partition, each.offset, each.offset, -1, "")
                commits.setdefault(each.group, []).append(row)
        kept = [_at(group, commits.pop(group.name, [])) for group in found]
        return (
            *kept,
            *(GroupRecord(name, "classic", "Empty", "consumer", tuple(rows)) for name, rows in commits.items()),
        )

    def attach(self, place: SourceRef, backup_id: BackupId, token: str) -> AttachmentRef:
        return put_cut(place, backup_id, self._cut, token)

    def findings(self) -> tuple[Finding, ...]:
        return cut_findings(self._cut)

    @property
    def cut(self) -> ParticipantCut:
        return self._cut

    @property
    def _cut(self) -> ParticipantCut:
        if self._taken is None:
            raise BackupFailed("no checkpoint was taken", subject=self.application)
        return self._taken

    def _take(self, topics: ClusterTopics, backup_id: BackupId) -> ParticipantCut:
        declared = self._declarations(topics)
        counts = topics.partitions(_topics_of(declared))
        logs = [TopicPartition(name, p) for name, count in counts.items() for p in range(count)]
        tasks = tasks_of(declared, counts)
        before = {log: bounds.high_watermark for log, bounds in topics.bounds(logs).items()}
        read_from = self._end(topics, checkpoints_topic(self.application))
        self._send_marker(topics, backup_id)
        taken = self._wait(topics, backup_id, tasks, read_from)
        ends = self._settled_ends(topics, logs)
        readers = _readers(taken.values())
        positions = {
            log: CutBounds(tuple(r.offset for r in readers.get(log, ())), before[log], ends[log]) for log in logs
        }
        moving = self._in_transit(topics, positions, backup_id)
        return self._document(backup_id, declared, taken, positions, readers, moving)

    def _declarations(self, topics: ClusterTopics) -> list[ParticipantDeclaration]:
        found: dict[str, ParticipantDeclaration] = {}
        for record in self._records(topics, control_topic(self.application), 0):
            if record.key is not None and record.key.startswith(b"lk/participant/"):
                group = record.key.decode("utf-8", "replace").removeprefix("lk/participant/")
                found.pop(group, None)  # without a value, the group was withdrawn
                with suppress(Damaged):  # another client's record
                    where = f"{control_topic(self.application)} at {record.offset}"
                    found[group] = unsealed(record.value, ParticipantDeclaration, where)
        if not found:
            raise UsageError(
                f"no participant of {self.application} has declared itself in {control_topic(self.application)}",
                remedy="start the application first; its loop declares its groups and topics. One with handlers, and a "
                f"topic {self.application}.log, is backed up by `logkeep app backup`",
            )
        return list(found.values())

    def _records(self, topics: ClusterTopics, topic: str, start: int) -> Iterator[VisibleRecord]:
        if topics.topic(topic) is None:
            return iter(())
        log = TopicPartition(topic, _PARTITION)
        bounds = topics.bounds([log])[log]
        return topics.records(log, max(start, bounds.start), bounds.last_stable)

    def _end(self, topics: ClusterTopics, topic: str) -> int:
        topics.partitions([topic])
        log = TopicPartition(topic, _PARTITION)
        return topics.bounds([log])[log].last_stable

    def _send_marker(self, topics: ClusterTopics, backup_id: BackupId) -> None:
        marker = MarkerDocument(
            application=self.application, id=backup_id, nonce=self.nonce, repository=self.place.repository
        )
        topics.append_one(TopicPartition(control_topic(self.application), _PARTITION), key_of(marker), sealed(marker))

    def _wait(
        self, topics: ClusterTopics, backup_id: BackupId, tasks: set[Task], start: int
    ) -> Mapping[Task, TaskCheckpoint]:
        """The checkpoint of every task. Raises BackupFailed that names the tasks without one at the end of the time."""
        until, found, at = self.clock() + self.timeout_s, dict[Task, TaskCheckpoint](), start
        while True:
            for record in self._records(topics, checkpoints_topic(self.application), at):
                at = record.offset + 1
                self._note(record, backup_id, found)
            missing = tasks - found.keys()
            if not missing:
                return found
            if self.clock() >= until:
                raise _unanswered(missing, len(tasks), self.timeout_s)
            self.say(f"checkpoints of tasks: {len(found)} of {len(tasks)}")
            self.pause(_PAUSE_S)

    def _note(self, record: VisibleRecord, backup_id: BackupId, found: dict[Task, TaskCheckpoint]) -> None:
        try:
            document = unsealed(
                record.value, TaskCheckpoint, f"{checkpoints_topic(self.application)} at {record.offset}"
            )
        except Damaged:
            return  # another client's record; a task that does not answer is reported
        task = document.group, tuple(sorted((p.topic, p.partition) for p in document.positions))
        if document.id == backup_id:
            found[task] = document
        elif document.id > backup_id and task not in found:
            raise BackupFailed(
                f"it took checkpoint {document.id} instead: another coordinator takes checkpoints",
                subject=_task_text(task),
            )

    def _settled_ends(self, topics: ClusterTopics, logs: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends now, once every transaction below them is decided: what tasks produced before is below."""
        ends = {log: bounds.high_watermark for log, bounds in topics.bounds(logs).items()}
        until, waiting = self.clock() + self.timeout_s, list(logs)
        while True:
            stable = topics.bounds(waiting)
            waiting = [log for log in waiting if stable[log].last_stable < ends[log]]
            if not waiting:
                return ends
            if self.clock() >= until:
                raise BackupFailed("a transaction stays open", subject=str(waiting[0]), remedy="find its producer")
            self.pause(_PAUSE_S)

    def _in_transit(
        self, topics: ClusterTopics, positions: Mapping[TopicPartition, CutBounds], backup_id: BackupId
    ) -> InTransit:
        stamps = Stamps.of(self.application)
        records = (record for log, each in positions.items() for record in topics.records(log, each.kept_to, each.end))
        return in_transit(records, {(log.topic, log.partition): at for log, at in positions.items()}, stamps, backup_id)

    def _document(
        self,
        backup_id: BackupId,
        declared: Sequence[ParticipantDeclaration],
        taken: Mapping[Task, TaskCheckpoint],
        positions: Mapping[TopicPartition, CutBounds],
        readers: Mapping[TopicPartition, Sequence[CutReader]],
        moving: InTransit,
    ) -> ParticipantCut:
        offsets: dict[tuple[str, int], list[int]] = {}
        for log, offset in moving.records:
            offsets.setdefault(log, []).append(offset)
        stamps = Stamps.of(self.application)
        return ParticipantCut(
            repository=self.place.repository,
            source=self.place.source,
            id=backup_id,
            application=self.application,
            stamp=stamps.application.hex(),
            history=stamps.history,
            transactional=all(each.transactional for each in declared),
            forced=sum(each.forced for each in taken.values()),
            disagreeing=len(moving.disagreeing),
            logs=tuple(
                ApplicationLog(
                    log.topic,
                    log.partition,
                    at.before,
                    at.end,
                    tuple(sorted(readers.get(log, ()))),
                    tuple(offsets.get(log, ())),
                )
                for log, at in sorted(positions.items())
            ),
        )


def cut_findings(cut: ParticipantCut) -> tuple[Finding, ...]:
    """A cut without transactions is never called exact; the certificate counts all duplicates."""
    if cut.transactional:
        return ()
    found = plural(cut.disagreeing, "possible duplicate")
    what = f"the application runs without transactions: the cut is not exact, with {found} between P and E"
    remedy = f"`logkeep verify {cut.id} --level cut` counts all of them"
    return (Finding(code=NOT_EXACT, severity=Severity.NOTE, where=cut.application, what=what, remedy=remedy),)


@contextmanager
def _connected(settings: ClientSettings) -> Iterator[ClusterTopics]:
    with Cluster(settings) as cluster:
        yield ClusterTopics(cluster, settings)


def _topics_of(declared: Iterable[ParticipantDeclaration]) -> tuple[str, ...]:
    return tuple(sorted({topic for each in declared for topic in (*each.inputs, *each.outputs)}))


def _readers(taken: Iterable[TaskCheckpoint]) -> dict[TopicPartition, list[CutReader]]:
    found: dict[TopicPartition, list[CutReader]] = {}
    for each in taken:
        for p in each.positions:
            found.setdefault(TopicPartition(p.topic, p.partition), []).append(CutReader(each.group, p.offset))
    return found


def _at(group: GroupRecord, commits: Sequence[CommitRecord]) -> GroupRecord:
    """A group with these commits in place of its own for the same logs."""
    mine = {(c.topic, c.partition): c for c in group.commits} | {(c.topic, c.partition): c for c in commits}
    return msgspec.structs.replace(group, commits=tuple(row for _, row in sorted(mine.items())))


def _unanswered(missing: set[Task], all_tasks: int, timeout_s: float) -> BackupFailed:
    first = min(missing)
    more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
    return BackupFailed(
        f"it took no checkpoint within {timeout_s:.0f} s ({all_tasks - len(missing)} of {all_tasks} tasks did{more})",
        subject=_task_text(first),
        remedy="check that a process of this group runs; a longer --checkpoint-timeout helps if it is slow",
    )


def _task_text(task: Task) -> str:
    group, logs = task
    return f"group {group}, {', '.join(f'{topic}/{partition}' for topic, partition in logs)}"
