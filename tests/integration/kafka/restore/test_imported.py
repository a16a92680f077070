"""Archives of other tools, imported and restored to a real broker: what an independent consumer sees."""

import json
import shutil
from pathlib import Path
from typing import Any

import fastavro
import pytest

from logkeep.formats.datasets.avro.schemas import AvroSchema, schema_text
from logkeep.kafka.datasets.format_table import FORMAT_NAMES
from tests.integration.kafka.restore.scene import Scene, bounds, group_positions, troubles
from tests.support.datasets.avro_judge import WRITTEN, WRITTEN_PARTITION, WRITTEN_TOPIC, compiled, written_row
from tests.support.datasets.oso_files import with_own_headers, write_archive
from tests.support.datasets.v1_files import HandRecord, write_partition
from tests.support.kafka.consumer_view import Seen, seen
from tests.support.kafka.listed_exports import ListedExports, ListedSource, exportable, exportable_logs, rows

pytestmark = pytest.mark.xdist_group("kafka-restore")
T = 1_700_000_000_000


def expected(records: list[HandRecord]) -> dict[int, Seen]:
    """As the consumer's library has them."""
    return {
        r.offset: Seen(r.time if r.kind >= 0 else -1, r.key, r.value, tuple((n.decode(), v) for n, v in r.headers))
        for r in records
    }


def restored_from(scene: Scene, tmp_path: Path, *more: str, code: int = 0) -> dict[str, Any]:
    """The report of a restore of what is in `tmp_path / "a"`."""
    words = ("--from", str(tmp_path / "a"), "--scratch", str(tmp_path / "scratch"), "--keep-all", "--yes")
    target = ("--bootstrap-servers", scene.target.bootstrap, "--engine", "inline")
    return scene.commands.json("kafka", "restore", *words, *target, *more, code=code)


def test_a_dataset_of_version_1_comes_back_record_by_record(scene: Scene, tmp_path: Path) -> None:
    records = [
        HandRecord(7, None, b"", T),
        HandRecord(9, b"", None, T + 5, headers=[(b"a", b"1"), (b"a", None), (b"", b"")]),
        HandRecord(10, b"k", b"x" * 5_000_000, T - 9),
        *(
            HandRecord(o, b"k%d" % o, b"v", T + o, headers=[(b"h%d" % n, b"y") for n in range(20)])
            for o in range(50, 90)
        ),
    ]
    write_partition(tmp_path / "data", "old-orders", 0, {0: records[:10], records[10].offset: records[10:]}, {"g": 60})
    write_partition(tmp_path / "data", "old-orders", 1, {5: [HandRecord(5, b"k", b"append", T, 1)]}, {"g": 6})
    done = scene.commands.json("kafka", "import", str(tmp_path / "data"), "--source", "old")
    assert done["new_offsets"] == 83 + 1
    restored = scene.restore("--source", "old", "--offsets", "preserve", "--keep-all")
    assert not troubles(restored)
    assert seen(scene.target.bootstrap, "old-orders", 0) == expected(records)
    assert bounds(scene.target, "old-orders", 0)[1] >= 90
    assert list(seen(scene.target.bootstrap, "old-orders", 1)) == [5]
    assert {log: at for log, (at, _) in group_positions(scene.target, "g").items()} == {
        ("old-orders", 0): 60,
        ("old-orders", 1): 6,
    }


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_an_archive_of_oso_comes_back_through_a_scratch_repository(scene: Scene, tmp_path: Path, codec: str) -> None:
    topic, records = (
        f"oso-{codec}",
        [
            HandRecord(3, None, b"", T, headers=[(b"a", None)]),
            *(HandRecord(o, b"k%d" % o, b"v" * o, T + o) for o in range(5, 40)),
            HandRecord(41, b"gone", None, T),
        ],
    )
    archived = [[*map(with_own_headers, records[:9])], [*map(with_own_headers, records[9:])]]
    fields = {topic: {"original_partition_count": 3, "configurations": {"retention.ms": "-1"}}}
    write_archive(
        tmp_path / "a", {(topic, 0): archived}, codec, groups={f"g-{codec}": {topic: {"0": 20}}}, topic_fields=fields
    )
    words = ("--from", str(tmp_path / "a"), "--scratch", str(tmp_path / "scratch"), "--offsets", "preserve")
    target = ("--bootstrap-servers", scene.target.bootstrap, "--engine", "inline", "--yes")
    scene.commands.json("kafka", "restore", *words, *target, "--dry-run")
    done = scene.commands.json("kafka", "restore", *words, *target)
    assert (done["verdict"], troubles(done)) == ("proven", [])
    assert seen(scene.target.bootstrap, topic, 0) == expected(records)
    assert bounds(scene.target, topic, 2) == (0, 0)
    assert {log: at for log, (at, _) in group_positions(scene.target, f"g-{codec}").items()} == {(topic, 0): 20}
    assert [p.name for p in (tmp_path / "scratch").iterdir()] == ["logkeep-scratch.lock"]
    said = scene.commands.error("kafka", "restore", "latest", *words, *target, code=40)
    assert "--from names what is restored" in said


def test_avro_files_of_fastavro_are_restored(scene: Scene, tmp_path: Path) -> None:
    """In the documented layout and schema."""
    records = [
        HandRecord(o, None if o % 3 else b"k%d" % o, b"v" * o, T + o, headers=[(b"h", b"%d" % o)] if o % 2 else [])
        for o in range(5, 60)
    ]
    folder = tmp_path / "a" / "topics" / "fast" / "partition=0"
    folder.mkdir(parents=True)
    for some in (records[:30], records[30:]):
        made = [
            {"topic": "fast", "partition": 0, "offset": r.offset, "timestamp": r.time, "key": r.key, "value": r.value}
            | {"headers": {name.decode(): value for name, value in r.headers} or None}
            for r in some
        ]
        with (folder / f"fast+0-{some[0].offset}.data").open("wb") as file:
            fastavro.writer(file, json.loads(schema_text(AvroSchema.SEED001)), made, codec="deflate")
    done = restored_from(scene, tmp_path, "--offsets", "preserve")
    assert (done["verdict"], troubles(done)) == ("proven", [])
    assert seen(scene.target.bootstrap, "fast", 0) == expected(records)


def test_avro_files_of_java_are_restored(scene: Scene, tmp_path: Path) -> None:
    """Offsets from 10^10 on: they are translated."""
    folder, schema = tmp_path / "a" / "topics" / WRITTEN_TOPIC / f"partition={WRITTEN_PARTITION}", tmp_path / "s.avsc"
    folder.mkdir(parents=True)
    schema.write_text(schema_text(AvroSchema.SEED001))
    compiled(tmp_path).run("write", str(tmp_path), str(schema), "snappy")
    name = f"{WRITTEN_TOPIC}+{WRITTEN_PARTITION}-{written_row(0)[0]}.data"
    (tmp_path / "snappy.avro").rename(folder / name)
    done = restored_from(scene, tmp_path, "--offsets", "translate", "--rename", "s/^/java-/")
    assert (done["verdict"], troubles(done)) == ("proven", [])
    found = seen(scene.target.bootstrap, f"java-{WRITTEN_TOPIC}", WRITTEN_PARTITION)
    written = [written_row(number) for number in range(WRITTEN)]
    assert list(found.values()) == [
        Seen(time_ms, key, value, tuple((n.decode(), v) for n, v in headers))
        for _, _, key, value, time_ms, headers in written
    ]


def test_a_gap_is_reported_once_and_a_doubt_too(scene: Scene, tmp_path: Path) -> None:
    """The records that are there come back. What the restore leaves out is not reported."""
    records = [HandRecord(o, b"k", b"v", T + o) for o in range(9)]
    three = [records[:3], records[3:6], records[6:]]
    folder = write_archive(tmp_path / "a", {("holed", 0): three, ("holed", 1): three})
    for partition, first in ((0, 3), (1, 0)):
        (folder / "topics" / "holed" / f"partition={partition}" / f"segment-{first:020}.bin.zst").unlink()
    for more in (("--dry-run",), ()):
        done = restored_from(scene, tmp_path, *more, code=21)
        found = [(f["code"], f["where"]) for f in troubles(done)]
        assert sorted(found) == [("gap", "holed/0"), ("segments-expired", "holed/1")]
    assert done["verdict"] == "proven"
    assert [r.value for r in seen(scene.target.bootstrap, "holed", 0).values()] == [b"v"] * 6
    rest = restored_from(scene, tmp_path, "--partitions", "holed:1", "--rename", "s/^/other-/", code=2)
    assert [f["code"] for f in troubles(rest)] == ["segments-expired"]


def test_a_partition_without_any_file_is_a_gap(scene: Scene, tmp_path: Path) -> None:
    exports, logs = ListedExports(tmp_path / "a", "avro"), [exportable("halved", number, 0, 3) for number in (0, 1)]
    exports.run(ListedSource(exportable_logs(*logs), {each.log: rows(0, 1, 2) for each in logs}))
    shutil.rmtree(tmp_path / "a" / "topics" / "halved" / "partition=1")
    done = restored_from(scene, tmp_path, code=21)
    assert [(f["code"], f["where"]) for f in troubles(done)] == [("gap", "halved/1")]
    assert [len(seen(scene.target.bootstrap, "halved", number)) for number in (0, 1)] == [3, 0]


@pytest.mark.parametrize("form", FORMAT_NAMES)
def test_a_cluster_goes_through_a_dataset_and_comes_back(scene: Scene, tmp_path: Path, form: str) -> None:
    """Aborted transactions, null and empty, repeated headers: 0 differences for a read-committed consumer."""
    topic = scene.topics.create(f"through-{form}", 2, {"retention.ms": "-1"})
    producer = scene.topics.producer(transactional_id=topic)
    producer.init_transactions(30)
    headers: list[tuple[str, str | bytes | None]] = [("a", b"1"), ("a", None), ("", b"")]
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for key in (None, b"", b"k"):
            for value in (None, b"", b"v" * 1000):
                producer.produce(topic, value, key, 0, headers=headers, timestamp=T)
        producer.flush(30)
        end(30)
    words = ("--bootstrap-servers", scene.kafka.bootstrap, "--topics", topic)
    dataset = tmp_path / "dataset"
    scene.commands.json("kafka", "backup", *words, "--format", form, "--to", str(dataset))
    scene.commands.json("kafka", "import", str(dataset), "--source", form)
    restored = scene.restore("--source", form, "--offsets", "preserve", "--keep-all")
    assert not troubles(restored)
    assert len(seen(scene.kafka.bootstrap, topic, 0)) == 18
    assert seen(scene.target.bootstrap, topic, 0) == seen(scene.kafka.bootstrap, topic, 0)
    assert bounds(scene.target, topic, 1) == (0, 0)
