"""The one cluster of three brokers that the suite starts; tests that use it are in the group `kafka-three`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.spark.cache import cache_dir
from tests.servers.kafka_cluster import KafkaCluster, kafka_cluster


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with kafka_cluster(tmp_path_factory.mktemp("three"), cache_dir(os.environ, Path.home())) as running:
        yield running


@pytest.fixture
def cluster(three_brokers: KafkaCluster) -> KafkaCluster:
    """All three are up, whatever the test before did to them."""
    for member in three_brokers.members.values():
        if member.pid is None:
            member.start()
    return three_brokers
