"""What is archived equals the broker's own files, for topics of every shape, written by independent clients."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.formats.kafka.batches import CODEC_MASK, CONTROL, TRANSACTIONAL, walk
from logkeep.kafka.backup.claims import join_claims
from logkeep.kafka.backup.copy.copy_task import copy_ranges
from logkeep.kafka.backup.units import CopyRange, CopyResult
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.settings import ClientSettings, Endpoint, endpoints
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.model.cache import cache_dir
from logkeep.model.clock_time import ClockName
from logkeep.model.ids import BackupId
from logkeep.model.ranges import Range
from logkeep.model.segments import Codec
from logkeep.repository.backups.journal import receipts
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local.store import LocalStore
from tests.support.kafka.copied_logs import archived, object_paths, on_disk, split, unit_of, whole_range
from tests.support.kafka.matrix_broker import written_matrix
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.processes import program
from tests.unit.formats.test_zstd_frames import zstd_d

pytestmark = pytest.mark.xdist_group("kafka-copy")


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    directory = tmp_path_factory.mktemp("kafka")
    with EmbeddedKafka(directory / "broker", cache_dir(os.environ, Path.home()), properties=BROKER) as running:
        yield running


@pytest.fixture(scope="module")
def brokers(kafka: EmbeddedKafka) -> PlainBrokers:
    return PlainBrokers("127.0.0.1", kafka.port)


@pytest.fixture(scope="module")
def matrix(kafka: EmbeddedKafka) -> Iterator[Matrix]:
    with written_matrix(kafka) as made:
        yield made


@pytest.fixture
def place(tmp_path: Path) -> SourceRef:
    store = LocalStore(tmp_path / "repository")
    store.create()
    return SourceRef(store, "repository-1", "prod")


def _all_ranges(matrix: Matrix, brokers: PlainBrokers) -> list[CopyRange]:
    return [whole_range(brokers, topic, p) for topic, count in matrix.topics.items() for p in range(count)]


def _compare(kafka: EmbeddedKafka, place: SourceRef, ranges: list[CopyRange], results: list[CopyResult]) -> None:
    joined = {one.log: one for one in join_claims(results)}
    for wanted in ranges:
        one = joined[wanted.log]
        assert (one.gaps, one.span) == ((), Range(wanted.lo, wanted.hi))
        found = archived(place, one.segments)
        assert found == on_disk(kafka, wanted.topic, wanted.partition, wanted.lo, wanted.hi), str(wanted.log)


def test_a_unit_asks_for_the_time_over_the_connection_that_it_has(
    kafka: EmbeddedKafka, matrix: Matrix, brokers: PlainBrokers, place: SourceRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One to find the brokers and for both times, and one for each of two fetches at a time."""
    opened, connect = list[object](), Connection.open

    def counted(endpoint: Endpoint, *more: Any, **named: Any) -> Connection:
        opened.append(endpoint)
        return connect(endpoint, *more, **named)

    monkeypatch.setattr(Connection, "open", counted)
    settings = ClientSettings(endpoints(kafka.bootstrap))
    wanted = whole_range(brokers, next(iter(matrix.topics)), 0)
    result = copy_ranges(unit_of("timed", place, SettingsBrokers(settings), [wanted]), lambda _: None)
    assert len(opened) == 3
    times = result.ranges[0].times
    assert times is not None
    assert times.clock is ClockName.BROKER


@pytest.mark.parametrize(
    ("pieces", "max_bytes", "segment_bytes", "codec"),
    [(1, 8 << 20, 64 << 10, Codec.NONE), (3, 100_000, 1 << 20, Codec.NONE), (2, 8 << 20, 9 << 20, Codec.ZSTD)],
)
def test_archived_bytes_are_the_brokers_own(
    kafka: EmbeddedKafka,
    brokers: PlainBrokers,
    matrix: Matrix,
    place: SourceRef,
    tmp_path: Path,
    pieces: int,
    max_bytes: int,
    segment_bytes: int,
    codec: Codec,
) -> None:
    whole = _all_ranges(matrix, brokers)
    done: list[int] = []
    results: list[CopyResult] = []
    for number in range(pieces):
        chosen = [part for r in whole for part in split(r, pieces)[number : number + 1]]
        sizes = {"max_bytes": max_bytes, "segment_bytes": segment_bytes}
        unit = unit_of(f"unit-{number}", place, brokers, chosen, codec=codec, **sizes)
        results.append(copy_ranges(unit, done.append))
    assert all(result.complete for result in results)
    _compare(kafka, place, whole, results)
    segments = [segment for result in results for segment in result.segments]
    assert sum(done) == sum(segment.plain_bytes for segment in segments)
    assert {segment.codec for segment in segments} == {codec, Codec.NONE}
    stored = [*object_paths(tmp_path, ".log"), *object_paths(tmp_path, ".log.zst")]
    assert sum(path.stat().st_size for path in stored) == sum(segment.stored_bytes for segment in segments)
    assert len(list(receipts(place, BackupId(1)))) == pieces
    assert not any(segment.log.name == "idle" for result in results for segment in result.segments)


def test_apache_reads_every_archived_file(
    kafka: EmbeddedKafka, brokers: PlainBrokers, matrix: Matrix, place: SourceRef, tmp_path: Path
) -> None:
    unit = unit_of("all", place, brokers, _all_ranges(matrix, brokers), segment_bytes=1 << 20)
    result = copy_ranges(unit, lambda _: None)
    files = object_paths(tmp_path, ".log")
    assert len(files) == sum(s.has_object for s in result.segments)
    tool = "org.apache.kafka.tools.DumpLogSegments"
    said = kafka.java_tool(tool, ["--deep-iteration", "--files", ",".join(map(str, files))])
    assert len(re.findall(r"^\| offset: ", said, re.MULTILINE)) == sum(s.records for s in result.segments)
    assert said.count("isvalid: true") == sum(len(archived(place, [s])) for s in result.segments)
    assert "isvalid: false" not in said


def test_apache_reads_what_zstd_makes_of_a_packed_log(
    kafka: EmbeddedKafka, brokers: PlainBrokers, matrix: Matrix, place: SourceRef, tmp_path: Path
) -> None:
    unit = unit_of("all", place, brokers, _all_ranges(matrix, brokers), segment_bytes=16 << 20, codec=Codec.ZSTD)
    result = copy_ranges(unit, lambda _: None)
    packed = object_paths(tmp_path, ".log.zst")
    assert len(packed) >= 4
    for path in packed:
        path.with_suffix("").write_bytes(zstd_d(path.read_bytes()))
    plain = object_paths(tmp_path, ".log")
    said = kafka.java_tool(
        "org.apache.kafka.tools.DumpLogSegments", ["--deep-iteration", "--files", ",".join(map(str, plain))]
    )
    assert len(re.findall(r"^\| offset: ", said, re.MULTILINE)) == sum(s.records for s in result.segments)
    assert "isvalid: false" not in said


def test_the_matrix_is_what_it_claims_to_be(kafka: EmbeddedKafka, matrix: Matrix, brokers: PlainBrokers) -> None:
    """A matrix without the hard cases would prove nothing."""
    logs = [b"".join(on_disk(kafka, "codecs", partition, 0, 9**9)) for partition in range(5)]
    codecs = {int(walk(log).batches.headers["attributes"][0]) & CODEC_MASK for log in logs}
    assert codecs == {0, 1, 2, 3, 4}
    attributes = walk(b"".join(on_disk(kafka, "transactions", 0, 0, 9**9))).batches.headers["attributes"]
    assert int((attributes & CONTROL != 0).sum()) == 3
    assert attributes[-1] & (CONTROL | TRANSACTIONAL) == TRANSACTIONAL
    times = walk(b"".join(on_disk(kafka, "shapes", 0, 0, 9**9))).batches.headers["base_time_ms"]
    assert {-1, 0} <= set(times.tolist())
    assert brokers.offset("later-start", 0, -2) == 123


def test_memory_is_bounded_whatever_the_partitions_hold(kafka: EmbeddedKafka, matrix: Matrix, tmp_path: Path) -> None:
    """Sixteen partitions in one unit, far more bytes than the bound."""
    topic = matrix.create("wide", 16)
    producer = matrix.producer(linger_ms=0)
    for i in range(16 * 36):
        producer.produce(topic, os.urandom(500_000), None, i % 16)
        producer.poll(0)
        if i % 50 == 49:
            producer.flush(60)
    producer.flush(60)
    for codec in Codec.NONE, Codec.ZSTD:
        arguments = [
            "tests.integration.kafka.logs.copy_program",
            str(kafka.port),
            topic,
            "16",
            str(tmp_path / codec),
            codec,
        ]
        with program(arguments, tmp_path, true_start=True) as run:
            said, complaint = run.communicate()
        assert run.returncode == 0, complaint
        peak_kb, copied_bytes = map(int, said.split())
        assert copied_bytes > 16 * 36 * 500_000
        assert peak_kb < 250_000, codec
