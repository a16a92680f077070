"""A topic with one partition for each way in which a group can stand, and its records copied elsewhere by hand.

The copy is made by an independent client that reads committed records and writes them behind others that were there
before: whatever becomes of groups is judged by what that client saw, not by our own replay.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from logkeep.formats.run_map.file_format import Route
from logkeep.formats.run_map.runs import RunMapBuilder
from logkeep.model.ids import RestoreId
from logkeep.model.time import random_token, rfc3339, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process
from logkeep.repository.restores import (
    FIRST,
    NewRestore,
    ReceiptDocument,
    RestoredPartition,
    RestoreTargetRef,
    RestoreVerdict,
    begin_restore,
    put_map,
    put_receipt,
)
from tests.support.kafka.run_maps import encode_all
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for

Log = tuple[str, int]


@dataclass(frozen=True)
class Row:
    """One partition: what is committed, and up to where its records come back."""

    name: str
    committed: int
    next: int | None
    """The source offset of the record that has to be read next; None: the first one that is written afterwards."""
    until: int = 1000


ROWS = (
    Row("on a record", 7, 7),
    Row("in a hole of an aborted transaction", 7, 11),
    Row("at the end", 20, None),
    Row("before a trailing marker", 20, None),
    Row("behind a trailing marker", 21, None),
    Row("on an expired record", 3, 10),
    Row("beyond the cut", 30, None),
    Row("at zero", 0, 0),
    Row("beyond an earlier end", 15, None, until=10),
    Row("in a hole at an earlier end", 8, None, until=9),
)
NOT_RESTORED = len(ROWS)
"""A further partition, which does not come back."""


def write_rows(bootstrap: str, topics: Matrix, topic: str) -> None:
    """The value of each record is its own place: topic, partition and offset."""
    topics.create(topic, len(ROWS) + 1)
    plain, transactional = topics.producer(), topics.producer(transactional_id=topic)
    transactional.init_transactions(30)
    for partition, row in enumerate(ROWS):
        if "marker" in row.name:  # which stands at 20
            _transaction(bootstrap, transactional, topic, partition, range(20), keep=True)
        elif "hole" in row.name:  # offsets 5..9 are aborted, 10 is the marker
            _write(plain, topic, partition, range(5))
            _transaction(bootstrap, transactional, topic, partition, range(5, 10), keep=False)
            _write(plain, topic, partition, range(11, 21))
        else:
            _write(plain, topic, partition, range(20))
    _write(plain, topic, NOT_RESTORED, range(5))
    expired = next(p for p, row in enumerate(ROWS) if "expired" in row.name)
    for future in topics.admin.delete_records([TopicPartition(topic, expired, 10)]).values():
        future.result(30)


def _write(producer: Producer, topic: str, partition: int, offsets: Iterable[int]) -> None:
    for offset in offsets:
        producer.produce(topic, f"{topic}/{partition}/{offset}", partition=partition)
    producer.flush(30)


def _transaction(bootstrap: str, producer: Producer, topic: str, partition: int, offsets: range, *, keep: bool) -> None:
    producer.begin_transaction()
    _write(producer, topic, partition, offsets)
    if keep:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "watcher"})) as watcher:
        log = TopicPartition(topic, partition)
        # The marker comes when the transaction has ended for the client already.
        wait_for(lambda: watcher.get_watermark_offsets(log, 30)[1] == offsets.stop + 1, "the marker")


def commit(bootstrap: str, group: str, positions: Mapping[Log, int], note: str = "") -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        wanted = [TopicPartition(t, p, offset, note or f"{t}/{p}") for (t, p), offset in positions.items()]
        for each in consumer.commit(offsets=wanted, asynchronous=False) or ():
            assert each.error is None
    finally:
        consumer.close()


def read(bootstrap: str, logs: Iterable[Log]) -> dict[Log, list[tuple[int, str]]]:
    """(offset, value) of every committed record from the begin of each log on."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "copier", "isolation.level": "read_committed"}
    at_once = {"enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = Consumer({**settings, **at_once, "enable.auto.commit": False})
    found: dict[Log, list[tuple[int, str]]] = {log: [] for log in logs}
    starts = {log: consumer.get_watermark_offsets(TopicPartition(*log), 30)[0] for log in found}
    consumer.assign([TopicPartition(t, p, start) for (t, p), start in starts.items()])
    ended: set[Log] = set()
    while ended != set(found):
        for message in consumer.consume(1000, 0.1):
            log = str(message.topic()), int(message.partition() or 0)
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(log)
            else:
                found[log].append((int(message.offset() or 0), (message.value() or b"").decode()))
    consumer.close()
    return found


@dataclass
class Copy:
    """Records put elsewhere, and what a restore would have written down about it."""

    bootstrap: str
    producer: Producer
    maps: dict[Route, RunMapBuilder] = field(default_factory=dict)
    ends: dict[Log, int] = field(default_factory=dict)

    def fill(self, target: str, partitions: int, records: int) -> None:
        """Something that was there before."""
        for partition in range(partitions):
            _write(self.producer, target, partition, [-1] * records)
            self.ends[target, partition] = records

    def move(self, routes: Mapping[Route, range]) -> None:
        """All committed records of these source offsets."""
        found = read(self.bootstrap, [route[:2] for route in routes])
        for route, wanted in routes.items():
            self.place(route, wanted, None, "")
            for offset, value in found[route[:2]]:
                if offset in wanted:
                    self.place(route, wanted, offset, value)

    def place(self, route: Route, wanted: range, offset: int | None, value: str) -> None:
        """One record at the end of a target; None for a log that holds none."""
        at = self.ends.setdefault(route[2:], 0)
        builder = self.maps.setdefault(route, RunMapBuilder(wanted.start, wanted.stop, at))
        if offset is not None:
            self.producer.produce(route.target_topic, value, partition=route.target_partition)
            builder.place(np.array([(offset, at, 1)], np.int64))
            self.ends[route[2:]] = at + 1

    def receipt(self, place: SourceRef, backup: int, cluster_id: str, mode: str = "translate") -> RestoreId:
        """Store it all as a restore does."""
        self.producer.flush(30)
        for route, builder in self.maps.items():
            builder.skip_to(self.ends[route[2:]])
        maps = {route: builder.finish() for route, builder in self.maps.items()}
        target, now = RestoreTargetRef(cluster_id=cluster_id), rfc3339(utc_now())
        restore_id = begin_restore(place, NewRestore(backup, "kafka", target, b"{}"), utc_now, random_token)
        receipt = ReceiptDocument(
            repository=place.repository,
            source=place.source,
            restore=restore_id,
            number=FIRST,
            backup=backup,
            drill=False,
            verdict=RestoreVerdict.PROVEN,
            owner=this_process("test"),
            started=now,
            finished=now,
            duration_s=0.0,
            target=target,
            partitions=tuple(_partition(route, self.ends[route[2:]], mode) for route in maps),
            map=put_map(place, restore_id, encode_all(maps), random_token()),
        )
        put_receipt(place, receipt)
        return restore_id


def _partition(route: Route, end: int, mode: str) -> RestoredPartition:
    return RestoredPartition(
        source_topic=route.topic,
        source_partition=route.partition,
        topic=route.target_topic,
        partition=route.target_partition,
        mode=mode,
        records=0,
        bytes=0,
        end=end,
        outcome="done",
    )


def next_records(bootstrap: str, group: str, topics: list[str], partitions: int) -> dict[Log, str]:
    """The first record that a real member of the group reads of each partition. A position out of range is an error."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "error"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "isolation.level": "read_committed"})
    first: dict[Log, str] = {}
    consumer.subscribe(topics)
    try:
        while len(first) < partitions:
            for message in consumer.consume(1000, 0.1):
                assert message.error() is None, message.error()
                log = str(message.topic()), int(message.partition() or 0)
                first.setdefault(log, (message.value() or b"").decode())
    finally:
        consumer.close()
    return first
