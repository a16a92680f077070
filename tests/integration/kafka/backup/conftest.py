"""One broker for all tests of whole backups, one behind a proxy, and a new repository for each test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.servers.proxied_kafka import Shaky, shaky_kafka

_MORE = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    directory, cache = tmp_path_factory.mktemp("whole"), cache_dir(os.environ, Path.home())
    with EmbeddedKafka(directory / "broker", cache, properties=BROKER | _MORE) as running:
        yield running


@pytest.fixture(scope="session")
def topics(kafka: EmbeddedKafka) -> Matrix:
    """For making topics."""
    return Matrix(kafka)


@pytest.fixture
def archive(kafka: EmbeddedKafka, tmp_path: Path) -> Archive:
    return Archive(kafka.bootstrap, new_place(tmp_path / "repository"))


@pytest.fixture(scope="session")
def shaky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shaky]:
    """One broker for all tests of what goes wrong on the way."""
    directory, cache = tmp_path_factory.mktemp("shaky"), cache_dir(os.environ, Path.home())
    with shaky_kafka(directory / "broker", cache) as running:
        yield running


@pytest.fixture
def faulty(shaky: Shaky, tmp_path: Path) -> Archive:
    return Archive(shaky.bootstrap, new_place(tmp_path / "repository"))


@pytest.fixture
def repo(tmp_path: Path) -> Filled:
    """An empty repository that the real command works on."""
    made = Filled(tmp_path / "home")
    made.home.mkdir()
    share_kernels(made.home)
    new_place(made.root)
    return made
