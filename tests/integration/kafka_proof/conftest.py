"""One broker for tests that look into a target or compare with the broker's own answers."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.repository.chain import Place
from logkeep.spark.cache import cache_dir
from logkeep.store.local import LocalStore
from tests.kafka.matrix import BROKER, Matrix
from tests.kafka.plain import PlainBrokers


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


@pytest.fixture
def place(tmp_path: Path) -> Place:
    store = LocalStore(tmp_path / "repository")
    store.create()
    return Place(store, "repository-1", "prod")
