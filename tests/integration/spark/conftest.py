"""One standalone cluster of Spark for all tests that need one (group `spark-cluster`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.spark_cluster import SparkCluster, spark_cluster


@pytest.fixture(scope="session")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that the second worker finds empty."""
    return tmp_path_factory.mktemp("hidden")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, hidden: Path) -> Iterator[SparkCluster]:
    """A master and two workers, with a secret."""
    with spark_cluster(tmp_path_factory.mktemp("cluster"), hidden=hidden) as running:
        yield running
