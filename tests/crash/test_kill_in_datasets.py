"""Datasets in a directory, killed after every system call that writes, and continued: equal bytes."""

import shutil
from pathlib import Path

from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.kafka_backup_v1 import KafkaBackupV1
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.store.local.store import LocalStore
from tests.crash.points import DONE, KILLED, in_child
from tests.crash.system_calls import SystemCalls
from tests.support.faults.plan import KillAfter, Plan, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.kafka.arrow_rows import record_batch
from tests.support.kafka.compacted_backups import CompactedSource
from tests.support.kafka.dataset_exports import Datasets
from tests.support.kafka.v1_reader import groups, records
from tests.support.kafka.whole_backups import new_place

LOG, V1 = DatasetLog("orders", 0), KafkaBackupV1()
ROWS = [(o, o, 0, b"k", b"v" * o, [(b"h", None)]) for o in range(3, 8)]
CALLS = ("write", "fsync", "ftruncate", "link", "unlink")


def _continue(root: Path) -> None:
    """What an export does: find the end, write what follows, then the groups."""
    target = DatasetTarget(LocalStore(root), root)
    last = V1.find_end(target, LOG).last
    left = [row for row in ROWS if last is None or row[0] > last]
    writer = V1.writer(target, LOG, DatasetOptions(60))
    for first in range(0, len(left), 3):
        writer.write(record_batch(left[first : first + 3]))
    writer.finish()
    V1.put_groups(target, LOG, {"billing": 9})


def _files(root: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (root / "orders").iterdir()}


def test_killed_after_every_system_call_and_continued(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    _continue(tmp_path / "one")
    whole, told = _files(tmp_path / "one"), tmp_path / "told"

    def victim(root: Path, die_at: int) -> None:
        calls = SystemCalls(CALLS, die_at, told)
        calls.watch()
        _continue(root)
        calls.tell()

    (tmp_path / "counted").mkdir()
    assert in_child(lambda: victim(tmp_path / "counted", -1)) == DONE
    points = int(told.read_text())
    assert points > 50
    for point in range(2, points + 1, 2):  # right after each call
        root = tmp_path / str(point)
        root.mkdir()
        assert in_child(lambda r=root, k=point: victim(r, k)) == KILLED, f"point {point} was never reached"  # type: ignore[misc]  # bound now
        _continue(root)
        assert _files(root) == whole, f"killed at {point}"
        shutil.rmtree(root)
    assert [r.offset for r in records(tmp_path / "one" / "orders", 0)] == [row[0] for row in ROWS]


def test_a_whole_export_is_killed_and_run_again(tmp_path: Path) -> None:
    """With its document, its groups and a topic that is written anew; every fourth call."""
    source = CompactedSource(new_place(tmp_path / "repository"), partitions=2, groups={"g": 2})
    source.write([(b"a", b"1"), (b"b", b"2")])
    source.write([(b"c", b"3")], partition=1)
    source.back_up()
    begun = tmp_path / "begun"
    Datasets(begun, segment_bytes=40).of_backup(source.place)
    source.write([(b"d", b"4"), (b"e", b"5")])
    source.back_up()
    told = tmp_path / "told"

    for rewrite in ((), ("state",)):

        def victim(root: Path, die_at: int, rewrite: tuple[str, ...] = rewrite) -> None:
            calls = SystemCalls((*CALLS, "rename", "rmdir"), die_at, told)
            calls.watch()
            Datasets(root, segment_bytes=40).of_backup(source.place, rewrite=rewrite)
            calls.tell()

        whole = Datasets(tmp_path / f"whole-{len(rewrite)}", segment_bytes=40)
        shutil.copytree(begun, whole.root)
        assert in_child(lambda root=whole.root: victim(root, -1)) == DONE  # type: ignore[misc]  # bound now
        points = int(told.read_text())
        for point in range(2, points + 1, 8):
            again = Datasets(tmp_path / str(point), segment_bytes=40)
            shutil.copytree(begun, again.root)
            assert in_child(lambda root=again.root, k=point: victim(root, k)) == KILLED  # type: ignore[misc]  # bound now
            again.of_backup(source.place, rewrite=rewrite)
            assert again.files("state") == whole.files("state"), f"killed at {point}"
            assert again.of_backup(source.place).logs == ()
            shutil.rmtree(again.root)


def test_whole_objects_killed_after_every_store_call(tmp_path: Path) -> None:
    """As in a bucket: what is there is whole, indexes come last, and a run that goes on has each record once."""

    def run(root: Path, plan: Plan) -> int:
        store = FaultyStore(LocalStore(root), plan)
        target = DatasetTarget(store)
        last = V1.find_end(target, LOG).last
        writer = V1.writer(target, LOG, DatasetOptions(60))
        for row in ROWS:
            if last is None or row[0] > last:
                writer.write(record_batch([row]))
        writer.finish()
        V1.put_groups(target, LOG, {"billing": 9})
        return len(store.calls)

    (tmp_path / "counted").mkdir()
    for call in range(1, run(tmp_path / "counted", no_faults) + 1):
        root = tmp_path / str(call)
        root.mkdir()
        assert in_child(lambda r=root, k=call: run(r, KillAfter(k))) == KILLED  # type: ignore[misc]  # bound now
        run(root, no_faults)
        assert [r.offset for r in records(root / "orders", 0)] == [row[0] for row in ROWS], f"killed at {call}"
        assert groups(root / "orders", 0) == {"billing": 9}
        shutil.rmtree(root)
