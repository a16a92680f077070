"""A kafka-backup-v1 dataset in a directory, killed after every system call that writes, and continued: equal bytes."""

import shutil
from pathlib import Path

from logkeep.kafka.datasets.formats import DatasetLog, DatasetOptions
from logkeep.kafka.datasets.kafka_backup_v1 import KafkaBackupV1
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.store.local import LocalStore
from tests.crash.points import DONE, KILLED, in_child
from tests.crash.system_calls import SystemCalls
from tests.support.kafka.arrow_rows import record_batch
from tests.support.kafka.v1_reader import records

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
