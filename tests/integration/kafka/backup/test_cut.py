"""Where a backup cuts a cluster that does not hold still."""

import threading
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.admin.offsets import describe_producers, log_bounds
from logkeep.kafka.admin.transactions import list_transactions
from logkeep.kafka.backup.cut import settle
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition as Log
from tests.support.kafka.background_clients import running
from tests.support.kafka.client_readers import committed_offsets, messages
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-plain")
PARTITIONS = 4
ROUNDS = 20
SUPPLY = 80_000
"""Records for the copier: more than it can copy while backups are taken, also where these take ten seconds each."""
MOST_WAITING = 50_000


def _commit(kafka: EmbeddedKafka, group: str, *offsets: TopicPartition) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=list(offsets), asynchronous=False)
    consumer.close()


def test_a_commit_behind_the_end_is_clamped_and_told(kafka: EmbeddedKafka, topics: Matrix, archive: Archive) -> None:
    topics.create("short")
    producer = topics.producer()
    for _ in range(7):
        producer.produce("short", b"v", None, 0)
    producer.flush(30)
    _commit(kafka, "ahead", TopicPartition("short", 0, 5000))
    done = archive.back_up("short")
    (group,) = [g for g in archive.record(done.entry.id).groups if g.name == "ahead"]
    assert [(c.offset, c.committed) for c in group.commits] == [(7, 5000)]
    (finding,) = done.findings
    assert (finding.code, "5000" in finding.what, "ahead" in finding.where) == ("commit-clamped", True, True)


def _opened(topics: Matrix, topic: str, name: str) -> Producer:
    """A producer with three records in an open transaction."""
    producer = topics.producer(transactional_id=name)
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce(topic, b"open", None, 0)
    producer.flush(30)
    return producer


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_the_cut_moves_behind_a_transaction_that_is_decided_meanwhile(
    kafka: EmbeddedKafka, topics: Matrix, end: str
) -> None:
    """The decision falls between the look at the ends and the question to the coordinator."""
    topic = topics.create(f"decided-{end[:5]}")
    producer, log = _opened(topics, topic, topic), Log(topic, 0)
    with Cluster(ClientSettings(endpoints(kafka.bootstrap))) as cluster:
        bounds = log_bounds(cluster, [log])
        assert (bounds[log].last_stable, bounds[log].high_watermark) == (0, 3)
        ends = [getattr(producer, end)]

        def states() -> dict[int, str]:
            while ends:
                ends.pop()(30)
            return {t.producer_id: t.state for t in list_transactions(cluster)}

        settled = settle(
            bounds,
            producers=lambda some: describe_producers(cluster, some),
            states=states,
            reread=lambda some: log_bounds(cluster, some),
            pause=time.sleep,
        )
    assert (settled.bounds[log].high_watermark, settled.open_transactions) == (4, ())


def test_a_transaction_that_goes_on_is_recorded_as_open(topics: Matrix, archive: Archive) -> None:
    topics.create("undecided")
    producer = _opened(topics, "undecided", "undecided")
    first = archive.back_up("undecided").entry.id
    (hanging,) = archive.record(first).open_transactions
    assert (hanging.topic, hanging.partition, hanging.first_offset) == ("undecided", 0, 0)
    assert committed_offsets(archive.batches(first, "undecided")) == set()
    producer.commit_transaction(30)
    second = archive.back_up("undecided").entry.id
    assert archive.record(second).open_transactions == ()
    assert committed_offsets(archive.batches(second, "undecided")) == {0, 1, 2}


def _count(topics: Matrix, topic: str, acknowledged: dict[int, int]) -> Callable[[threading.Event], None]:
    """Write 0, 1, 2 … to every partition, and note how many the broker took."""

    def delivered(error: KafkaError | None, message: object) -> None:
        assert error is None
        acknowledged[message.partition()] += 1  # type: ignore[attr-defined]  # librdkafka's message, without types

    def work(stop: threading.Event) -> None:
        producer = topics.producer(enable_idempotence=True, linger_ms=1)
        number = 0
        while not stop.is_set():
            for partition in range(PARTITIONS):
                producer.produce(topic, b"%d" % number, None, partition, on_delivery=delivered)
            number += 1
            producer.poll(0)
            while len(producer) > MOST_WAITING and not stop.is_set():  # a broker that has just started is slow
                producer.poll(0.05)
            if number % 100 == 0:
                stop.wait(0.002)
        producer.flush(30)

    return work


def _follow(
    kafka: EmbeddedKafka, topic: str, group: str, committed: threading.Event
) -> Callable[[threading.Event], None]:
    """A group that commits its position all the time; `committed` is set after the first commit."""

    def work(stop: threading.Event) -> None:
        settings = {"bootstrap.servers": kafka.bootstrap, "group.id": group, "enable.auto.commit": False}
        consumer = Consumer(settings | {"auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        try:
            while not stop.is_set():
                if any(m.error() is None for m in consumer.consume(500, 0.05)):
                    consumer.commit(asynchronous=False)
                    committed.set()
        finally:
            consumer.close()

    return work


def _bounds_round(kafka: EmbeddedKafka, topics: Matrix, archive: Archive, topic: str) -> int:
    """Two backups while producers count and a group commits; how many records lie below the second cut."""
    topics.create(topic, PARTITIONS)
    acknowledged = dict.fromkeys(range(PARTITIONS), 0)
    committed = threading.Event()
    with running(_count(topics, topic, acknowledged), _follow(kafka, topic, f"{topic}-group", committed)):
        wait_for(lambda: min(acknowledged.values()) > 2000 and committed.is_set(), "some records and a commit")
        first = archive.back_up(topic).entry.id
        before = dict(acknowledged)
        second = archive.back_up(topic).entry.id
    for backup_id in (first, second):
        ends = {p: archive.cut(backup_id, topic, p).end for p in range(PARTITIONS)}
        for partition, end in ends.items():
            assert archive.batches(backup_id, topic, partition) == on_disk(kafka, topic, partition, 0, end)
            values = [int(m.value() or b"") for m in messages(kafka.bootstrap, topic, partition, 0, end)]
            assert values == list(range(end)), "the cut of an unbroken count is an unbroken count"
        (group,) = [g for g in archive.record(backup_id).groups if g.name == f"{topic}-group"]
        assert all(c.offset == c.committed <= ends[c.partition] for c in group.commits)
    assert all(archive.cut(second, topic, p).end > archive.cut(first, topic, p).end for p in before)
    archive.check(first, second)
    return sum(archive.cut(second, topic, p).end for p in range(PARTITIONS))


def test_the_archive_is_exactly_what_lies_below_the_cut(kafka: EmbeddedKafka, topics: Matrix, archive: Archive) -> None:
    _bounds_round(kafka, topics, archive, "counted")


@pytest.mark.soak
def test_the_archive_is_exactly_what_lies_below_the_cut_often(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive
) -> None:
    records = [_bounds_round(kafka, topics, archive, f"counted-{round_}") for round_ in range(ROUNDS)]
    print(f"bounds: {ROUNDS} rounds of 2 backups, {sum(records)} records below the cuts, none else archived")


def _copier(kafka: EmbeddedKafka, topics: Matrix, name: str, copied: list[int]) -> Callable[[threading.Event], None]:
    """Exactly once from `<name>-in` to `<name>-out`: output and position are committed in one transaction."""

    def work(stop: threading.Event) -> None:
        settings = {"bootstrap.servers": kafka.bootstrap, "group.id": name, "enable.auto.commit": False}
        consumer = Consumer(settings | {"auto.offset.reset": "earliest", "isolation.level": "read_committed"})
        consumer.subscribe([f"{name}-in"])
        producer = topics.producer(transactional_id=name, linger_ms=0)
        producer.init_transactions(30)
        try:
            while not stop.is_set():
                taken = [m for m in consumer.consume(20, 0.1) if m.error() is None]
                if not taken:
                    continue
                producer.begin_transaction()
                for message in taken:
                    producer.produce(f"{name}-out", b"%d" % message.offset(), None, message.offset() % 2)
                positions = consumer.position(consumer.assignment())
                producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
                producer.commit_transaction(30)
                copied.append(len(taken))
        finally:
            consumer.close()

    return work


def _once_round(kafka: EmbeddedKafka, topics: Matrix, archive: Archive, name: str) -> int:
    """Three backups while the copier works; where it stood in the last of them."""
    topics.create(f"{name}-in")
    topics.create(f"{name}-out", 2)
    producer = topics.producer()
    for i in range(SUPPLY):
        producer.produce(f"{name}-in", b"%d" % i, None, 0)
    assert producer.flush(60) == 0
    copied: list[int] = []
    with running(_copier(kafka, topics, name, copied)):
        wait_for(lambda: len(copied) > 5, "the copier")
        done = [archive.back_up(f"{name}-.*") for _ in range(3)]
    others = {"topic-left-out"}  # topics of earlier rounds, which have an archive in common
    assert [f for each in done for f in each.findings if f.code not in others] == []
    ids = [each.entry.id for each in done]
    assert sum(copied) < SUPPLY, "the copier was done before the backups"
    return [_once(kafka, archive, backup_id, name) for backup_id in ids][-1]


def _once(kafka: EmbeddedKafka, archive: Archive, backup_id: int, name: str) -> int:
    out: list[int] = []
    for partition in range(2):
        topic = f"{name}-out"
        good = committed_offsets(archive.batches(backup_id, topic, partition))
        end = archive.cut(backup_id, topic, partition).end
        seen = messages(kafka.bootstrap, topic, partition, 0, end)
        out += [int(m.value() or b"") for m in seen if m.offset() in good]
    (group,) = [g for g in archive.record(backup_id).groups if g.name == name]
    (position,) = [c.offset for c in group.commits]
    assert sorted(out) == list(range(position)), (len(out), position)
    return position


def test_an_exactly_once_copier_stays_exactly_once(kafka: EmbeddedKafka, topics: Matrix, archive: Archive) -> None:
    _once_round(kafka, topics, archive, "once")


@pytest.mark.soak
def test_an_exactly_once_copier_stays_exactly_once_often(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive
) -> None:
    positions = [_once_round(kafka, topics, archive, f"once-{round_}") for round_ in range(ROUNDS)]
    print(f"exactly once: {ROUNDS} rounds of 3 backups, positions of the last ones {positions}")
