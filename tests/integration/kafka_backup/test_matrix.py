"""Topics of every shape through the whole backup: what is archived is what the broker holds, told by others."""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicCollection, TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from tests.integration.processes import program
from tests.kafka.archive import object_paths, on_disk
from tests.kafka.matrix import Matrix
from tests.kafka.steps import assert_whole, fill
from tests.kafka.whole import Archive, new_place
from tests.kafka.written import written_matrix

pytestmark = pytest.mark.xdist_group("kafka")


@pytest.fixture(scope="module")
def matrix(kafka: EmbeddedKafka) -> Iterator[Matrix]:
    with written_matrix(kafka) as made:
        _commit(kafka, "readers", [TopicPartition("codecs", p, 100 + p, f"note {p} ü") for p in range(5)])
        yield made


@pytest.fixture(scope="module")
def whole(kafka: EmbeddedKafka, matrix: Matrix, tmp_path_factory: pytest.TempPathFactory) -> tuple[Archive, int, Path]:
    root = tmp_path_factory.mktemp("matrix")
    archive = Archive(kafka.bootstrap, new_place(root))
    done = archive.back_up(*matrix.topics, segment_bytes=1 << 20)
    assert (done.gaps, done.findings) == ((), ())
    return archive, done.entry.id, root


def _commit(kafka: EmbeddedKafka, group: str, offsets: list[TopicPartition]) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def test_archived_bytes_are_the_brokers_own(
    kafka: EmbeddedKafka, matrix: Matrix, whole: tuple[Archive, int, Path]
) -> None:
    archive, backup_id, _ = whole
    cuts = archive.cuts(backup_id)
    assert {log.topic for log in cuts} == set(matrix.topics)
    for log, cut in cuts.items():
        found = archive.batches(backup_id, log.topic, log.partition)
        assert found == on_disk(kafka, log.topic, log.partition, cut.start, cut.end), str(log)
    archive.check(backup_id)


def test_the_cut_is_where_librdkafka_sees_the_ends(
    kafka: EmbeddedKafka, matrix: Matrix, whole: tuple[Archive, int, Path]
) -> None:
    archive, backup_id, _ = whole
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": "watermarks", "isolation.level": "read_uncommitted"}
    )
    try:
        for log, cut in archive.cuts(backup_id).items():
            assert consumer.get_watermark_offsets(TopicPartition(*log), 10) == (cut.start, cut.end), str(log)
    finally:
        consumer.close()


def test_apache_reads_every_archived_file(kafka: EmbeddedKafka, whole: tuple[Archive, int, Path]) -> None:
    archive, backup_id, root = whole
    files = object_paths(root, ".log")
    segments = [s for some in archive.segments(backup_id).values() for s in some]
    assert len(files) == sum(s.has_object for s in segments)
    tool = "org.apache.kafka.tools.DumpLogSegments"
    said = kafka.java_tool(tool, ["--deep-iteration", "--files", ",".join(map(str, files))])
    assert len(re.findall(r"^\| offset: ", said, re.MULTILINE)) == sum(s.records for s in segments)
    assert "isvalid: false" not in said


def test_the_record_tells_topics_groups_and_open_transactions(matrix: Matrix, whole: tuple[Archive, int, Path]) -> None:
    archive, backup_id, _ = whole
    record = archive.record(backup_id)
    told = matrix.admin.describe_topics(TopicCollection(list(matrix.topics)))
    for topic in record.topics:
        described = told[topic.name].result(30)
        expected = _uuid(described.topic_id)
        assert (topic.id, topic.partitions) == (expected.hex, len(described.partitions))
        assert (topic.internal, topic.replication_factor) == (False, 1)
    configs = {t.name: t.configs for t in record.topics}
    assert configs["append-time"] == {"message.timestamp.type": "LogAppendTime"}
    assert configs["large"] == {"max.message.bytes": "8000000"}
    assert configs["idle"] == {}
    (group,) = [g for g in record.groups if g.name == "readers"]
    commits = [(c.topic, c.partition, c.offset, c.committed, c.metadata) for c in group.commits]
    # librdkafka's Python client sends the zero that ends a string in C along with it.
    assert commits == [("codecs", p, 100 + p, 100 + p, f"note {p} ü\0") for p in range(5)]
    (hanging,) = [t for t in record.open_transactions if t.topic == "transactions"]
    (log,) = [r for r in record.logs if r.topic == "transactions"]
    assert hanging.first_offset == log.last_stable == 123 < log.end
    assert record.acls == ()


def _uuid(told: object) -> uuid.UUID:
    """librdkafka's two halves, as one number."""
    high, low = told.get_most_significant_bits(), told.get_least_significant_bits()  # type: ignore[attr-defined]  # no types
    return uuid.UUID(int=((high & (2**64 - 1)) << 64) | (low & (2**64 - 1)))


def test_five_hundred_partitions_are_few_units(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive, tmp_path: Path
) -> None:
    topic = fill(topics, "many", 500, 4, size=100)
    root = tmp_path / "repository"
    arguments = ["tests.integration.kafka_backup.backup_program", kafka.bootstrap, str(root), "new", "500", topic]
    with program(arguments, tmp_path) as run:
        said, complaint = run.communicate()
    assert run.returncode == 0, complaint
    report = json.loads(said)
    print("peak memory:", report["peak_kb"], "kB")
    assert report["units"] <= 2
    assert report["peak_kb"] < 400_000
    assert len(archive.cuts(report["id"])) == 500
    assert_whole(archive, kafka, report["id"])
