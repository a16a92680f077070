"""A consume-process-produce application of two stages in processes of its own, its clients, and its judge.

`charging` reads orders and makes a payment and a fee of each; `booking` reads both and writes a receipt for each.
`python -m tests.support.kafka.participant_processes BOOTSTRAP NAME STAGE HOW SESSION_MS` is one process; HOW is
`transactions`, `without`, or `never` (without transactions, and without a commit: what it produced, its successor
produces again).
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from logkeep.application.kafka.participant import Output, Participant
from tests.support.kafka.consumer_view import Seen, seen
from tests.support.processes import wait_for

_ROOT = Path(__file__).parents[3]
TOPICS = ("orders", "payments", "fees", "receipts")
PARTITIONS = 2
INPUTS = {"charging": ("orders",), "booking": ("payments", "fees")}
OUTPUTS = {"charging": ("payments", "fees"), "booking": ("receipts",)}
_LONG_S = 3600.0
_SESSION_MS = 6000
"""So soon a worker that was killed is replaced."""
_NO_GROUP = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.GROUP_ID_NOT_FOUND,
)
"""The broker has not begun to coordinate the group."""


def charge(message: Message, output: Output) -> None:
    """Two outputs for each order: both must arrive, or none."""
    output.send(f"{_app(message)}-payments", message.value(), message.key())
    output.send(f"{_app(message)}-fees", message.value(), message.key())


def book(message: Message, output: Output) -> None:
    kind = b"payment " if message.topic().endswith("payments") else b"fee "
    output.send(f"{_app(message)}-receipts", kind + message.value(), message.key())


def _app(message: Message) -> str:
    return str(message.topic()).rpartition("-")[0]


def participant(bootstrap: str, name: str, stage: str, how: str, session_ms: int = _SESSION_MS) -> Participant:
    return Participant(
        name,
        f"{name}-{stage}",
        [f"{name}-{each}" for each in INPUTS[stage]],
        charge if stage == "charging" else book,
        outputs=[f"{name}-{each}" for each in OUTPUTS[stage]],
        config={"bootstrap.servers": bootstrap, "session.timeout.ms": session_ms},
        transactional=how == "transactions",
        together=stage == "booking",
        commit_every_s=_LONG_S if how == "never" else 0.1,
    )


def main(bootstrap: str, name: str, stage: str, how: str, session_ms: str) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    participant(bootstrap, name, stage, how, int(session_ms)).run(stop.is_set)


@dataclass
class Workers:
    """The processes of one application on one cluster; what still runs is killed at the end."""

    bootstrap: str
    name: str
    how: str
    home: Path
    session_ms: int = _SESSION_MS
    running: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def join(self, stage: str, how: str = "") -> "subprocess.Popen[bytes]":
        words = [sys.executable, "-m", "tests.support.kafka.participant_processes"]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])}
        with (self.home / f"{stage}.out").open("ab") as out:
            arguments = [self.bootstrap, self.name, stage, how or self.how, str(self.session_ms)]
            process = subprocess.Popen([*words, *arguments], cwd=_ROOT, env=environ, stdout=out, stderr=out)
        self.running.append(process)
        return process

    def leave(self, process: "subprocess.Popen[bytes]") -> None:
        """It ends by itself, without an error."""
        process.send_signal(signal.SIGCONT)
        process.terminate()
        assert process.wait(60) == 0, self.said()
        self.running.remove(process)

    def die(self, process: "subprocess.Popen[bytes]") -> None:
        process.kill()
        process.wait()
        self.running.remove(process)

    def said(self) -> str:
        return "\n".join(path.read_text()[-3000:] for path in self.home.glob("*.out"))

    def check(self) -> None:
        """Nobody ended who was not asked to."""
        assert [p.poll() for p in self.running if p.poll() is not None] == [], self.said()

    @contextmanager
    def __call__(self) -> Iterator["Workers"]:
        try:
            yield self
            self.check()
            while self.running:
                self.leave(self.running[0])
        finally:
            for process in self.running:
                process.kill()
                process.wait()


@dataclass
class Clients:
    """Orders until the block ends: `confirmed` are those that the broker has confirmed."""

    bootstrap: str
    name: str
    every_s: float = 0.001
    confirmed: list[int] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def __call__(self) -> Iterator["Clients"]:
        thread = threading.Thread(target=self._send)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join(60)

    def more(self, orders: int) -> None:
        enough = len(self.confirmed) + orders
        wait_for(lambda: len(self.confirmed) > enough, "orders")

    def _send(self) -> None:
        producer, number = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 1}), 0
        while not self._stop.is_set():
            value = b"%d" % number
            producer.produce(f"{self.name}-orders", value, value, on_delivery=self._noted(number))
            producer.poll(self.every_s)
            number += 1
        producer.flush(30)

    def _noted(self, number: int):  # type: ignore[no-untyped-def]  # a callback of librdkafka
        return lambda error, _: self.confirmed.append(number) if error is None else None


@dataclass
class Stranger:
    """Another application on the same topics: it knows no headers of ours, and writes a gift for every tenth order."""

    bootstrap: str
    name: str
    confirmed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def group(self) -> str:
        return f"{self.name}-stranger"

    @contextmanager
    def __call__(self) -> Iterator["Stranger"]:
        thread = threading.Thread(target=self._work)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join(60)

    def _work(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 1})
        settings = {"bootstrap.servers": self.bootstrap, "group.id": self.group, "auto.commit.interval.ms": 100}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest", "isolation.level": "read_committed"})
        consumer.subscribe([f"{self.name}-orders", f"{self.name}-receipts"])
        while not self._stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error() and message.topic().endswith("orders"):
                self._give(producer, message)
        producer.flush(30)
        consumer.close()

    def _give(self, producer: Producer, message: Message) -> None:
        if int(message.value()) % 10 == 0:
            value = b"gift " + message.value()
            noted = lambda error, _: self.confirmed.append(value.decode()) if error is None else None  # noqa: E731
            producer.produce(
                f"{self.name}-payments", value, message.key(), headers=[("trace", b"1")], on_delivery=noted
            )
        producer.poll(0)


def everything(bootstrap: str, name: str) -> dict[tuple[str, int], dict[int, Seen]]:
    """All committed records of the application's topics, as librdkafka reads them."""
    return {(each, p): seen(bootstrap, f"{name}-{each}", p) for each in TOPICS for p in range(PARTITIONS)}


def values(bootstrap: str, name: str, topic: str) -> list[str]:
    found = (seen(bootstrap, f"{name}-{topic}", p) for p in range(PARTITIONS))
    return [(record.value or b"").decode() for records in found for record in records.values()]


def members(bootstrap: str, group: str) -> int:
    """How many members share out the partitions of a group; 0 while they have not agreed."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    try:
        found = client.describe_consumer_groups([group])[group].result(30)
    except TimeoutError:
        return 0
    except KafkaException as error:
        if error.args[0].code() in _NO_GROUP:
            return 0
        raise
    return len(found.members) if found.state == ConsumerGroupState.STABLE else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
