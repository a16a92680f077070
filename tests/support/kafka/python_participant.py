"""A participant written with kafka-python and the public functions of `logkeep.application.kafka` alone.

It shares no code with the loop for confluent-kafka: another client, its own transactions, its own rebalances. A task is
one partition of all inputs; the id of its last checkpoint is in the metadata of its committed offsets.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata
from logkeep.application.kafka import (
    MarkerDocument,
    MessageSource,
    ParticipantDeclaration,
    ReadPosition,
    Stamps,
    TaskCheckpoint,
    checkpoint_in,
    checkpoints_topic,
    control_topic,
    key_of,
    last_key_of,
    offset_metadata,
    sealed,
    unsealed,
)
from logkeep.errors import Damaged

Made = tuple[str, bytes]
"""Topic and value of an output."""


class PythonParticipant(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """`made_of` says what is produced for a record of a topic."""

    def __init__(
        self, bootstrap: str, application: str, group: str, inputs: Sequence[str], outputs: Sequence[str],
        made_of: Callable[[str, bytes], list[Made]],
    ) -> None:  # fmt: skip
        self._application, self._group, self._inputs, self._made_of = application, group, tuple(inputs), made_of
        self._stamps, self._marker = Stamps.of(application), 0
        self._last: dict[int, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._assigned: list[TopicPartition] = []
        """Partitions whose positions are not read yet."""
        _make_topics(bootstrap, application)
        name = f"{group}-{uuid.uuid4().hex}"
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
        self._producer.init_transactions()
        self._declare(tuple(outputs))
        self._control = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
        control = TopicPartition(control_topic(application), 0)
        self._control.assign([control])
        self._control.seek_to_beginning(control)
        while self._control.position(control) < self._control.end_offsets([control])[control]:
            self._note_markers(100)
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest",
            isolation_level="read_committed", partition_assignment_strategy=[RangePartitionAssignor],
            metadata_max_age_ms=1000,  # an assignment that was made before the topics were known is made again
        )  # fmt: skip
        self._consumer.subscribe(self._inputs, listener=self)

    def run(self, stop: Callable[[], bool]) -> None:
        while not stop():
            self._note_markers(0)
            self._take([number for number, last in self._last.items() if last < self._marker], self._marker)
            found = self._consumer.poll(100, max_records=200)
            self._begin()
            if found:
                with self._transaction():
                    for record in chain.from_iterable(found.values()):
                        self._process(record)
        self._consumer.close()
        self._control.close()
        self._producer.close()

    def _process(self, record: Any) -> None:
        log = TopicPartition(record.topic, record.partition)
        forced = self._stamps.forced_by(record.headers, self._last[log.partition])
        if forced is not None:
            self._end_transaction()
            self._producer.begin_transaction()
            self._record(log.partition, forced, forced_by_record=True)
            self._end_transaction()
            self._producer.begin_transaction()
        for number, (topic, value) in enumerate(self._made_of(record.topic, record.value)):
            source = MessageSource(record.topic, record.partition, record.offset, number)
            headers = self._stamps.stamped([], self._last[log.partition], source)
            self._producer.send(topic, value, record.key, headers)
        self._positions[log] = record.offset + 1

    def _take(self, numbers: list[int], checkpoint_id: int) -> None:
        """Everything that these tasks produced before is committed: a transaction ends with each poll."""
        if numbers:
            with self._transaction():
                for number in numbers:
                    self._record(number, checkpoint_id, forced_by_record=False)

    def _record(self, number: int, checkpoint_id: int, *, forced_by_record: bool) -> None:
        logs = [log for log in self._positions if log.partition == number]
        document = TaskCheckpoint(
            application=self._application, group=self._group, id=checkpoint_id, forced=forced_by_record,
            positions=tuple(ReadPosition(log.topic, log.partition, self._positions[log]) for log in sorted(logs)),
        )  # fmt: skip
        topic = checkpoints_topic(self._application)
        for key in (key_of(document), last_key_of(document)):
            self._producer.send(topic, sealed(document), key, partition=0)
        self._last[number] = checkpoint_id

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._producer.begin_transaction()
        yield
        self._end_transaction()

    def _end_transaction(self) -> None:
        offsets = {
            log: OffsetAndMetadata(offset, offset_metadata(self._last[log.partition]), -1)
            for log, offset in self._positions.items()
        }
        self._producer.send_offsets_to_transaction(offsets, self._consumer.group_metadata())
        self._producer.commit_transaction()

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Every transaction has ended: they do not outlive a poll."""
        self._positions, self._last, self._assigned = {}, {}, []

    def on_partitions_assigned(self, assigned: Any) -> None:
        """kafka-python refuses requests in here: `_begin` makes them."""
        self._assigned += assigned

    def _begin(self) -> None:
        """Where the last owners of new partitions ended."""
        assigned, self._assigned = self._assigned, []
        starts = self._consumer.beginning_offsets(assigned) if assigned else {}
        for log in assigned:
            found = self._consumer.committed(log, metadata=True)
            self._positions[log] = starts[log] if found is None else found.offset
            last = 0 if found is None else checkpoint_in(found.metadata)
            self._last[log.partition] = max(last, self._last.get(log.partition, 0))

    def _note_markers(self, wait_ms: int) -> None:
        for records in self._control.poll(wait_ms).values():
            for record in records:
                if record.key == b"lk/marker":
                    try:
                        marker = unsealed(record.value, MarkerDocument, record.topic)
                    except Damaged:
                        continue
                    self._marker = max(self._marker, marker.id)

    def _declare(self, outputs: tuple[str, ...]) -> None:
        document = ParticipantDeclaration(
            application=self._application, group=self._group, inputs=self._inputs, outputs=outputs,
            transactional=True, together=True,
        )  # fmt: skip
        self._producer.begin_transaction()
        self._producer.send(control_topic(self._application), sealed(document), key_of(document), partition=0)
        self._producer.commit_transaction()


def _make_topics(bootstrap: str, application: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    for name in (control_topic(application), checkpoints_topic(application)):
        with suppress(TopicAlreadyExistsError):
            admin.create_topics([NewTopic(name, 1, 1, topic_configs={"cleanup.policy": "compact"})])
    admin.close()
