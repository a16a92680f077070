"""Logs in zstd frames: golden bytes, what a frame may hold, and what a reader refuses."""

import shutil
import struct
import subprocess

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged
from logkeep.formats.zstd_frames import (
    FRAME_BYTES,
    LARGEST_SHARED,
    borders,
    frame_end,
    frame_head,
    opened,
    packed_frame,
    raw_frame,
)
from logkeep.formats.zstd_reader import FrameOpener, opened_document, unpacked_frames
from tests.support.kafka.handmade_batches import Batch, dense

LOG = b"".join(dense(base, 3).encode() for base in range(0, 30, 3))
RAW = b"".join(raw_frame(memoryview(LOG)))
PACKED = packed_frame(memoryview(LOG))
GOLDEN_RAW_HEAD = bytes.fromhex("28b52ffdc038")
GOLDEN_PACKED = (
    "28b52ffd603402ad0200a40200004600000000020adc5583020003e80003e8ff000000037265636f72642e00000306090c0f"
    "1215181b1000075071809e03943940c5017a0e50e6001507f47a15d044250015d9e38ea8dca4b45b53a0026001"
)


def zstd_d(stored: bytes) -> bytes:
    """What zstd's own tool makes of it; where the machine has none, its library's streaming decoder."""
    if tool := shutil.which("zstd"):
        return subprocess.run([tool, "-d", "-c"], input=stored, capture_output=True, check=True).stdout
    with pa.CompressedInputStream(pa.BufferReader(stored), "zstd") as stream:
        plain: bytes = stream.read()
    return plain


def read(frame: bytes) -> bytes:
    view = memoryview(frame)
    head = frame_head(view, "x")
    assert frame_end(view, head, "x") == len(frame)
    return bytes(opened(view, head.content_bytes, "x"))


def test_a_raw_frame_has_the_bytes_that_the_format_says() -> None:
    assert GOLDEN_RAW_HEAD + struct.pack("<Q", len(LOG)) + (len(LOG) << 3 | 1).to_bytes(3, "little") + LOG == RAW


def test_golden_frames_are_read_for_ever() -> None:
    assert read(bytes.fromhex(GOLDEN_PACKED)) == LOG


@pytest.mark.parametrize("size", [1, 255, 256, 257, 65_791, 65_792, 128 << 10, (128 << 10) + 1, 5 << 20])
def test_both_kinds_of_frames_are_what_zstd_reads(size: int) -> None:
    plain = memoryview(bytes(range(251)) * (size // 251 + 1))[:size]
    raw, packed = b"".join(raw_frame(plain)), packed_frame(plain)
    assert zstd_d(raw + packed + raw) == bytes(plain) * 3
    if size <= LARGEST_SHARED:
        assert read(raw) == read(packed) == plain
        assert list(unpacked_frames(iter((raw, packed)), 2 * size, "x", opened_document)) == [plain] * 2


@given(st.lists(st.integers(61, 3 * FRAME_BYTES), max_size=30), st.integers(0, FRAME_BYTES - 1))
def test_frames_are_small_or_hold_one_batch(sizes: list[int], held: int) -> None:
    first, total = 0, held
    for end in borders(held, sizes):
        batches = sizes[first:end]
        total += sum(batches)
        assert total <= LARGEST_SHARED or len(batches) == 1
        assert total > 0
        first, total = end, 0
    assert total + sum(sizes[first:]) < FRAME_BYTES


@given(st.lists(st.integers(61, 2 * FRAME_BYTES), max_size=30), st.integers(0, 30))
def test_borders_do_not_depend_on_how_batches_arrive(sizes: list[int], at: int) -> None:
    early = borders(0, sizes[:at])
    held = sum(sizes[early[-1] if early else 0 : at])
    late = [at + end for end in borders(held, sizes[at:])]
    assert [*early, *late] == borders(0, sizes)


@pytest.mark.parametrize("opener", [opened, opened_document])
@pytest.mark.parametrize("frame", [RAW, PACKED], ids=["raw", "packed"])
def test_any_changed_or_missing_byte_never_breaks_the_reader(frame: bytes, opener: FrameOpener) -> None:
    for at in range(len(frame)):
        for changed in (frame[:at], frame[:at] + bytes([frame[at] ^ 0x41]) + frame[at + 1 :]):
            view = memoryview(changed)
            try:
                head = frame_head(view, "x")
                if frame_end(view, head, "x") == len(changed):
                    assert len(opener(view, head.content_bytes, "x")) == head.content_bytes
            except Damaged:
                continue


def _claiming(content: int, frame: bytes) -> memoryview:
    return memoryview(frame[:6] + struct.pack("<Q", content) + frame[14:])


def test_a_frame_that_lies_about_its_size_is_refused() -> None:
    for content in (len(LOG) - 1, len(LOG) + 1):
        lying = _claiming(content, RAW)
        for opener in (opened, opened_document):
            with pytest.raises(Damaged, match=r"cannot be unpacked|more than its blocks can"):
                opener(lying, frame_head(lying, "x").content_bytes, "x")
    for content in (0, 1 << 40):
        with pytest.raises(Damaged, match="says that it holds"):
            frame_head(_claiming(content, RAW), "x")


def test_a_bomb_is_refused_before_memory_is_taken() -> None:
    """A thousand blocks that repeat a zero: 128 MiB out of 4 kB, and no batch in it."""
    head = struct.pack("<IBBQ", 0xFD2FB528, 0xC0, 7 << 3, 1000 << 17)
    blocks = b"".join(((1 << 17) << 3 | 1 << 1 | (i == 999)).to_bytes(3, "little") + b"\0" for i in range(1000))
    bomb = memoryview(head + blocks)
    found = frame_head(bomb, "x")
    assert frame_end(bomb, found, "x") == len(bomb)
    before = pa.total_allocated_bytes()
    with pytest.raises(Damaged, match="larger than the batch"):
        opened(bomb, found.content_bytes, "x")
    with pytest.raises(Damaged, match="larger than a document may be"):
        opened_document(bomb, found.content_bytes, "x")
    assert pa.total_allocated_bytes() == before


def test_one_large_batch_may_have_a_large_frame() -> None:
    batch = Batch(0, payload=bytes(range(256)) * (5 << 12)).encode()
    assert len(batch) > LARGEST_SHARED
    assert read(b"".join(raw_frame(memoryview(batch)))) == batch
    assert read(packed_frame(memoryview(batch))) == batch


def test_a_window_larger_than_ours_is_refused() -> None:
    wide = bytearray(RAW)
    wide[5] = 17 << 3
    with pytest.raises(Damaged, match="window"):
        frame_head(memoryview(wide), "x")
