"""A ready loop for applications that consume, process and produce with confluent-kafka, and take checkpoints.

    def charge(message, output):
        output.send("receipts", key=message.key(), value=message.value())

    Participant("shop", "charging", ["orders"], charge, outputs=["receipts"], config={"bootstrap.servers": "…"}).run()

Outputs, offsets and checkpoints are one transaction. A task is one partition of one input; with `together`, the same
partition of all inputs. Before a task processes a record with a newer checkpoint id than its own, and when a marker
arrives, it takes its checkpoint: what it produced is committed first, then its positions are recorded.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from logkeep.application.client_errors import client_error
from logkeep.application.kafka.documents import (
    KnownTask,
    MarkerDocument,
    ParticipantDeclaration,
    ReadPosition,
    TaskCheckpoint,
    checkpoints_topic,
    control_topic,
    key_of,
    known_tasks,
    last_key_of,
    sealed,
    unsealed,
)
from logkeep.application.kafka.headers import Header, OutputStamps, Stamps
from logkeep.application.kafka.topics import ClientConfig, TopicReader, ensure_topics, partition_counts
from logkeep.errors import ClusterError, Damaged, UsageError
from logkeep.model.plurals import plural

_TRANSACTION_MS = 10_000
"""After a kill, readers wait this long for the transaction to be aborted."""
_CALL_S = 30.0
_MOST_MESSAGES = 500
_MOST_REMOVED = 100
"""Records for coordinators that one checkpoint of a task removes: a topic of an earlier release has all of them."""

Log = tuple[str, int]


@dataclass
class _Task:
    logs: tuple[Log, ...]
    last: int
    """The id of its last checkpoint."""
    removable: set[bytes] = field(default_factory=set)
    """Keys of its records for coordinators, which the next checkpoint removes."""
    positions: dict[Log, int] = field(default_factory=dict)
    """The next offset of each input that it has read from."""
    moved: bool = False
    stamps: dict[Log, OutputStamps] = field(default_factory=dict)


class Output:
    """What a handler produces while it processes one record."""

    __slots__ = ("_checkpoint_id", "_offset", "_producer", "_sent", "_stamps", "_topics")

    def __init__(
        self, producer: Producer, stamps: OutputStamps, checkpoint_id: int, offset: int, topics: frozenset[str]
    ) -> None:
        self._producer, self._stamps, self._checkpoint_id = producer, stamps, checkpoint_id
        self._offset, self._topics, self._sent = offset, topics, 0

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int = -1,
        headers: Iterable[Header] = (),
    ) -> None:
        if topic not in self._topics:
            raise UsageError(
                f"{topic} is not among the declared outputs, so no backup would have it",
                remedy="add it to `outputs` of the Participant",
            )
        stamped = self._stamps.stamped(headers, self._checkpoint_id, self._offset, self._sent)
        self._sent += 1
        while True:
            try:
                self._producer.produce(topic, value, key, partition=partition, headers=stamped)
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._UNKNOWN_TOPIC:
                    raise
                remedy = "create it, or correct `outputs` of the Participant"
                raise ClusterError("the cluster has no such topic", subject=topic, remedy=remedy) from error
            else:
                return


Handler = Callable[[Message, Output], None]


class Participant:
    """One process of the application. `run` returns when `stop` says so; `step` is one round of it."""

    def __init__(
        self,
        application: str,
        group: str,
        inputs: Sequence[str],
        handler: Handler,
        *,
        outputs: Sequence[str] = (),
        config: ClientConfig,
        transactional: bool = True,
        together: bool = False,
        commit_every_s: float = 0.1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application, self._group, self._handler = application, group, handler
        self._inputs, self._outputs, self._topics = tuple(inputs), tuple(outputs), frozenset(outputs)
        self._transactional, self._together = transactional, together
        self._every, self._clock, self._due = commit_every_s, clock, 0.0
        self._stamps = Stamps.of(application)
        self._tasks: dict[Log, _Task] = {}
        self._open = False
        self._undelivered: list[str] = []
        self._marker = 0
        self._config = dict(config)
        ensure_topics(config, application)
        counts = partition_counts(config, {*inputs, *outputs})
        _check_topics({*inputs, *outputs} - counts.keys())
        if together:
            _check_together({name: count for name, count in counts.items() if name in inputs})
        self._producer = self._new_producer()
        self._declare()
        self._control = TopicReader(config, control_topic(application))
        self._note_markers(list(self._control.to_end()))
        self._consumer = self._new_consumer()

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Process records until `stop`. What the handler raises ends it; its transaction is aborted."""
        try:
            while not stop():
                self.step()
            self._commit()
        except BaseException:
            self._abort()
            raise
        finally:
            self.close()

    def step(self, wait_s: float = 0.05) -> int:
        """One round: markers, records, and a commit when it is due. Returns how many records were processed."""
        self._note_markers(self._control.new())
        messages = list[Message]()
        try:
            self._take([t for t in self._each_task() if t.last < self._marker], self._marker, forced=False)
            messages = [m for m in self._consumer.consume(_MOST_MESSAGES, wait_s) if _is_record(m)]
            for message in messages:
                self._process(message)
                if self._clock() >= self._due:
                    self._commit()  # inside the batch too: a slow handler must not outlive the transaction
            if self._clock() >= self._due:
                self._commit()
        except KafkaException as error:
            self._recover(error)
        return len(messages)

    def close(self) -> None:
        self._consumer.close()
        self._control.close()
        self._producer.flush(_CALL_S)

    def _process(self, message: Message) -> None:
        log = (message.topic(), message.partition())
        task = self._tasks.get(log)
        if task is None:
            return  # revoked since it was fetched: its new owner reads it
        forced = self._stamps.forced_by(message.headers(), task.last)
        if forced is not None:
            self._take([task], forced, forced=True)
        self._begin()
        offset = message.offset()
        self._handler(message, Output(self._producer, task.stamps[log], task.last, offset, self._topics))
        task.positions[log], task.moved = offset + 1, True

    def _take(self, tasks: Sequence[_Task], checkpoint_id: int, *, forced: bool) -> None:
        """Checkpoints of these tasks. What they produced before is committed under their old ids first."""
        if not tasks:
            return
        self._commit()
        self._begin()
        for task in tasks:
            task.last, task.moved = checkpoint_id, True
            document = TaskCheckpoint(
                application=self._application,
                group=self._group,
                id=checkpoint_id,
                forced=forced,
                positions=tuple(ReadPosition(t, p, self._position(task, (t, p))) for t, p in task.logs),
            )
            self._record(task, document)
        self._commit()

    def _record(self, task: _Task, document: TaskCheckpoint) -> None:
        """For the coordinator and for the task's next owner. Each coordinator has read the records before its own."""
        topic, key, value = checkpoints_topic(self._application), key_of(document), sealed(document)
        for old in list(task.removable)[:_MOST_REMOVED]:
            task.removable.discard(old)
            self._producer.produce(topic, None, old, 0)
        task.removable.add(key)
        self._producer.produce(topic, value, key, 0)
        self._producer.produce(topic, value, last_key_of(document), 0)

    def _position(self, task: _Task, log: Log) -> int:
        """Where the task continues; the start of the log if it never read a record of it."""
        if log not in task.positions:
            low, _ = self._consumer.get_watermark_offsets(TopicPartition(*log), timeout=_CALL_S)
            task.positions[log] = low
        return task.positions[log]

    def _begin(self) -> None:
        if self._transactional and not self._open:
            self._producer.begin_transaction()
            self._open = True

    def _commit(self) -> None:
        self._due = self._clock() + self._every
        moved = [t for t in self._each_task() if t.moved]
        offsets = [TopicPartition(log[0], log[1], offset) for task in moved for log, offset in task.positions.items()]
        if self._transactional and self._open:
            if offsets:
                self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), _CALL_S)
            self._producer.commit_transaction(_CALL_S)
            self._open = False
        elif not self._transactional:
            self._flush()
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=False)
        for task in moved:
            task.moved = False

    def _flush(self) -> None:
        """Raises ClusterError if an output was not delivered: its cause is not committed then, and is read again."""
        left = self._producer.flush(_CALL_S)
        if self._undelivered or left:
            cause = self._undelivered[0] if self._undelivered else f"{plural(left, 'record')} not confirmed in time"
            raise ClusterError(f"an output was not delivered: {cause}", subject=f"group {self._group}")

    def _recover(self, error: KafkaException) -> None:
        """Abort the transaction and read from the committed offsets again. Raises what a retry does not cure."""
        cause = error.args[0]
        if not self._transactional or cause.fatal() or not (cause.txn_requires_abort() or cause.retriable()):
            raise client_error(cause, f"group {self._group}") from error
        self._abort()
        logs = list(self._tasks)
        self._assigned(self._consumer, [TopicPartition(*log) for log in logs])
        for log, task in self._tasks.items():
            self._consumer.seek(TopicPartition(log[0], log[1], self._position(task, log)))

    def _abort(self) -> None:
        if self._open:
            self._open = False
            self._producer.abort_transaction(_CALL_S)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Tasks continue with the checkpoints that were committed with their offsets."""
        found = consumer.committed(partitions, _CALL_S) if partitions else []
        known = self._known_tasks()
        by_task: dict[tuple[Log, ...], list[TopicPartition]] = {}
        for each in found:
            by_task.setdefault(self._logs_of(each, partitions), []).append(each)
        for logs, commits in by_task.items():
            last, removable = known.get(logs, KnownTask())
            task = _Task(logs, last, set(removable))
            task.positions = {(c.topic, c.partition): c.offset for c in commits if c.offset != OFFSET_INVALID}
            task.stamps = {log: OutputStamps(self._stamps, *log) for log in logs}
            self._tasks |= dict.fromkeys(logs, task)

    def _known_tasks(self) -> dict[tuple[Log, ...], KnownTask]:
        """From the topic of checkpoints.

        Not from the metadata of offsets: confluent-kafka reads it past its end, and fails where that is not text.
        """
        with closing(TopicReader(self._config, checkpoints_topic(self._application))) as reader:
            return known_tasks(((each.key() or b"", each.value()) for each in reader.to_end()), self._group)

    def _logs_of(self, one: TopicPartition, all_of_them: list[TopicPartition]) -> tuple[Log, ...]:
        if not self._together:
            return ((one.topic, one.partition),)
        return tuple(sorted((p.topic, p.partition) for p in all_of_them if p.partition == one.partition))

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Commit what was done, so that the next owner repeats nothing."""
        try:
            self._commit()
        except KafkaException:
            self._abort()
        self._drop(partitions)

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._abort()
        self._drop(partitions)

    def _drop(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self._tasks.pop((each.topic, each.partition), None)

    def _each_task(self) -> list[_Task]:
        return list({id(task): task for task in self._tasks.values()}.values())

    def _note_markers(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if message.key() == b"lk/marker":
                try:
                    marker = unsealed(message.value(), MarkerDocument, f"{message.topic()} at {message.offset()}")
                except Damaged:
                    continue  # not ours; the coordinator waits, and reports that no task answers
                self._marker = max(self._marker, marker.id)

    def _declare(self) -> None:
        document = ParticipantDeclaration(
            application=self._application,
            group=self._group,
            inputs=self._inputs,
            outputs=self._outputs,
            transactional=self._transactional,
            together=self._together,
        )
        self._begin()
        self._producer.produce(control_topic(self._application), sealed(document), key_of(document), 0)
        if self._transactional:
            self._producer.commit_transaction(_CALL_S)
            self._open = False
        else:
            self._producer.flush(_CALL_S)

    def _new_producer(self) -> Producer:
        config = {**self._config, "acks": "all", "enable.idempotence": True, "on_delivery": self._delivered}
        if not self._transactional:
            return Producer(config)
        name = f"{self._application}-{self._group}-{uuid.uuid4().hex[:12]}"
        producer = Producer({**config, "transactional.id": name, "transaction.timeout.ms": _TRANSACTION_MS})
        producer.init_transactions(_CALL_S)
        return producer

    def _delivered(self, error: object, _: Message) -> None:
        if error is not None:
            self._undelivered.append(str(error))

    def _new_consumer(self) -> Consumer:
        consumer = Consumer(
            {
                **self._config,
                "group.id": self._group,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "range",
            }
        )
        consumer.subscribe(list(self._inputs), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        return consumer


def _check_topics(missing: Iterable[str]) -> None:
    names = ", ".join(sorted(missing))
    if names:
        raise UsageError(f"the cluster has no topic {names}", remedy="create the inputs and outputs first")


def _check_together(counts: dict[str, int]) -> None:
    """Raises UsageError: partitions of different numbers would be assigned to different processes."""
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{topic} has {number}" for topic, number in sorted(counts.items()))
        raise UsageError(
            f"inputs that are read together need equal numbers of partitions: {listed}",
            remedy="leave `together` out, or create the topics with equal numbers",
        )


def _is_record(message: Message) -> bool:
    error = message.error()
    if error is not None and error.fatal():
        raise client_error(error, "the consumer")
    return error is None
