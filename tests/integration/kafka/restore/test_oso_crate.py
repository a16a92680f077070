"""Archives that OSO's own crate writes of a real broker, imported and restored. `make oso` runs these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from tests.integration.kafka.restore.scene import Scene, bounds, group_positions, troubles
from tests.support.kafka.consumer_view import seen
from tests.support.kafka.group_commits import commit
from tests.support.oso.program import take_backup

pytestmark = [pytest.mark.oso, pytest.mark.xdist_group("kafka-restore")]
T = 1_700_000_000_000
Headers = list[tuple[str, str | bytes | None]]


def shapes() -> Iterator[tuple[bytes | None, bytes | None, Headers, int]]:
    """Null and empty, repeated headers without a value, times that fall, a large value."""
    headers: Headers = [("a", b"1"), ("a", None), ("", b""), ("ä", b"\xff")]
    for number, key in enumerate((None, b"", b"k")):
        for value in (None, b"", b"v" * 300):
            yield key, value, headers[: number + 2], T - 9 * number
    yield b"large", b"x" * 5_000_000, [], T
    for number in range(100):
        yield b"k%d" % number, b"v%d" % number, [(f"h{n}", b"y") for n in range(number % 21)], T + number


def write_some(scene: Scene, topic: str, times: int = 1) -> None:
    producer = scene.topics.producer(message_max_bytes=6_000_000)
    for _ in range(times):
        for number, (key, value, headers, time_ms) in enumerate(shapes()):
            producer.produce(topic, value, key, number % 2, headers=headers, timestamp=time_ms)
    assert producer.flush(60) == 0


@pytest.mark.parametrize("codec", ["zstd", "lz4", "none"])
def test_what_the_crate_writes_comes_back_record_by_record(scene: Scene, tmp_path: Path, codec: str) -> None:
    topic = scene.topics.create(f"crate-{codec}", 2, {"retention.ms": "-1", "max.message.bytes": "7000000"})
    write_some(scene, topic)
    commit(scene.kafka.bootstrap, f"crate-{codec}", [TopicPartition(topic, 0, 20)])
    options = {"compression": codec, "segment_max_records": 20, "consumer_group_snapshot": True}
    folder = take_backup(scene.kafka.bootstrap, tmp_path / "archives", "nightly", topic, **options)
    words = ("kafka", "import", str(folder), "--source", f"crate-{codec}")
    first = scene.commands.json(*words)
    assert first["new_offsets"] == len(list(shapes()))
    write_some(scene, topic, 2)
    take_backup(scene.kafka.bootstrap, tmp_path / "archives", "nightly", topic, **options)
    again = scene.commands.json(*words)
    assert again["new_offsets"] == 2 * len(list(shapes()))
    restored = scene.restore("--source", f"crate-{codec}", "--offsets", "preserve", "--keep-all")
    assert not troubles(restored)
    for partition in range(2):
        expected = seen(scene.kafka.bootstrap, topic, partition)
        assert seen(scene.target.bootstrap, topic, partition) == expected
        assert bounds(scene.target, topic, partition) == bounds(scene.kafka, topic, partition)
    assert {log: at for log, (at, _) in group_positions(scene.target, f"crate-{codec}").items()} == {(topic, 0): 20}


def test_aborted_records_are_left_out_by_the_crate_and_append_times_lost(scene: Scene, tmp_path: Path) -> None:
    topic = scene.topics.create("crate-transactions", 1, {"retention.ms": "-1"})
    producer = scene.topics.producer(transactional_id="crate")
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for number in range(10):
            producer.produce(topic, b"%d" % number, timestamp=T)
        producer.flush(30)
        end(30)
    append = scene.topics.create("crate-append", 1, {"retention.ms": "-1", "message.timestamp.type": "LogAppendTime"})
    plain = scene.topics.producer()
    plain.produce(append, b"v", timestamp=12345)
    plain.flush(30)
    folder = take_backup(scene.kafka.bootstrap, tmp_path / "archives", "nightly", topic, append)
    done = scene.commands.json("kafka", "import", str(folder), "--source", "crate-transactions", code=2)
    assert {(f["code"], f["severity"]) for f in troubles(done)} == {("producer-times", "warning")}, done
    scene.restore("--source", "crate-transactions", "--offsets", "preserve", "--keep-all")
    assert seen(scene.target.bootstrap, topic, 0) == seen(scene.kafka.bootstrap, topic, 0)
    assert [r.time for r in seen(scene.target.bootstrap, append, 0).values()] == [12345]


def test_everything_that_the_crate_reads_uncommitted_is_told(scene: Scene, tmp_path: Path) -> None:
    """Aborted records and markers are ordinary records of such an archive."""
    topic = scene.topics.create("crate-uncommitted", 1, {"retention.ms": "-1"})
    producer = scene.topics.producer(transactional_id="crate-uncommitted")
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(topic, b"v", timestamp=T)
        producer.flush(30)
        end(30)
    options = {"isolation_level": "read_uncommitted"}
    folder = take_backup(scene.kafka.bootstrap, tmp_path / "archives", "nightly", topic, **options)
    done = scene.commands.json("kafka", "import", str(folder), "--source", "crate-uncommitted", code=2)
    (found,) = troubles(done)
    assert (found["code"], found["what"][:9]) == ("markers", "2 records"), found
    assert done["records"] == 4
