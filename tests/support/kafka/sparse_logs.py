"""Logs on a real broker that have few records for their offsets: compacted ones, and ones that begin very late."""

import gzip
import random
from collections.abc import Iterable
from itertools import pairwise

from confluent_kafka import TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.kafka.client_readers import messages
from tests.support.kafka.consumer_view import watermarks
from tests.support.kafka.raw_produce import put
from tests.support.kafka.slow_records import batch_of, varint
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for

MILLION = 1_000_000
_GZIP = 1
_EAGERLY = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100"}
_OVERWRITTEN = b"overwritten"


def write_compacted(
    kafka: EmbeddedKafka, topics: Matrix, topic: str, holes: int, chance: random.Random, widest: int = 4
) -> None:
    """A topic from which Kafka's own cleaner has taken records in so many places or more, one to `widest` at each."""
    topics.create(topic, 1, _EAGERLY)
    producer = topics.producer(batch_num_messages=100, enable_idempotence=True)
    for hole in range(holes):
        for _ in range(chance.randint(1, widest)):
            producer.produce(topic, b"taken away", _OVERWRITTEN, 0)
        for record in range(chance.randint(1, widest)):
            producer.produce(topic, b"value %d/%d" % (hole, record), b"key %d/%d" % (hole, record), 0)
        if hole % 1000 == 999:  # its queue has room for a hundred thousand
            producer.flush(60)
    assert producer.flush(60) == 0

    def cleaned() -> bool:
        """The segment that is written to is never cleaned: another record ends it."""
        producer.produce(topic, b"stirred", _OVERWRITTEN, 0)
        assert producer.flush(30) == 0
        start, end = watermarks(kafka.bootstrap, topic, 0)
        # The end of it is cleaned last; all of it is only read when that is done.
        return all(_clean(kafka, topic, since, end) for since in (max(start, end - 200), start))

    wait_for(cleaned, "the cleaner")


def _clean(kafka: EmbeddedKafka, topic: str, start: int, end: int) -> bool:
    return not any(message.value() == b"taken away" for message in messages(kafka.bootstrap, topic, 0, start, end))


def holes_of(offsets: Iterable[int], start: int, end: int) -> int:
    """In how many places of `[start, end)` offsets are missing."""
    return sum(after - before > 1 for before, after in pairwise([start - 1, *offsets, end]))


def write_late(kafka: EmbeddedKafka, topics: Matrix, topic: str, millions: int, records: int) -> int:
    """A topic whose first records went long ago; the first offset that is left, inside of a batch."""
    topics.create(topic)
    put(kafka.port, topic, 0, [_many()] * millions)
    producer = topics.producer(batch_num_messages=50)
    for i in range(records):
        producer.produce(topic, b"late %d" % i, b"key %d" % i, 0)
    assert producer.flush(30) == 0
    start = millions * MILLION + 17
    for future in topics.admin.delete_records([TopicPartition(topic, 0, start)]).values():
        future.result(30)
    return start


def _many() -> bytes:
    """A batch of a million records without keys and values, some megabytes before and little after compression."""
    inner = (b"\0\0" + varint(delta) + b"\x01\x01\0" for delta in range(MILLION))
    plain = b"".join(varint(len(each)) + each for each in inner)
    return batch_of(0, [], gzip.compress(plain, 1), attributes=_GZIP, delta=MILLION - 1, count=MILLION)
