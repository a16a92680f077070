"""One broker behind a proxy for all tests of replays, and an archive of every kind of log."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir
from tests.integration.kafka.replay.attempts import Attempts, attempts
from tests.support.kafka.backup_steps import fill
from tests.support.kafka.matrix_broker import written_matrix
from tests.support.kafka.replay_into_topics import Target
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.servers.proxied_kafka import Shaky, shaky_kafka


@pytest.fixture(scope="session")
def shaky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shaky]:
    directory, cache = tmp_path_factory.mktemp("replay"), cache_dir(os.environ, Path.home())
    soon = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": "500"}
    with shaky_kafka(directory / "broker", cache, **soon) as running:
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
def logs(shaky: Shaky, tmp_path_factory: pytest.TempPathFactory) -> Archived:
    """Logs of many batches: one without holes, one with holes of one and of several offsets, one of single records."""
    topics, kafka = shaky.topics, shaky.kafka
    archive = Archive(kafka.bootstrap, new_place(tmp_path_factory.mktemp("logs") / "repository"))
    fill(topics, "smooth", 1, 6000, size=1000)
    topics.create("bumpy")
    plain = topics.producer(batch_num_messages=5, enable_idempotence=True)
    bound = topics.producer(batch_num_messages=5, transactional_id="bumps")
    bound.init_transactions(30)
    for round_ in range(16):
        bound.begin_transaction()
        for i in range(3 + round_ % 4):
            bound.produce("bumpy", b"bound %d" % i, b"key", 0)
        bound.flush(30)
        (bound.commit_transaction if round_ % 2 else bound.abort_transaction)(30)
        for i in range(60):
            plain.produce("bumpy", os.urandom(500), b"%d" % i, 0)
        plain.flush(30)
    topics.create("single")
    one_by_one = topics.producer(batch_num_messages=1, linger_ms=0)
    for i in range(400):
        one_by_one.produce("single", b"value %d" % i, b"%d" % i, 0)
    one_by_one.flush(30)
    return Archived(topics, archive, archive.back_up("smooth", "bumpy", "single").entry.id)


@pytest.fixture(scope="session")
def children() -> Iterator[Attempts]:
    with attempts() as running:
        yield running


@pytest.fixture(scope="session")
def archived(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archived]:
    archive = Archive(kafka.bootstrap, new_place(tmp_path_factory.mktemp("archive") / "repository"))
    with written_matrix(kafka) as matrix:
        backup_id = archive.back_up(*matrix.topics).entry.id
        yield Archived(matrix, archive, backup_id)
