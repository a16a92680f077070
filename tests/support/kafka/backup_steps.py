"""Steps that tests of whole backups share: fill a topic, run a backup beside the test, compare with the broker."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive

T = TypeVar("T")
BATCH_RECORDS = 20


def fill(topics: Matrix, topic: str, partitions: int, records: int, size: int = 1000) -> str:
    """A new topic with so many records in each partition, whose bytes no codec makes smaller."""
    topics.create(topic, partitions)
    add(topics, topic, partitions, records, size)
    return topic


def add(topics: Matrix, topic: str, partitions: int, records: int, size: int = 1000) -> None:
    producer = topics.producer(batch_num_messages=BATCH_RECORDS)
    for i in range(records * partitions):
        producer.produce(topic, os.urandom(size), None, i % partitions)
        producer.poll(0)
    assert producer.flush(60) == 0


def assert_whole(archive: Archive, kafka: EmbeddedKafka, backup_id: int) -> None:
    """What the backup has of every log is, batch for batch, what the broker holds; and it verifies."""
    for log, cut in archive.cuts(backup_id).items():
        found = archive.batches(backup_id, log.topic, log.partition)
        assert found == on_disk(kafka, log.topic, log.partition, cut.start, cut.end), str(log)
    archive.check(backup_id)


@contextmanager
def beside(work: Callable[[], T]) -> Iterator["Future[T]"]:
    """Run it in a thread while the block runs; it is waited for in any case."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(work)
