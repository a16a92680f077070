"""One broker for all tests of the Kafka client."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.model.cache import cache_dir


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka"), cache_dir(os.environ, Path.home())) as broker:
        yield broker


@pytest.fixture
def cluster(kafka: EmbeddedKafka) -> Iterator[Cluster]:
    with Cluster(ClientSettings(endpoints(kafka.bootstrap))) as made:
        yield made
