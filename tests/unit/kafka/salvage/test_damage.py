"""Disks that are damaged, mixed, strange or forbidden: everything readable is archived, everything else is told."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from logkeep.errors import LogDirUnusable, OldMessageFormat
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.directories import hold_directories, list_directories, log_dirs
from logkeep.kafka.disks.segment_windows import CHUNK_BYTES
from logkeep.kafka.salvage.run import SalvageDone
from tests.support.kafka.broker_disks import CLUSTER, ID, add_log, flip, made_disk, run_of
from tests.support.kafka.handmade_batches import Batch, dense
from tests.support.kafka.salvage_steps import codes, salvaged, told
from tests.support.kafka.whole_backups import new_place

ORDERS = TopicPartition("orders", 0)
SIZE = len(dense(0, 5).encode())


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Three segments of a hundred records, all below the high watermark."""
    root = made_disk(tmp_path / "disk", watermarks={ORDERS: 300})
    add_log(root, "orders-0", [run_of(0, 100), run_of(100, 200), run_of(200, 300)])
    return root


def _segment(disk: Path, base: int) -> Path:
    return disk / "orders-0" / f"{base:020d}.log"


def _offsets(tmp_path: Path, *disks: Path) -> tuple[list[int], list[tuple[int, int]], SalvageDone]:
    """Base offsets that were archived, gaps, and what was said. Everything must verify."""
    archive, done = salvaged(new_place(tmp_path / "repository"), disks)
    assert done.entry is not None
    archive.check(done.entry.id)
    bases = [int.from_bytes(batch[:8], "big") for batch in archive.batches(done.entry.id, "orders")]
    return bases, [(g.start, g.end) for g in done.gaps], done


def test_a_sound_disk(tmp_path: Path, disk: Path) -> None:
    bases, gaps, done = _offsets(tmp_path, disk)
    assert (bases, gaps) == (list(range(0, 300, 5)), [])
    assert codes(done) == {"metadata-missing", "positions-incomplete"}


def test_a_flipped_byte_costs_one_batch(tmp_path: Path, disk: Path) -> None:
    flip(_segment(disk, 100), 3 * SIZE + 70)
    bases, gaps, done = _offsets(tmp_path, disk)
    assert (sorted(set(range(0, 300, 5)) - set(bases)), gaps) == ([115], [(115, 120)])
    (said,) = told(done, "damaged")
    assert f"{_segment(disk, 100)}: a batch does not have the checksum of its header from byte {3 * SIZE}" in said
    assert "at offset 115; offsets [115, 120)" in said


def test_a_broken_length_costs_the_rest_of_its_file(tmp_path: Path, disk: Path) -> None:
    flip(_segment(disk, 100), 3 * SIZE + 8)
    _, gaps, done = _offsets(tmp_path, disk)
    assert gaps == [(115, 200)]
    assert f"byte {3 * SIZE} " in told(done, "damaged")[0]


def test_two_damages_in_a_row_are_one_gap(tmp_path: Path, disk: Path) -> None:
    flip(_segment(disk, 100), 18 * SIZE + 70)
    flip(_segment(disk, 100), 19 * SIZE + 70)
    flip(_segment(disk, 200), 70)
    assert _offsets(tmp_path, disk)[1] == [(190, 205)]


def test_a_tail_that_is_cut_off_ends_the_log(tmp_path: Path, disk: Path) -> None:
    os.truncate(_segment(disk, 200), 7 * SIZE + 30)
    bases, gaps, done = _offsets(tmp_path, disk)
    assert (bases[-1], gaps) == (230, [])
    assert "a batch is cut off" in told(done, "damaged")[0]
    assert "[235, 300) were committed" in told(done, "lost-tail")[0]


def test_zeros_behind_the_end_are_no_damage(tmp_path: Path, disk: Path) -> None:
    with _segment(disk, 200).open("ab") as file:
        file.write(bytes(CHUNK_BYTES + 5))
    bases, gaps, done = _offsets(tmp_path, disk)
    assert (len(bases), gaps) == (60, [])
    assert codes(done) >= {"zero-tail"}
    assert not codes(done) & {"damaged"}


def test_zeros_in_the_middle_are(tmp_path: Path, disk: Path) -> None:
    path = _segment(disk, 100)
    path.write_bytes(path.read_bytes()[: 4 * SIZE] + bytes(50_000))
    assert _offsets(tmp_path, disk)[1] == [(120, 200)]


def test_offsets_that_do_not_rise_end_a_file(tmp_path: Path, disk: Path) -> None:
    _segment(disk, 100).write_bytes(b"".join(b.encode() for b in [*run_of(100, 120), *run_of(50, 200)]))
    _, gaps, done = _offsets(tmp_path, disk)
    assert gaps == [(120, 200)]
    assert "offsets do not rise" in told(done, "damaged")[0]


def test_a_batch_larger_than_a_window(tmp_path: Path) -> None:
    root = made_disk(tmp_path / "disk", watermarks={ORDERS: 3})
    large = Batch(1, payload=b"x" * (CHUNK_BYTES + 1000))
    add_log(root, "orders-0", [[dense(0, 1), large, dense(2, 1)]])
    assert _offsets(tmp_path, root)[:2] == ([0, 1, 2], [])


def test_old_formats_are_refused(tmp_path: Path, disk: Path) -> None:
    data = bytearray(_segment(disk, 100).read_bytes())
    data[16] = 1
    _segment(disk, 100).write_bytes(data)
    with pytest.raises(OldMessageFormat, match="version 1"):
        _offsets(tmp_path, disk)


def test_what_lies_above_the_watermark_is_told(tmp_path: Path) -> None:
    root = made_disk(tmp_path / "disk", watermarks={ORDERS: 40})
    add_log(root, "orders-0", [run_of(0, 60)])
    _, _, done = _offsets(tmp_path, root)
    assert "offsets [40, 60) are above" in told(done, "unproven-tail")[0]


def test_a_log_start_inside_a_batch(tmp_path: Path) -> None:
    root = made_disk(tmp_path / "disk", watermarks={ORDERS: 60}, starts={ORDERS: 23})
    add_log(root, "orders-0", [run_of(0, 60)])
    archive, done = salvaged(new_place(tmp_path / "repository"), [root])
    assert done.entry is not None
    assert (archive.cut(done.entry.id, "orders").start, archive.cut(done.entry.id, "orders").end) == (23, 60)
    assert int.from_bytes(archive.batches(done.entry.id, "orders")[0][:8], "big") == 20


def test_directories_on_their_way_are_told(tmp_path: Path, disk: Path) -> None:
    for name in (f"gone-0.{'1' * 32}-delete", f"lost-0.{'2' * 32}-stray", f"orders-0.{'3' * 32}-future"):
        add_log(disk, name, [run_of(0, 10)])
    add_log(disk, f"moved-0.{'4' * 32}-future", [run_of(0, 10)])
    (disk / "foreign").mkdir()
    (disk / "foreign.txt").write_text("?")
    (disk / "orders-0" / "notes.log.txt").write_text("?")
    archive, done = salvaged(new_place(tmp_path / "repository"), [disk])
    assert done.entry is not None
    assert {log.topic for log in archive.cuts(done.entry.id)} == {"orders", "moved"}
    assert len(told(done, "directory-left-out")) == 3
    assert "may be short" in told(done, "future-copy")[0]


def test_a_missing_partition_is_told(tmp_path: Path, disk: Path) -> None:
    add_log(disk, "orders-2", [run_of(0, 10)])
    _, done = salvaged(new_place(tmp_path / "repository"), [disk])
    assert told(done, "partition-missing") == ["orders-1: it is on none of these disks; copies were on unknown brokers"]


def test_two_clusters_are_not_mixed(tmp_path: Path, disk: Path) -> None:
    other = made_disk(tmp_path / "other", 2, "another-cluster")
    with pytest.raises(LogDirUnusable, match="several clusters"):
        list_directories([disk, other])


def test_no_broker_lived_here(tmp_path: Path) -> None:
    with pytest.raises(LogDirUnusable, match=r"no meta\.properties"):
        list_directories([tmp_path])
    with pytest.raises(LogDirUnusable, match="no such directory"):
        list_directories([tmp_path / "nothing"])


def test_a_lock_of_another_process_is_respected(disk: Path) -> None:
    hold = "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f,fcntl.LOCK_EX); print('held',flush=True); input()"
    command = [sys.executable, "-c", hold, str(disk / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LogDirUnusable, match="a running broker holds it"), hold_directories([disk]):
            pass
        holder.communicate("\n")
    with hold_directories([disk]):
        pass


def test_directories_as_users_write_them(tmp_path: Path) -> None:
    assert log_dirs(["/a,/b", "/c , /a"]) == (Path("/a"), Path("/b"), Path("/c"))


class TestSeveralCopies:
    """Two brokers had the partition."""

    @pytest.fixture
    def other(self, tmp_path: Path, disk: Path) -> Path:
        root = made_disk(tmp_path / "other", 2, CLUSTER, watermarks={ORDERS: 290})
        shutil.copytree(disk / "orders-0", root / "orders-0")
        return root

    def test_a_good_copy_fills_what_is_damaged(self, tmp_path: Path, disk: Path, other: Path) -> None:
        flip(_segment(disk, 100), 3 * SIZE + 8)
        flip(_segment(other, 200), 3 * SIZE + 70)
        for disks in ((disk, other), (other, disk)):
            bases, gaps, done = _offsets(tmp_path / disks[0].name, *disks)
            assert (bases, gaps) == (list(range(0, 300, 5)), [])
            assert len(told(done, "damaged")) == len(told(done, "copy-damaged")) == 1

    def test_the_same_damage_in_both_is_a_gap(self, tmp_path: Path, disk: Path, other: Path) -> None:
        for root in (disk, other):
            flip(_segment(root, 100), 3 * SIZE + 70)
        assert _offsets(tmp_path, disk, other)[1] == [(115, 120)]

    def test_the_highest_epoch_wins_and_the_difference_is_told(self, tmp_path: Path, disk: Path, other: Path) -> None:
        tail = [*run_of(200, 250), *run_of(250, 280, epoch=1)]
        _segment(other, 200).write_bytes(b"".join(b.encode() for b in tail))
        archive, done = salvaged(new_place(tmp_path / "repository"), [disk, other])
        assert done.entry is not None
        assert archive.cut(done.entry.id, "orders").end == 280
        assert "at offset 250" in told(done, "copies-differ")[0]
        assert archive.batches(done.entry.id, "orders")[-6:] == [b.encode() for b in tail[-6:]]

    def test_the_longer_one_wins(self, tmp_path: Path, disk: Path, other: Path) -> None:
        os.truncate(_segment(disk, 200), 7 * SIZE)
        bases, _, done = _offsets(tmp_path, disk, other)
        assert bases[-1] == 295
        assert not codes(done) & {"copies-differ", "lost-tail"}

    def test_another_topic_of_the_same_name_is_left_out(self, tmp_path: Path, disk: Path, other: Path) -> None:
        add_log(disk, "orders-1", [run_of(0, 10)])
        shutil.rmtree(other / "orders-0")
        add_log(other, "orders-0", [run_of(0, 900)], topic_id=type(ID)(int=5))
        bases, _, done = _offsets(tmp_path, disk, other)
        assert bases[-1] == 295
        assert "another topic of the same name" in told(done, "directory-left-out")[0]
