"""A real broker whose disk is copied and put back, as snapshots of machines are: one cluster, several pasts."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from confluent_kafka import Producer

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir
from tests.support.kafka.consumer_view import Seen, seen
from tests.support.kafka.topic_matrix import BROKER, Matrix

Recorded = dict[int, tuple[bytes | None, bytes | None]]
"""What a consumer saw: key and value by offset."""


class RolledBackKafka:
    """One broker. Ports stay the same, so a disk that is put back comes up as the same cluster."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self.kafka, self.topics = kafka, Matrix(kafka)
        self._data, self._copies = kafka.directory / "data", kafka.directory.parent / "copies"

    @property
    def bootstrap(self) -> str:
        return self.kafka.bootstrap

    def copy_disk(self, name: str, *, running: bool = False) -> None:
        """Stop the broker, keep its disk under a name, and start it again; or copy the disk while it runs."""
        if not running:
            self.kafka.stop()
        _copy(self._data, self._copies / name)
        if not running:
            self.kafka.start()

    def put_back(self, name: str, keep: str = "", restarts: int = 1) -> None:
        """Stop the broker, keep its disk under another name if there is one, and start it on the named copy."""
        self.kafka.stop()
        if keep:
            _copy(self._data, self._copies / keep)
        _copy(self._copies / name, self._data)
        for _ in range(restarts - 1):
            self.kafka.start()
            self.kafka.stop()
        self.kafka.start()

    def disk_of(self, name: str) -> Path:
        return self._copies / name

    def write(self, topic: str, past: str, records: int, batch: int = 10, partition: int = 0) -> None:
        """Batches of so many records, which name the past that wrote them."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5000, "batch.num.messages": batch})
        for number in range(records):
            producer.produce(topic, b"%s %d " % (past.encode(), number) * 5, b"k%d" % number, partition)
            if number % batch == batch - 1:
                assert producer.flush(60) == 0
        assert producer.flush(60) == 0

    def recorded(self, *topics: str) -> dict[str, Recorded]:
        """Every record of these topics, by an independent consumer."""
        return {topic: values(seen(self.bootstrap, topic, 0)) for topic in topics}


def _copy(source: Path, target: Path) -> None:
    """A running broker replaces its small files meanwhile: those that are gone are left out, as in any snapshot."""

    def copy(one: str, other: str) -> None:
        with suppress(FileNotFoundError):
            shutil.copyfile(one, other)

    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=copy)


def values(found: dict[int, Seen]) -> Recorded:
    return {offset: (each.key, each.value) for offset, each in found.items()}


def written_by(records: Recorded) -> set[str]:
    """Which pasts wrote these records."""
    return {(value or b"").split()[0].decode() for _, value in records.values()}


@contextmanager
def rolled_back_kafka(directory: Path, topics: Sequence[str] = ()) -> Iterator[RolledBackKafka]:
    with EmbeddedKafka(directory / "broker", cache_dir(os.environ, Path.home()), properties=BROKER) as kafka:
        made = RolledBackKafka(kafka)
        for topic in topics:
            made.topics.create(topic)
        yield made
