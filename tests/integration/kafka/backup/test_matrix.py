"""Topics of every shape through the whole backup: what is archived is what the broker holds, told by others."""

import json
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    Message,
    TopicCollection,
    TopicPartition,
)

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.formats.compare.digest import Digest
from logkeep.formats.datasets.avro.container import AvroCodec
from logkeep.formats.kafka.batches import Batches, walk
from logkeep.formats.kafka.transactions import Settling
from logkeep.kafka.datasets.format_table import FORMAT_NAMES
from logkeep.kafka.scan.open_backup import open_backup
from logkeep.kafka.scan.plan import ScanSelection, plan_scan
from logkeep.kafka.scan.read import read_range
from logkeep.kafka.scan.values import ScanIsolation
from logkeep.kafka.verify.records import check_records
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.backup_steps import assert_whole, fill
from tests.support.kafka.client_readers import Seen, messages, read_whole
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.copied_logs import object_paths, on_disk
from tests.support.kafka.dataset_exports import Datasets, as_read
from tests.support.kafka.dataset_readers import seen_in_avro, seen_in_parquet
from tests.support.kafka.group_commits import commit
from tests.support.kafka.matrix_broker import written_matrix
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.slow_records import Slow, slow_digest
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import program

pytestmark = pytest.mark.xdist_group("kafka-plain")


@pytest.fixture(scope="module")
def matrix(kafka: EmbeddedKafka) -> Iterator[Matrix]:
    with written_matrix(kafka) as made:
        commit(kafka.bootstrap, "readers", [TopicPartition("codecs", p, 100 + p, f"note {p} ü") for p in range(5)])
        yield made


@pytest.fixture(scope="module")
def whole(kafka: EmbeddedKafka, matrix: Matrix, tmp_path_factory: pytest.TempPathFactory) -> tuple[Archive, int, Path]:
    root = tmp_path_factory.mktemp("matrix")
    archive = Archive(kafka.bootstrap, new_place(root))
    done = archive.back_up(*matrix.topics, segment_bytes=1 << 20)
    assert (done.gaps, done.findings) == ((), ())
    return archive, done.entry.id, root


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


@pytest.mark.parametrize(("isolation", "level"), [("committed", "read_committed"), ("all", "read_uncommitted")])
def test_a_scan_has_the_records_that_librdkafka_reads(
    kafka: EmbeddedKafka, matrix: Matrix, whole: tuple[Archive, int, Path], isolation: str, level: str
) -> None:
    found = _scanned(whole[0].place, whole[1], matrix, isolation)
    expected = read_whole(kafka.bootstrap, found, level)
    for log, records in found.items():
        assert records == list(expected[log].records), str(log)


def _scanned(place: SourceRef, backup_id: int, matrix: Matrix, isolation: str) -> dict[tuple[str, int], list[Seen]]:
    with open_backup(place, str(backup_id), "show", utc_now, random_token) as view:
        ranges = plan_scan(view, ScanSelection(topics=tuple(matrix.topics), isolation=ScanIsolation(isolation)))
        return {
            (each.log.name, each.log.partition): [_as_read(row) for b in read_range(each) for row in b.to_pylist()]
            for each in ranges
        }


def _as_read(row: dict[str, Any]) -> Seen:
    """As librdkafka's client shows it: its kinds of times begin at 1, and no headers are None."""
    time_ms = (row["timestamp"] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    headers = [(h["key"].decode(), h["value"]) for h in row["headers"]] or None
    return Seen(
        row["offset"], row["timestamp_type"] + TIMESTAMP_CREATE_TIME, time_ms, row["key"], row["value"], headers
    )


@pytest.mark.parametrize(("isolation", "level"), [("committed", "read_committed"), ("all", "read_uncommitted")])
def test_a_dataset_has_the_records_that_librdkafka_reads(
    kafka: EmbeddedKafka,
    matrix: Matrix,
    whole: tuple[Archive, int, Path],
    tmp_path: Path,
    isolation: str,
    level: str,
) -> None:
    """Straight from the cluster and from the backup: the same bytes, and an independent reader's records."""
    of_cluster = Datasets(tmp_path / "cluster", kafka.bootstrap, isolation, segment_bytes=100_000)
    of_backup = Datasets(tmp_path / "backup", isolation=isolation, segment_bytes=100_000)
    of_cluster.of_cluster(*matrix.topics)
    of_backup.of_backup(whole[0].place, *matrix.topics, backup=str(whole[1]))
    logs = [(topic, partition) for topic, count in matrix.topics.items() for partition in range(count)]
    stable = {log: read.end for log, read in read_whole(kafka.bootstrap, logs, "read_committed").items()}
    for log, expected in read_whole(kafka.bootstrap, logs, level).items():
        found = [as_read(each) for each in of_cluster.records(*log)]
        assert found == [each for each in expected.records if each.offset < stable[log]], str(log)
    assert of_cluster.files(*matrix.topics) == of_backup.files(*matrix.topics)


@pytest.mark.parametrize("codec", [*AvroCodec, ""])
def test_files_of_every_codec_have_the_records_that_librdkafka_reads(
    kafka: EmbeddedKafka, matrix: Matrix, whole: tuple[Archive, int, Path], tmp_path: Path, codec: str
) -> None:
    """Avro in each codec, and Parquet, read by fastavro and pyarrow."""
    form, seen = ("avro", seen_in_avro) if codec else ("parquet", seen_in_parquet)
    made = Datasets(tmp_path / "set", segment_bytes=100_000, form=form, codec=codec)
    made.of_backup(whole[0].place, *matrix.topics, backup=str(whole[1]))
    logs = [(topic, partition) for topic, count in matrix.topics.items() for partition in range(count)]
    for log, expected in read_whole(kafka.bootstrap, logs, "read_committed").items():
        assert seen(made.root, *log) == list(expected.records), str(log)


@pytest.mark.parametrize("form", FORMAT_NAMES)
def test_a_dataset_comes_back_by_import(
    kafka: EmbeddedKafka, matrix: Matrix, whole: tuple[Archive, int, Path], repo: Filled, tmp_path: Path, form: str
) -> None:
    """Restores of imports are tested by themselves; here every record of the matrix is imported."""
    made = Datasets(tmp_path / "set", segment_bytes=100_000, form=form)
    made.of_backup(whole[0].place, *matrix.topics, backup=str(whole[1]))
    done = Commands(repo.url, repo.home).json("kafka", "import", str(made.root), "--source", "back")
    found = _scanned(repo.place("back"), done["id"], matrix, "committed")
    expected = read_whole(kafka.bootstrap, found, "read_committed")
    assert sum(map(len, found.values())) == done["records"] > 10_000
    for log, records in found.items():
        assert records == list(expected[log].records), str(log)


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


def test_decoded_records_are_those_that_librdkafka_reads(
    kafka: EmbeddedKafka, matrix: Matrix, whole: tuple[Archive, int, Path]
) -> None:
    """Every codec, Java's own snappy, nulls and headers, append times, holes: one digest by kernels, one by hand."""
    archive, backup_id, _ = whole
    verifier = Verifier(
        archive.place, InlineEngine(), this_process("verify"), utc_now, random_token, deeper=check_records
    )
    verified = verifier.verify(BackupId(backup_id), "records")
    assert verified.findings == ()
    assert {d.log.name for d in verified.document.digests} == set(matrix.topics)
    for found in verified.document.digests:
        seen = messages(kafka.bootstrap, found.log.name, found.log.partition, found.start, found.end)
        digest = Digest.parse(found.digest)
        assert digest.records == len(seen) == found.records, str(found.log)
        expected = slow_digest([_as_slow(m) for m in seen])
        assert (digest.content_a, digest.content_b, digest.offsets) == expected, str(found.log)
        assert digest.append_times == sum(m.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME for m in seen)


def _as_slow(message: Message) -> tuple[int, int, Slow]:
    pairs = tuple((name.encode(), value) for name, value in message.headers() or ())
    _, time_ms = message.timestamp()
    offset = message.offset()
    assert offset is not None
    return offset, time_ms, Slow(0, 0, _exact(message.key()), _exact(message.value()), pairs)


def _exact(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def test_aborted_transactions_are_those_that_the_broker_lists(
    kafka: EmbeddedKafka, whole: tuple[Archive, int, Path]
) -> None:
    archive, backup_id, _ = whole
    data = b"".join(archive.batches(backup_id, "transactions"))
    settling = Settling()
    settling.take(data, walk(data).batches)
    settled = settling.settled()
    listed = PlainBrokers("127.0.0.1", kafka.port).aborted("transactions", 0, 0)
    assert [(a.producer_id, a.first_offset) for a in settled.aborted] == listed
    (hanging,) = archive.record(backup_id).open_transactions
    assert [(o.producer_id, o.first_offset) for o in settled.open] == [(hanging.producer_id, hanging.first_offset)]
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "committed"})
    consumer.assign([TopicPartition("transactions", 0, 0)])
    committed = [m.offset() for m in consumer.consume(80, 30)]
    consumer.close()
    batches = walk(data).batches
    assert _visible(batches, settled.visible(batches)) == committed


def _visible(batches: Batches, which: npt.NDArray[np.bool_]) -> list[int]:
    bases, lasts = batches.base_offsets[which].tolist(), batches.last_offsets[which].tolist()
    return [offset for base, last in zip(bases, lasts, strict=True) for offset in range(base, last + 1)]


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


@pytest.mark.parametrize("partitions", [120, pytest.param(500, marks=pytest.mark.soak)])
def test_many_partitions_are_few_units(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive, tmp_path: Path, partitions: int
) -> None:
    topic = fill(topics, f"many-{partitions}", partitions, 4, size=100)
    root = tmp_path / "repository"
    program_name, count = "tests.integration.kafka.backup.backup_program", str(partitions)
    arguments = [program_name, kafka.bootstrap, str(root), "new", count, topic]
    with program(arguments, tmp_path, true_start=True) as run:  # its memory is measured
        said, complaint = run.communicate()
    assert run.returncode == 0, complaint
    report = json.loads(said)
    print("peak memory:", report["peak_kb"], "kB")
    assert report["units"] <= 2
    assert report["peak_kb"] < 400_000
    assert len(archive.cuts(report["id"])) == partitions
    assert_whole(archive, kafka, report["id"])
