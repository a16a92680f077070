"""A cluster with the matrix of topics, and an empty one to restore to; a new repository for each module."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir
from tests.integration.kafka.restore.drivers import Drivers, drivers
from tests.integration.kafka.restore.scene import Scene
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.kafka.whole_backups import new_place


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """What is backed up."""
    directory, cache = tmp_path_factory.mktemp("restored-from"), cache_dir(os.environ, Path.home())
    with EmbeddedKafka(directory / "broker", cache, properties=BROKER) as running:
        yield running


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """What is restored to."""
    directory, cache = tmp_path_factory.mktemp("restored-to"), cache_dir(os.environ, Path.home())
    with EmbeddedKafka(directory / "broker", cache, properties=BROKER) as running:
        yield running


@pytest.fixture(scope="session")
def topics(kafka: EmbeddedKafka) -> Matrix:
    """For making topics."""
    return Matrix(kafka)


@pytest.fixture(scope="session")
def forks() -> Iterator[Drivers]:
    """For commands that are killed."""
    with drivers() as opened:
        yield opened


@pytest.fixture
def repo(tmp_path: Path) -> Filled:
    """An empty repository that the real command works on."""
    made = Filled(tmp_path / "home")
    made.home.mkdir()
    share_kernels(made.home)
    new_place(made.root)
    return made


@pytest.fixture
def scene(kafka: EmbeddedKafka, target: EmbeddedKafka, topics: Matrix, repo: Filled) -> Scene:
    return Scene(kafka, target, topics, repo)
