"""Avro and Parquet datasets of a real broker, read by fastavro and pyarrow, against an independent consumer."""

import json
from itertools import count
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import TargetUnsafe
from tests.integration.kafka.backup.test_datasets import _by_another_client, _write
from tests.support.cli.processes import logkeep
from tests.support.kafka.client_readers import Seen, read_whole
from tests.support.kafka.dataset_exports import Datasets
from tests.support.kafka.dataset_readers import avro_rows, files_of, seen_in_avro, seen_in_parquet
from tests.support.kafka.topic_matrix import Matrix

pytestmark = pytest.mark.xdist_group("kafka-plain")
_numbers = count()


@pytest.fixture
def topic(kafka: EmbeddedKafka, topics: Matrix) -> str:
    """Two partitions, the second of them empty; records of two clients."""
    name = topics.create(f"as-files-{next(_numbers)}", 2)
    _write(topics, name, 20)
    _by_another_client(kafka, name)
    return name


def _consumed(kafka: EmbeddedKafka, topic: str) -> list[Seen]:
    return list(read_whole(kafka.bootstrap, [(topic, 0)], "read_committed")[topic, 0].records)


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_avro_files_have_what_a_consumer_reads(
    kafka: EmbeddedKafka, topics: Matrix, topic: str, tmp_path: Path, codec: str
) -> None:
    dataset = Datasets(tmp_path / "d", kafka.bootstrap, segment_bytes=600, form="avro", codec=codec)
    assert dataset.of_cluster(topic).sum("records") == 24
    _write(topics, topic, 3)
    assert dataset.of_cluster(topic).sum("records") == 3
    assert not dataset.of_cluster(topic).changed
    assert seen_in_avro(tmp_path / "d", topic) == _consumed(kafka, topic)
    assert len(files_of(tmp_path / "d", topic, ".data")) > 3
    assert (tmp_path / "d" / "topics" / topic / "partition=1" / "_empty").exists()


def test_parquet_files_have_what_a_consumer_reads(kafka: EmbeddedKafka, topic: str, tmp_path: Path) -> None:
    dataset = Datasets(tmp_path / "d", kafka.bootstrap, segment_bytes=600, form="parquet")
    assert dataset.of_cluster(topic).sum("records") == 24
    assert seen_in_parquet(tmp_path / "d", topic) == _consumed(kafka, topic)


def test_the_documented_schema_reports_what_it_cannot_hold(kafka: EmbeddedKafka, topic: str, tmp_path: Path) -> None:
    words = ("kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--topics", topic, "--engine", "inline")
    to = ("--format", "avro", "--to", str(tmp_path / "d"), "--avro-schema", "seed001", "--json", "--quiet")
    done = logkeep(*words, *to, home=tmp_path)
    assert done.returncode == 2, done.stderr
    found = {f["what"].partition(":")[0] + f["what"].rpartition("for ")[2] for f in json.loads(done.stdout)["findings"]}
    # 20 records of one client repeat a header whose last value is null; 4 of the other repeat one, and one is null.
    expected = {"24 recordsrepeated-headers", "20 recordsnull-headers", "1 recordnull-values"}
    assert {text.partition(",")[0] for text in found} == expected
    assert [r["offset"] for r in avro_rows(files_of(tmp_path / "d", topic, ".data"))] == list(range(24))
    other = Datasets(tmp_path / "d", kafka.bootstrap, form="avro")
    with pytest.raises(TargetUnsafe, match="schema"):
        other.of_cluster(topic)
    refused = logkeep(*words, "--format", "parquet", "--to", str(tmp_path / "e"), "--avro-codec", "null", home=tmp_path)
    assert refused.returncode == 40
    assert "--avro-codec is for --format avro" in refused.stderr
