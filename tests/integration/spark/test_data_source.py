"""`spark.read.format("logkeep")` as a user's own program calls it, and Spark's Kafka source as its judge."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.spark.jars import fetched
from logkeep.model.cache import cache_dir
from tests.support.kafka.matrix_broker import written_matrix
from tests.support.kafka.table_logs import all_rows, back_up_tables
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import PATIENCE_S, program

pytestmark = pytest.mark.xdist_group("spark")
_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
_NEEDED = ("spark-sql-kafka-0-10", "spark-token-provider-kafka-0-10", "kafka-clients", "commons-pool2")


def _said(tmp_path: Path, *words: str) -> dict[str, Any]:
    arguments = ["tests.integration.spark.table_program", *words]
    with program(arguments, tmp_path, true_start=True, PYSPARK_PYTHON=sys.executable) as run:
        output, errors = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, errors
    answer: dict[str, Any] = json.loads(output.splitlines()[-1])
    return answer


@pytest.mark.soak
def test_a_plain_session_has_the_format(tmp_path: Path) -> None:
    """The guide has a plain session too: this one is asked for more."""
    backed = back_up_tables(tmp_path / "backed")
    said = _said(tmp_path, "plain", backed.place.store.url)
    assert said["types"] == [
        ["key", "binary"],
        ["value", "binary"],
        ["topic", "string"],
        ["partition", "int"],
        ["offset", "bigint"],
        ["timestamp", "timestamp"],
        ["timestampType", "int"],
    ]
    orders = all_rows("orders")
    assert said["records"] == len(orders)
    assert said["window"] == [r.offset for r in orders if r.partition == 1 and 100 <= r.offset <= 110]
    assert said["view"] == 20
    assert said["columns"] == ["offset", "headers"]
    assert "there is no topic 'oders' in the backup\nremedy: the nearest are: orders" in said["wrong"]
    assert "did you mean startingOffsets" in said["unknown"]


@pytest.fixture
def matrix(tmp_path: Path) -> Iterator[tuple[EmbeddedKafka, Matrix]]:
    with (
        EmbeddedKafka(tmp_path / "broker", cache_dir(os.environ, Path.home()), properties=BROKER) as kafka,
        written_matrix(kafka) as made,
    ):
        yield kafka, made


@pytest.mark.soak
def test_sparks_kafka_source_reads_the_same_of_the_live_topics(
    matrix: tuple[EmbeddedKafka, Matrix], tmp_path: Path
) -> None:
    """Every shape of topic: codecs, nulls, headers, append times, transactions, compaction, a log start above 0."""
    kafka, made = matrix
    archive = Archive(kafka.bootstrap, new_place(tmp_path / "repository"))
    done = archive.back_up(*made.topics, segment_bytes=1 << 20)
    assert (done.gaps, done.findings) == ((), ())
    with fetched([_CONNECTOR], tmp_path, dict(os.environ)) as jars:
        needed = [str(jar) for jar in jars.iterdir() if any(name in jar.name for name in _NEEDED)]
        topics = ",".join(made.topics)
        said = _said(tmp_path, "judge", archive.place.store.url, kafka.bootstrap, topics, ",".join(needed))
    print(json.dumps(said))
    assert len(said) == 2 * len(made.topics)
    for name, found in said.items():
        assert found == {"same schema": True, "records": found["records"], "only live": 0, "only ours": 0}, name
    assert sum(found["records"] for found in said.values()) > 10_000
