"""Reads the committed records of one partition, and gives them the form in which logs are archived.

Records of aborted transactions and the markers of all transactions are not seen; their offsets are holes. An archived
log has none: the batch before a hole covers it with its last offset, as a batch does whose records were compacted
away; an empty batch covers one at the beginning or after a create. So archived records keep their positions, and every
reader of a log in files reads them. The client checks the CRC of every batch that it fetches.

A restore writes records that stand for positions without one: they have the header `lk-h`, and are not records here.
"""

import time
from collections.abc import Iterable, Iterator, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from logkeep.application.client_errors import client_error
from logkeep.application.kafka_log.log_topics import CALL_S, MOST_RECORD_BYTES, ConnectionConfig, explained
from logkeep.checkpoint import records as log_records
from logkeep.checkpoint.records import Kind, Record
from logkeep.errors import ClusterUnreachable
from logkeep.formats.plain_batches import BatchRecord, encode_batch

HOLE = "lk-h"
"""The header of what a restore writes for a position without a record."""
_AT_ONCE, _POLL_S = 2000, 0.2
_MOST_BATCH_BYTES = 1 << 20
_NO_LEADER = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
)
_SOON = {"fetch.wait.max.ms": 10, "fetch.error.backoff.ms": 10}
"""For reads up to an end that is there: a broker answers soon, also if there is nothing more."""


def consumer_config(config: ConnectionConfig, group: str) -> dict[str, str | int | float | bool]:
    """For a consumer of committed records that commits nothing by itself."""
    return {
        **config,
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "check.crcs": True,
        "fetch.message.max.bytes": MOST_RECORD_BYTES,
        "fetch.wait.max.ms": 100,
    }


def take_arrived(consumer: Consumer, most: int, seconds: float) -> list[Message]:
    """What has arrived, after a wait for the first message only."""
    first = consumer.consume(1, seconds)
    return [*first, *consumer.consume(most - 1, 0)] if first and most > 1 else list(first)


def bounds_of(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """The first offset, and the one that the next record gets. Raises ClusterError.

    A topic that was created a moment ago has no leader yet on brokers that do not know of it.
    """
    until = time.monotonic() + CALL_S
    while True:
        try:
            low, high = consumer.get_watermark_offsets(place, timeout=CALL_S)
        except KafkaException as error:
            if (not error.args[0].retriable() and error.args[0].code() not in _NO_LEADER) or time.monotonic() > until:
                raise explained(error, f"{place.topic}/{place.partition}") from error
            time.sleep(_POLL_S)
        else:
            return int(low), int(high)


class CommittedReader:
    """One partition of a topic. One thread uses it."""

    def __init__(self, config: ConnectionConfig, topic: str, partition: int, base: int = 0) -> None:
        """`base` is what a position is larger than its offset."""
        self._topic, self._partition, self._base, self._closed = topic, partition, base, False
        self._consumer = Consumer({**consumer_config(config, f"{topic}.reader"), "enable.partition.eof": True, **_SOON})

    def bounds(self) -> tuple[int, int]:
        """The first position, and the one that the next record gets."""
        low, high = bounds_of(self._consumer, self._at(0))
        return low + self._base, high + self._base

    def records(self, start: int, end: int) -> Iterator[list[Record]]:
        """The records of positions `[start, end)`. Waits for what is not committed yet. Raises ClusterError."""
        for arrived in self.messages(start - self._base, end - self._base):
            found = [record_of(one, self._base) for one in arrived if not _is_hole(one)]
            if found:
                yield found

    def messages(self, start: int, end: int) -> Iterator[list[Message]]:
        """What is at the offsets `[start, end)`. Waits for what is not committed yet. Raises ClusterError."""
        if start >= end:
            return
        self._consumer.assign([self._at(start)])
        try:
            yield from self._until(end)
        finally:
            self._consumer.unassign()

    def _until(self, end: int) -> Iterator[list[Message]]:
        until = time.monotonic() + CALL_S
        while time.monotonic() < until:
            arrived = take_arrived(self._consumer, _AT_ONCE, _POLL_S)
            found = [one for one in arrived if one.error() is None and one.offset() < end]
            if found:
                until = time.monotonic() + CALL_S
                yield found
            if any(self._passed(one, end) for one in arrived):
                return
        raise ClusterUnreachable(f"offset {end} was not reached in {CALL_S:g} s", subject=str(self))

    def close(self) -> None:
        """More than once is allowed."""
        if not self._closed:
            self._closed = True
            self._consumer.close()

    def __str__(self) -> str:
        return f"{self._topic}/{self._partition}"

    def _at(self, offset: int) -> TopicPartition:
        return TopicPartition(self._topic, self._partition, offset)

    def _passed(self, message: Message, end: int) -> bool:
        """Whether nothing below `end` can follow."""
        error = message.error()
        if error is None:
            return bool(message.offset() + 1 >= end)
        if error.code() == KafkaError._PARTITION_EOF:
            return bool(message.offset() >= end)
        if error.fatal() or not error.retriable():
            raise client_error(error, str(self))
        return False


def record_of(message: Message, base: int = 0) -> Record:
    """Raises Damaged if it is not a record of an application."""
    headers = [(name, value or b"") for name, value in message.headers() or ()]
    time_ms = max(message.timestamp()[1], 0)
    return log_records.read(message.key(), message.value() or b"", headers, message.offset() + base, time_ms)


def _is_hole(message: Message) -> bool:
    return any(name == HOLE for name, _ in message.headers() or ())


def archived_batches(pieces: Iterable[Sequence[Record]], start: int, end: int) -> Iterator[bytes]:
    """Batches that cover `[start, end)` without a hole and have these records. A create ends its batch."""
    covering = _Covering(start)
    for piece in pieces:
        for record in piece:
            covering.add(record)
        if covering.done:
            yield b"".join(covering.taken())
    covering.finish(end)
    if covering.done:
        yield b"".join(covering.taken())


class _Covering:
    """Collects records to batches, each of which ends where the next one begins."""

    def __init__(self, start: int) -> None:
        self._reached, self._size = start, 0
        self._run: list[Record] = []
        self.done: list[bytes] = []

    def taken(self) -> list[bytes]:
        taken, self.done = self.done, []
        return taken

    def add(self, record: Record) -> None:
        last = self._run[-1] if self._run else None
        if last is not None and (record.position != last.position + 1 or self._size > _MOST_BATCH_BYTES):
            self._end_batch(record.position)
        self._cover(record.position if not self._run else self._reached, record.timestamp_ms)
        self._run.append(record)
        self._size += len(record.value)
        if record.kind == Kind.CREATE:
            self._end_batch(record.position + 1)

    def finish(self, end: int) -> None:
        if self._run:
            self._end_batch(end)
        self._cover(end, 0)

    def _end_batch(self, end: int) -> None:
        plain = [BatchRecord(one.key, one.value, one.headers, one.timestamp_ms) for one in self._run]
        self.done.append(encode_batch(self._run[0].position, 0, plain, end))
        self._reached, self._run, self._size = end, [], 0

    def _cover(self, position: int, time_ms: int) -> None:
        if self._reached < position:
            self.done.append(encode_batch(self._reached, 0, [], position, time_ms))
            self._reached = position
