"""One broker for tests that look into a target or compare with the broker's own answers."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local.store import LocalStore
from tests.support.kafka.matrix_broker import until_cleaned
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.topic_matrix import BROKER, Matrix, let_go


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    directory, cache = tmp_path_factory.mktemp("proof"), cache_dir(os.environ, Path.home())
    with EmbeddedKafka(directory / "broker", cache, properties=BROKER) as running:
        yield running


@pytest.fixture(scope="session")
def brokers(kafka: EmbeddedKafka) -> PlainBrokers:
    return PlainBrokers("127.0.0.1", kafka.port)


@pytest.fixture(scope="session")
def topics(kafka: EmbeddedKafka) -> Matrix:
    return Matrix(kafka)


@pytest.fixture(scope="session")
def shapes(kafka: EmbeddedKafka, topics: Matrix) -> Iterator[list[str]]:
    """Delete horizons, append times, transactions, strange times, a start inside of a batch, disorder."""
    topics.compacted()
    topics.append_time()
    still_open = topics.transactions()
    topics.shapes()
    topics.later_start()
    _disorder(topics)
    until_cleaned(topics, kafka)
    yield ["compacted", "append-time", "transactions", "shapes", "later-start", "disorder"]
    let_go(still_open)


def _disorder(topics: Matrix) -> None:
    choice, name = random.Random(5), topics.create("disorder", 1, {"retention.ms": "-1"})
    for codec in ("none", "zstd"):
        producer = topics.producer(compression_type=codec, batch_num_messages=20)
        for i in range(150):
            producer.produce(name, b"value %d" % i, None, 0, timestamp=1_700_000_000_000 + choice.randrange(400))
            if i % 10 == 9:
                producer.flush(30)
        producer.flush(30)


@pytest.fixture
def place(tmp_path: Path) -> SourceRef:
    store = LocalStore(tmp_path / "repository")
    store.create()
    return SourceRef(store, "repository-1", "prod")
