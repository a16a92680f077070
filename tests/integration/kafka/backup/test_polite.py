"""Compression and limits on a real broker: what is archived is the same, and what it costs others is bounded."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.errors import FormatTooNew
from logkeep.kafka.backup.claims import join_claims
from logkeep.kafka.backup.copy.copy_task import copy_ranges, copy_with
from logkeep.kafka.backup.units import CopyResult, CopyUnit
from logkeep.model.segments import Codec
from logkeep.model.time import random_token
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import check_features, open_format
from logkeep.store.local.store import LocalStore
from tests.support.cli.filled_repository import Filled, tree
from tests.support.kafka.copied_logs import archived, on_disk, unit_of, whole_range
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.unit.kafka.client.test_rate_limit import Clock

pytestmark = pytest.mark.xdist_group("kafka-plain")


def _write(topics: Matrix, topic: str, records: int, codec: str = "none") -> None:
    producer = topics.producer(batch_num_messages=100, compression_type=codec)
    for i in range(records):
        producer.produce(topic, b'{"order": %d, "state": "paid", "currency": "EUR"}' % i * 20, b"%d" % i, 0)
    producer.flush(60)


def _same(kafka: EmbeddedKafka, archive: Archive, backup_id: int, topic: str) -> None:
    cut = archive.cut(backup_id, topic)
    assert archive.batches(backup_id, topic) == on_disk(kafka, topic, 0, cut.start, cut.end)
    archive.check(backup_id)


def _codecs(archive: Archive, backup_id: int) -> list[Codec]:
    return [s.codec for pieces in archive.segments(backup_id).values() for s in pieces if s.has_object]


def test_runs_with_and_without_compression_make_one_archive(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive
) -> None:
    topic = topics.create("packed")
    ids = []
    for compression, producers in (
        (Codec.NONE, "none"),
        (Codec.ZSTD, "none"),
        (Codec.ZSTD, "lz4"),
        (Codec.NONE, "none"),
    ):
        _write(topics, topic, 3000, producers)
        ids.append(archive.back_up(topic, compression=compression).entry.id)
        _same(kafka, archive, ids[-1], topic)
    assert _codecs(archive, ids[-1]) == [Codec.NONE, Codec.ZSTD, Codec.NONE, Codec.NONE], "lz4 is not packed again"
    (pieces,) = archive.segments(ids[-1]).values()
    assert pieces[1].stored_bytes < pieces[1].plain_bytes / 5


def test_a_release_that_does_not_know_frames_refuses_the_repository(topics: Matrix, archive: Archive) -> None:
    topic = topics.create("required")
    _write(topics, topic, 10)
    archive.back_up(topic)
    assert open_format(archive.place.store).document.required_features == ("deletion-times", "packed-records")
    for _ in range(2):
        _write(topics, topic, 10)
        archive.back_up(topic, compression=Codec.ZSTD)
    opened = open_format(archive.place.store)
    assert (opened.document.required_features, opened.warnings) == (
        ("deletion-times", "packed-records", "zstd-frames"),
        (),
    )
    root = Path(archive.place.store.url.removeprefix("file://"))
    assert (root / "logkeep.json").read_bytes() == (root / "logkeep.copy.json").read_bytes()
    with pytest.raises(FormatTooNew, match="does not know: zstd-frames"):
        check_features(opened.document, known=frozenset({"deletion-times", "packed-records"}))


class StopBeforeCommit(RuntimeError):
    """The driver dies when everything was copied."""


class Dying(InlineEngine):
    def map(self, task, units, result, *, label, weight):  # type: ignore[no-untyped-def]  # same as the parent's
        results = super().map(task, units, result, label=label, weight=weight)
        if label == "copy":
            raise StopBeforeCommit
        return results


def test_a_resumed_run_keeps_what_was_packed_and_goes_on_in_another_way(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive
) -> None:
    topic = topics.create("resumed-packed")
    _write(topics, topic, 2000)
    with pytest.raises(StopBeforeCommit):
        replace(archive, engine=Dying()).back_up(topic, compression=Codec.ZSTD)
    _write(topics, topic, 1000)
    done = archive.back_up(topic, resume=True)
    assert _codecs(archive, done.entry.id) == [Codec.ZSTD, Codec.NONE]
    _same(kafka, archive, done.entry.id, topic)


def _unit(kafka: EmbeddedKafka, tmp_path: Path, topic: str) -> CopyUnit:
    brokers = PlainBrokers("127.0.0.1", kafka.port)
    store = LocalStore(tmp_path / "limited")
    store.create()
    return unit_of("limited", SourceRef(store, "repository-1", "prod"), brokers, [whole_range(brokers, topic, 0)])


def _batches(unit: CopyUnit, results: Sequence[CopyResult]) -> list[bytes]:
    (joined,) = join_claims(results)
    return archived(unit.place, joined.segments)


def test_a_limited_copy_waits_and_is_the_same(kafka: EmbeddedKafka, topics: Matrix, tmp_path: Path) -> None:
    topic, clock, rate = topics.create("limited"), Clock(), 200_000
    _write(topics, topic, 3000)
    unit = _unit(kafka, tmp_path, topic)
    limited = replace(unit, limits=replace(unit.limits, bytes_per_s=rate))
    result = copy_with(limited, lambda _: None, random_token, clock.pause, clock)
    size = sum(s.plain_bytes for s in result.segments)
    assert size > 2_000_000
    assert len(clock.pauses) > 10
    assert sum(clock.pauses) >= size / rate - 2
    assert _batches(unit, [result]) == on_disk(kafka, topic, 0, 0, 3000)
    free = replace(unit, name="free")
    assert _batches(unit, [copy_ranges(free, lambda _: None)]) == on_disk(kafka, topic, 0, 0, 3000)


def test_the_flags_as_a_user_types_them(kafka: EmbeddedKafka, topics: Matrix, tmp_path: Path) -> None:
    topic = topics.create("typed-packed")
    _write(topics, topic, 3000)
    repo = Filled(tmp_path / "home")
    repo.home.mkdir()
    new_place(repo.root)
    words = ("kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--source", "prod", "--topics", topic)
    done = repo.json(*words, "--compression", "zstd", "--limit-download", "100MB", "--client-rack", "here")
    assert 0 < done["stored_bytes"] < 3000 * 200
    required = json.loads((repo.root / "logkeep.json").read_text().splitlines()[0])["required_features"]
    assert required == ["deletion-times", "packed-records", "zstd-frames"]
    repo.run("verify", "--level", "data")
    (path,) = repo.root.rglob("*.log.zst")
    path.chmod(0o600)
    with path.open("r+b") as stored:
        stored.seek(path.stat().st_size // 2)
        stored.write(b"\0\1\2\3")
    before = tree(repo.root / "sources" / "prod" / "topics")
    assert "hash-mismatch" in {f["code"] for f in repo.json("verify", "--level", "data", code=10)["findings"]}
    assert tree(repo.root / "sources" / "prod" / "topics") == before
