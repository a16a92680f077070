"""An application of two stages on a real broker: its cut restored elsewhere and drained, judged by kafka-python."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition

from logkeep.application.kafka.documents import MarkerDocument, TaskCheckpoint, key_of, sealed, unsealed
from logkeep.application.kafka.participant import Participant
from logkeep.application.kafka.topics import TopicReader
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import UsageError
from tests.integration.kafka.restore.scene import Scene, log_end, troubles
from tests.support.kafka.client_view_of_configs import admin
from tests.support.kafka.participant_processes import book, charge
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-restore")
PARTITIONS = 2


@dataclass
class Running:
    """Both stages, each in a thread, until the block ends."""

    kafka: EmbeddedKafka
    application: str
    transactional: bool = True
    errors: list[BaseException] = field(default_factory=list)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        stop = threading.Event()
        stages = [
            ("charging", ["orders"], charge, ["payments", "fees"]),
            ("charging", ["orders"], charge, ["payments", "fees"]),
            ("booking", ["payments", "fees"], book, ["receipts"]),
        ]
        threads = [threading.Thread(target=self._stage, args=(stop, *stage)) for stage in stages]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)
            assert not self.errors, self.errors

    def _stage(self, stop: threading.Event, group: str, inputs: list[str], handler: Any, outputs: list[str]) -> None:
        name = self.application
        try:
            Participant(
                name,
                f"{name}-{group}",
                [f"{name}-{each}" for each in inputs],
                handler,
                outputs=[f"{name}-{each}" for each in outputs],
                config={"bootstrap.servers": self.kafka.bootstrap},
                transactional=self.transactional,
                together=group == "booking",
            ).run(stop.is_set)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.errors.append(error)


@contextmanager
def orders(kafka: EmbeddedKafka, application: str) -> Iterator[list[int]]:
    """A client sends orders until the block ends; the list has those that the broker has confirmed."""
    confirmed, stop = list[int](), threading.Event()
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 1})

    def send() -> None:
        number = 0
        while not stop.is_set():
            value, noted = str(number).encode(), number
            producer.produce(
                f"{application}-orders",
                value,
                value,
                on_delivery=lambda error, _, noted=noted: confirmed.append(noted) if error is None else None,
            )
            producer.poll(0.001)
            number += 1
        producer.flush(30)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield confirmed
    finally:
        stop.set()
        thread.join(60)


def values(kafka: EmbeddedKafka, topic: str) -> list[str]:
    """What another client library reads, committed records only."""
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap, isolation_level="read_committed")
    logs = [TopicPartition(topic, p) for p in range(PARTITIONS)]
    consumer.assign(logs)
    consumer.seek_to_beginning()
    ends, found = consumer.end_offsets(logs), list[str]()
    while any(consumer.position(log) < ends[log] for log in logs):
        for batch in consumer.poll(500).values():
            found += [record.value.decode() for record in batch]
    consumer.close()
    return found


def make_topics(scene: Scene, application: str) -> None:
    for each in ("orders", "payments", "fees", "receipts"):
        scene.topics.create(f"{application}-{each}", PARTITIONS)


@pytest.fixture
def groups_removed(scene: Scene) -> Iterator[None]:
    """Other tests compare all groups of the brokers, and confluent-kafka reads the metadata of offsets wrongly."""
    yield
    for kafka in (scene.kafka, scene.target):
        client = admin(kafka)
        names = [g.group_id for g in client.list_consumer_groups(request_timeout=30).result(30).valid]
        own = [name for name in names if name.startswith("shop")]
        for done in client.delete_consumer_groups(own).values() if own else ():
            done.result(30)


@pytest.mark.usefixtures("groups_removed")
@pytest.mark.parametrize(
    "transactional", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["transactions", "without"]
)
def test_every_order_before_the_cut_is_booked_once_and_none_after_it(scene: Scene, transactional: bool) -> None:
    name = f"shop{int(transactional)}"
    make_topics(scene, name)
    source = ("--bootstrap-servers", scene.kafka.bootstrap, "--source", name)
    with Running(scene.kafka, name, transactional)(), orders(scene.kafka, name) as confirmed:
        wait_for(lambda: len(confirmed) > 300, "orders")
        wait_for(lambda: log_end(scene.kafka, f"{name}-receipts") > 100, "receipts")
        before = set(confirmed)
        done = scene.commands.json("kafka", "backup", "--application", name, *source)
        after = max(confirmed)
        wait_for(lambda: max(confirmed) > after + 100, "orders after the backup")
    assert not troubles(done)
    words = ("kafka", "restore", "latest", "--source", name, "--bootstrap-servers", scene.target.bootstrap)
    restored = scene.commands.json(*words, "--engine", "inline", "--yes")
    assert restored["verdict"] == "proven"
    kept = {int(v) for v in values(scene.target, f"{name}-orders")}
    assert before <= kept
    assert max(kept) <= after + 1
    with Running(scene.target, name, transactional)():
        wait_for(lambda: len(set(values(scene.target, f"{name}-receipts"))) >= 2 * len(kept), "the rest")
    booked = Counter(values(scene.target, f"{name}-receipts"))
    assert set(booked) == {f"{kind} {number}" for kind in ("payment", "fee") for number in kept}
    if transactional:
        assert set(booked.values()) == {1}


def _recorded(kafka: EmbeddedKafka, topic: str) -> dict[str, int]:
    """The ids of checkpoints by key, as compaction keeps them."""
    found: dict[str, int] = {}
    with closing(TopicReader({"bootstrap.servers": kafka.bootstrap}, topic)) as reader:
        for message in reader.to_end():
            key, value = message.key().decode(), message.value()
            found.pop(key, None)
            if value is not None:
                found[key] = unsealed(value, TaskCheckpoint, topic).id
    return found


def _has_recorded(owner: Participant, kafka: EmbeddedKafka, kept: dict[str, int]) -> bool:
    for _ in range(20):
        owner.step()
    return _recorded(kafka, "shopkeys.checkpoints") == kept


@pytest.mark.usefixtures("groups_removed")
def test_a_task_keeps_its_last_checkpoint_under_one_key_for_its_next_owner(scene: Scene) -> None:
    config = {"bootstrap.servers": scene.kafka.bootstrap}
    scene.topics.create("shopkeys-orders", 1)
    with pytest.raises(UsageError, match="the cluster has no topic shopkeys-nowhere"):
        Participant("shopkeys", "g", ["shopkeys-orders"], charge, outputs=["shopkeys-nowhere"], config=config)
    producer = Producer(config)
    for numbers in ((5, 6), (7,)):  # two owners, one after the other
        owner = Participant("shopkeys", "shopkeys-g", ["shopkeys-orders"], charge, config=config)
        for number in numbers:
            marker = MarkerDocument(application="shopkeys", id=number, nonce="n", repository="r")
            producer.produce("shopkeys.control", sealed(marker), key_of(marker), 0)
            producer.flush(30)
            task = "shopkeys-g/shopkeys-orders/0"
            kept = {f"lk/last/{task}": number, f"lk/checkpoint/{task}/{number}": number}
            wait_for(partial(_has_recorded, owner, scene.kafka, kept), f"checkpoint {number}")
        owner.close()


def test_an_application_that_never_declared_itself_is_refused_with_what_to_start(scene: Scene) -> None:
    words = ("kafka", "backup", "--application", "nowhere", "--source", "nowhere")
    said = scene.commands.error(*words, "--bootstrap-servers", scene.kafka.bootstrap, code=40)
    assert "no participant of nowhere has declared itself in nowhere.control" in said
    assert "`logkeep app backup`" in said
