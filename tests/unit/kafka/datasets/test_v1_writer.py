"""Writing kafka-backup-v1: segments, the order of files, torn tails, and what a run refuses to continue."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from logkeep.errors import Locked, TargetUnsafe, UnsafeName
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.kafka_backup_v1 import KafkaBackupV1
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from tests.support.kafka.arrow_rows import ArrowRow, record_batch
from tests.support.kafka.v1_reader import records, segments

LOG = DatasetLog("orders", 3)
V1 = KafkaBackupV1()


def row(offset: int, value_bytes: int = 10) -> ArrowRow:
    return (offset, 1000 + offset, 0, None, b"v" * value_bytes, [])


def directory(root: Path) -> DatasetTarget:
    root.mkdir(exist_ok=True)
    return DatasetTarget(LocalStore(root), root)


def written(target: DatasetTarget, rows: Sequence[ArrowRow], segment_bytes: int = 100, at_once: int = 3) -> int:
    writer = V1.writer(target, LOG, DatasetOptions(segment_bytes))
    for first in range(0, len(rows), at_once):
        writer.write(record_batch(rows[first : first + at_once]))
    return writer.finish().records


def files(root: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file() and ".partial" not in p.parts
    }


def test_the_record_that_crosses_the_size_is_the_last_of_its_segment(tmp_path: Path) -> None:
    target = directory(tmp_path / "d")
    written(target, [row(o) for o in range(500, 507)], segment_bytes=1 + 2 * 42)
    # 1 + 84 bytes are not above 85, so a third record fits; then the file is above it
    assert [start for _, start in segments(tmp_path / "d" / "orders", 3)] == [500, 503, 506]
    assert len(records(tmp_path / "d" / "orders", 3)) == 7


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_segment_for_each_record(tmp_path: Path, at_once: int) -> None:
    written(directory(tmp_path / "d"), [row(o) for o in (5, 9, 10**10)], segment_bytes=1, at_once=at_once)
    assert [start for _, start in segments(tmp_path / "d" / "orders", 3)] == [5, 9, 10**10]


def test_an_empty_partition_has_an_index_without_entries_and_no_segment(tmp_path: Path) -> None:
    target = directory(tmp_path / "d")
    written(target, [])
    assert files(tmp_path / "d") == {"orders/index_partition_003": b"\x01"}
    end = V1.find_end(target, LOG)
    assert (end.joined, end.last) == (True, None)
    assert not V1.find_end(target, DatasetLog("orders", 4)).joined


def test_many_runs_give_the_bytes_of_one(tmp_path: Path) -> None:
    rows = [row(o, o % 40) for o in range(0, 60, 2)]
    written(directory(tmp_path / "one"), rows, 200)
    for size in (1, 7, 30):
        target = directory(tmp_path / str(size))
        for first in range(0, len(rows), size):
            assert V1.find_end(target, LOG).last == (rows[first - 1][0] if first else None)
            written(target, rows[first : first + size], 200)
        assert files(tmp_path / str(size)) == files(tmp_path / "one")


def test_partitions_do_not_meet(tmp_path: Path) -> None:
    target = directory(tmp_path / "d")
    for partition in (1, 10, 100, 1000):
        log = DatasetLog("orders", partition)
        writer = V1.writer(target, log, DatasetOptions(100))
        writer.write(record_batch([row(partition)]))
        writer.finish()
    found = {partition: V1.find_end(target, DatasetLog("orders", partition)).last for partition in (1, 10, 100, 1000)}
    assert found == {1: 1, 10: 10, 100: 100, 1000: 1000}
    assert V1.logs(target) == {DatasetLog("orders", p) for p in (1, 10, 100, 1000)}


def test_torn_tails_of_every_length_are_cut_to_the_last_whole_indexed_record(tmp_path: Path) -> None:
    """Each file of the last segment at each shorter length, as a power loss leaves it; then the run goes on."""
    rows = [row(o) for o in range(2)]
    written(directory(tmp_path / "one"), rows, 1000)
    whole = files(tmp_path / "one")
    name = "orders/segment_partition_003_from_offset_0000000000_"
    entries, record = len(whole[name + "index"]), 42
    for size in range(1 + 24, entries + 1):
        for records_size in (len(whole[name + "records"]), 1 + record * ((size - 1) // 24) + 5):
            root = tmp_path / f"{size}-{records_size}"
            target = directory(root)
            shutil.copytree(tmp_path / "one" / "orders", root / "orders")
            (root / (name + "index")).write_bytes(whole[name + "index"][:size])
            (root / (name + "records")).write_bytes(whole[name + "records"][:records_size])
            last = V1.find_end(target, LOG).last
            assert last == min((size - 1) // 24, (records_size - 1) // record) - 1
            written(target, rows[last + 1 :], 1000)
            assert files(root) == whole
            shutil.rmtree(root)


def test_entries_of_records_that_are_not_there_are_cut_off(tmp_path: Path) -> None:
    rows = [row(o) for o in range(4)]
    target = directory(tmp_path / "d")
    written(target, rows, 1000)
    whole = files(tmp_path / "d")
    path = tmp_path / "d" / "orders" / "segment_partition_003_from_offset_0000000000_records"
    path.write_bytes(path.read_bytes()[: 1 + 42 * 2 + 41])
    assert V1.find_end(target, LOG).last == 1
    written(target, rows[2:], 1000)
    assert files(tmp_path / "d") == whole


def test_whole_segments_that_a_killed_run_did_not_list_are_listed(tmp_path: Path) -> None:
    rows = [row(o) for o in range(3)]
    target = directory(tmp_path / "d")
    written(target, rows, 1)
    whole = files(tmp_path / "d")
    index = tmp_path / "d" / "orders" / "index_partition_003"
    for size in range(1, len(whole["orders/index_partition_003"]), 7):
        index.write_bytes(whole["orders/index_partition_003"][:size])
        assert V1.find_end(target, LOG).last == 2
        written(target, [], 1)
        assert files(tmp_path / "d") == whole


def test_a_segment_without_an_entry_is_removed_and_written_again(tmp_path: Path) -> None:
    target = directory(tmp_path / "d")
    written(target, [row(0)], 1)
    for data in (b"", b"\x01", b"\x01abc"):
        (tmp_path / "d" / "orders" / "segment_partition_003_from_offset_0000000007_records").write_bytes(data)
        assert V1.find_end(target, LOG).last == 0
        written(target, [])
        assert len(files(tmp_path / "d")) == 3


def _without_index(topic: Path) -> None:
    (topic / "index_partition_003").unlink()


def _other_magic(topic: Path) -> None:
    (topic / "index_partition_003").write_bytes(b"\x02")


def _other_segments_index(topic: Path) -> None:
    one, other = (topic / f"segment_partition_003_from_offset_{o:010d}_index" for o in (0, 1))
    other.write_bytes(one.read_bytes())


def _empty_listed_segment(topic: Path) -> None:
    (topic / "segment_partition_003_from_offset_0000000001_index").write_bytes(b"\x01")


@pytest.mark.parametrize("damage", [_without_index, _other_magic, _other_segments_index, _empty_listed_segment])
def test_what_no_killed_run_leaves_is_not_continued(tmp_path: Path, damage: object) -> None:
    target = directory(tmp_path / "d")
    written(target, [row(0), row(1)], 1)
    damage(tmp_path / "d" / "orders")  # type: ignore[operator]  # one of the functions above
    before = files(tmp_path / "d")
    with pytest.raises(TargetUnsafe):
        V1.find_end(target, LOG)
    with pytest.raises(TargetUnsafe):
        written(target, [row(2)])
    assert files(tmp_path / "d") == before


def test_links_are_not_followed(tmp_path: Path) -> None:
    target = directory(tmp_path / "d")
    (tmp_path / "d" / "orders").mkdir()
    (tmp_path / "elsewhere").write_bytes(b"keep")
    (tmp_path / "d" / "orders" / "index_partition_003").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeName):
        written(target, [row(1)])
    assert (tmp_path / "elsewhere").read_bytes() == b"keep"


def test_two_writers_of_one_partition(tmp_path: Path) -> None:
    target = directory(tmp_path / "d")
    first = V1.writer(target, LOG, DatasetOptions(100))
    with pytest.raises(Locked):
        V1.writer(target, LOG, DatasetOptions(100))
    first.abort()
    assert written(target, [row(1)]) == 1


def test_in_a_bucket_each_run_begins_a_segment_and_objects_are_whole(tmp_path: Path) -> None:
    target = DatasetTarget(MemoryStore())
    rows = [row(o) for o in range(7)]
    written(target, rows[:4], 100)
    assert V1.find_end(target, LOG).last == 3
    written(target, rows[4:], 100)
    for info in target.names(""):
        path = tmp_path / info.name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(target.store.get(info.name, 1 << 20))
    assert [r.offset for r in records(tmp_path / "orders", 3)] == list(range(7))
    assert [start for _, start in segments(tmp_path / "orders", 3)] == [0, 3, 4]


def test_groups_are_written_only_if_they_differ(tmp_path: Path) -> None:
    target = directory(tmp_path / "d")
    V1.put_groups(target, LOG, {"b": 2, "a": 1})
    path = tmp_path / "d" / "orders" / "consumer_offsets_partition_003"
    assert path.read_bytes() == b'{"a":1,"b":2}'
    before = path.stat().st_ino
    V1.put_groups(target, LOG, {"a": 1, "b": 2})
    assert path.stat().st_ino == before
    V1.put_groups(target, LOG, {})
    assert path.read_bytes() == b"{}"
