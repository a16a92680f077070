"""One broker behind a proxy for all tests of replays, and an archive of every kind of log."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.spark.cache import cache_dir
from tests.kafka.matrix import Matrix
from tests.kafka.replaying import Target
from tests.kafka.whole import Archive, new_place
from tests.kafka.written import written_matrix
from tests.servers.shaky_kafka import Shaky, shaky_kafka


@pytest.fixture(scope="session")
def shaky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shaky]:
    directory, cache = tmp_path_factory.mktemp("replay"), cache_dir(os.environ, Path.home())
    with shaky_kafka(directory / "broker", cache) as running:
        yield running


@pytest.fixture(scope="session")
def kafka(shaky: Shaky) -> EmbeddedKafka:
    return shaky.kafka


@dataclass(frozen=True)
class Archived:
    """The matrix, written and backed up once."""

    matrix: Matrix
    archive: Archive
    backup_id: int

    @property
    def target(self) -> Target:
        return Target(self.archive.bootstrap, self.archive, self.backup_id)


@pytest.fixture(scope="session")
def archived(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archived]:
    archive = Archive(kafka.bootstrap, new_place(tmp_path_factory.mktemp("archive") / "repository"))
    with written_matrix(kafka) as matrix:
        backup_id = archive.back_up(*matrix.topics).entry.id
        yield Archived(matrix, archive, backup_id)
