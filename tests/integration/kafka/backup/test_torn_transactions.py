"""Transactions over several partitions: all of one is below the cut, or nothing of it, or the user is told."""

import threading
import time
from collections.abc import Callable

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.kafka.background_clients import running
from tests.support.kafka.client_readers import committed_offsets, messages
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-plain")
PARTITIONS = 3


_REST = 8
"""So many times as long as a transaction took its writer rests: that is time for a look, on a slow machine too."""


def _everywhere(topics: Matrix, topic: str, pause_s: float, done: list[int]) -> Callable[[threading.Event], None]:
    """Write the same number to every partition, in one transaction after the other; with rests in between, or none."""

    def work(stop: threading.Event) -> None:
        producer = topics.producer(transactional_id=topic, linger_ms=0)
        producer.init_transactions(30)
        while not stop.is_set():
            began_s = time.monotonic()
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce(topic, b"%d" % len(done), None, partition)
            producer.commit_transaction(30)
            done.append(len(done))
            stop.wait(max(pause_s, _REST * (time.monotonic() - began_s)) if pause_s else 0)

    return work


def _numbers(kafka: EmbeddedKafka, archive: Archive, backup_id: int, topic: str) -> list[list[int]]:
    """What a restore would bring back, per partition."""
    found = []
    for partition in range(PARTITIONS):
        good = committed_offsets(archive.batches(backup_id, topic, partition))
        end = archive.cut(backup_id, topic, partition).end
        seen = messages(kafka.bootstrap, topic, partition, 0, end)
        found.append([int(m.value() or b"") for m in seen if m.offset() in good])
    return found


def _rounds(kafka: EmbeddedKafka, topics: Matrix, archive: Archive, topic: str, pause_s: float, count: int) -> int:
    """How many of the backups had to say that a transaction may be torn."""
    topics.create(topic, PARTITIONS)
    done: list[int] = []
    with running(_everywhere(topics, topic, pause_s, done)):
        wait_for(lambda: len(done) > 5, "some transactions")
        backups = [archive.back_up(topic) for _ in range(count)]
    told = 0
    for each in backups:
        warned = [f for f in each.findings if f.code == "transaction-torn"]
        told += bool(warned)
        first, *others = _numbers(kafka, archive, each.entry.id, topic)
        assert first == list(range(len(first)))
        if not warned:
            assert all(other == first for other in others)
    return told


def test_a_transaction_is_whole_or_not_there(kafka: EmbeddedKafka, topics: Matrix, archive: Archive) -> None:
    assert _rounds(kafka, topics, archive, "everywhere", 0.05, 4) == 0


def test_what_never_stands_still_is_told(kafka: EmbeddedKafka, topics: Matrix, archive: Archive) -> None:
    """Whether a quiet moment is found is up to chance; without one the backup says so."""
    _rounds(kafka, topics, archive, "hurried", 0, 2)


@pytest.mark.soak
@pytest.mark.parametrize("round_", range(10))
def test_a_transaction_is_whole_or_not_there_often(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive, round_: int
) -> None:
    _rounds(kafka, topics, archive, f"everywhere-{round_}", 0.02 * (round_ % 3), 6)
