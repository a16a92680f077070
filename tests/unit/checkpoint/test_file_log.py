"""The log in files: torn tails, damage, a second leader, a full disk."""

import os
from pathlib import Path

import pytest

from logkeep.checkpoint.file_log.file_log import FileLog
from logkeep.checkpoint.records import Record, command
from logkeep.errors import Damaged, Locked, ObjectMissing, PartitionFenced, StoreFull
from logkeep.formats.plain_batches import walk

_LARGE = 1 << 30


def _commands(*keys: str) -> list[Record]:
    return [command("put", key, b"\x01", request=f"r-{key}").at(-1, 1_700_000_000_000) for key in keys]


def _keys(log: FileLog) -> list[bytes | None]:
    return [record.key for record in log.read(log.start, _LARGE)]


def _segment(directory: Path) -> Path:
    return max(directory.glob("*.log"))


def _filled(directory: Path, batches: int = 3) -> list[int]:
    """The sizes of the segment after each of some batches."""
    log, sizes = FileLog(directory), []
    for number in range(batches):
        log.append(_commands(f"a{number}", f"b{number}"))
        sizes.append(_segment(directory).stat().st_size)
    log.close()
    return sizes


def test_a_torn_tail_is_cut_at_every_byte(tmp_path: Path) -> None:
    sizes = _filled(tmp_path)
    whole = _segment(tmp_path).read_bytes()
    for size in range(sizes[1], sizes[2]):
        _segment(tmp_path).write_bytes(whole[:size])
        log = FileLog(tmp_path)
        assert (log.end, _keys(log)) == (4, [b"a0", b"b0", b"a1", b"b1"])
        assert log.append(_commands("next")) == 4
        log.close()
        again = FileLog(tmp_path)
        assert _keys(again)[-1] == b"next"
        again.close()


def test_unsynced_blocks_of_the_last_append_are_cut(tmp_path: Path) -> None:
    """After a power loss the file may have its new length and zeros, or parts, in it."""
    sizes = _filled(tmp_path)
    whole = bytearray(_segment(tmp_path).read_bytes())
    for start in range(sizes[1], sizes[2], 7):
        damaged = whole.copy()
        damaged[start:] = bytes(len(damaged) - start)
        _segment(tmp_path).write_bytes(damaged)
        log = FileLog(tmp_path)
        assert log.end == 4
        log.close()


def test_damage_in_front_of_a_whole_batch_is_refused(tmp_path: Path) -> None:
    sizes = _filled(tmp_path)
    whole = _segment(tmp_path).read_bytes()
    for place in range(sizes[0], sizes[1]):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        _segment(tmp_path).write_bytes(damaged)
        if sizes[0] + 12 <= place < sizes[0] + 16:
            continue  # the leader epoch is outside of the checksum, as in every log of Kafka
        with pytest.raises(Damaged, match=r"position 2 is damaged|instead of 2, or is cut off"):
            FileLog(tmp_path)
    assert _segment(tmp_path).stat().st_size == sizes[2]


def test_damage_in_an_earlier_segment_is_found_when_it_is_read(tmp_path: Path) -> None:
    log = FileLog(tmp_path, segment_bytes=100)
    for number in range(4):
        log.append(_commands(f"key {number}"))
    log.close()
    first = min(tmp_path.glob("*.log"))
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    again = FileLog(tmp_path, segment_bytes=100)
    with pytest.raises(Damaged, match="checksum"):
        again.read(0, 1)
    with pytest.raises(Damaged, match="checksum"):
        list(again.batches(0, again.end))
    assert again.read(1, 1)[0].key == b"key 1"
    again.close()
    first.unlink()
    shorter = FileLog(tmp_path, segment_bytes=100)
    assert shorter.start == 1
    shorter.close()


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    log = FileLog(tmp_path, segment_bytes=100)
    for number in range(4):
        log.append(_commands(f"key {number}"))
    log.close()
    sorted(tmp_path.glob("*.log"))[1].unlink()
    with pytest.raises(Damaged, match="ends at position 1 instead of 2"):
        FileLog(tmp_path, segment_bytes=100)
    assert len(list(tmp_path.glob("*.log"))) == 3


def test_the_second_leader_is_refused_and_terms_grow(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    with pytest.raises(Locked, match="another process leads"):
        FileLog(tmp_path)
    assert log.append(_commands("a")) == 0
    log.close()
    (tmp_path / "leader").unlink()
    again = FileLog(tmp_path)
    assert again.term == 2  # from the epoch of the last batch
    again.close()


def test_a_leader_whose_directory_was_replaced_is_fenced(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "log")
    log.append(_commands("a"))
    (tmp_path / "log").rename(tmp_path / "old")
    other = FileLog(tmp_path / "log")
    with pytest.raises(PartitionFenced):
        log.append(_commands("b"))
    assert other.end == 0
    other.close()
    log.close()


def test_bytes_of_another_writer_fence(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    log.append(_commands("a"))
    with _segment(tmp_path).open("ab") as file:
        file.write(b"x")
    with pytest.raises(PartitionFenced, match="another process wrote"):
        log.append(_commands("b"))
    log.close()


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = FileLog(tmp_path)
    log.append(_commands("a"))
    size, real = _segment(tmp_path).stat().st_size, os.pwrite

    def half(descriptor: int, data: memoryview, at: int) -> int:
        if at > size:
            raise OSError(28, "No space left on device")
        return real(descriptor, data[:30], at)

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", half)
        with pytest.raises(StoreFull, match="no space is left for the log"):
            log.append(_commands("b"))
    assert (_segment(tmp_path).stat().st_size, log.end) == (size, 1)
    assert log.append(_commands("c")) == 1
    assert _keys(log) == [b"a", b"c"]
    log.close()


def test_positions_outside_of_the_log_are_named(tmp_path: Path) -> None:
    log = FileLog(tmp_path, segment_bytes=100)
    for number in range(4):
        log.append(_commands(f"key {number}"))
    assert log.compact(2) == 2
    with pytest.raises(ObjectMissing, match="position 1 is not in the log, which has 2 to 4"):
        log.read(1, 1)
    assert log.read(4, 1) == []
    log.close()


def test_pieces_of_a_large_log_are_whole_batches(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    for number in range(30):
        log.append([command("put", str(number), bytes(100_000)).at(-1, 0)])
    pieces = list(log.batches(3, 27))
    assert [header.base_offset for piece in pieces for _, header in walk(piece)] == list(range(3, 27))
    assert 2 <= len(pieces) <= 4
    log.close()
