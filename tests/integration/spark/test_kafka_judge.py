"""Spark's own Kafka source on live topics judges ours on a backup of them: `exceptAll`, both ways."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir
from tests.support.kafka.matrix_broker import written_matrix
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import PATIENCE_S, program
from tests.support.servers.spark_cluster import spark_cluster
from tests.support.servers.spark_connectors import CONNECTORS

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("spark-cluster")]
_CACHE = cache_dir(os.environ, Path.home())


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedKafka, Matrix]]:
    directory = tmp_path_factory.mktemp("judge") / "broker"
    with EmbeddedKafka(directory, _CACHE, properties=BROKER) as kafka, written_matrix(kafka) as made:
        yield kafka, made


@contextmanager
def local(_directory: Path) -> Iterator[list[str]]:
    yield ["local[2]"]


@contextmanager
def two_workers(directory: Path) -> Iterator[list[str]]:
    directory.mkdir()
    with spark_cluster(directory, secure=False) as cluster:
        yield [cluster.url, *cluster.conf]


@pytest.mark.parametrize("place", [local, two_workers])
def test_sparks_kafka_source_reads_the_same_of_the_live_topics(
    matrix: tuple[EmbeddedKafka, Matrix], tmp_path: Path, place: Any
) -> None:
    """Every shape of topic: codecs, nulls, headers, append times, transactions, compaction, a log start above 0."""
    kafka, made = matrix
    archive = Archive(kafka.bootstrap, new_place(tmp_path / "repository"))
    done = archive.back_up(*made.topics, segment_bytes=1 << 20)
    assert (done.gaps, done.findings) == ((), ())
    jars = ",".join(map(str, CONNECTORS.files(_CACHE)))
    with place(tmp_path / "cluster") as (master, *conf):
        words = [master, jars, archive.place.store.url, kafka.bootstrap, ",".join(made.topics), *conf]
        arguments = ["tests.integration.spark.judge_program", *words]
        with program(arguments, tmp_path, true_start=True, PYSPARK_PYTHON=sys.executable) as run:
            output, errors = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, errors
    print(output)
    said = json.loads(output.splitlines()[-1])
    assert len(said) == 2 * len(made.topics)
    for name, found in said.items():
        assert found == {"same types": True, "records": found["records"], "only live": 0, "only ours": 0}, name
    assert sum(found["records"] for found in said.values()) > 10_000
