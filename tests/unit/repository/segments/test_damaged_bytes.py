"""Bytes that imitate packed frames: salvage ends, and its cost does not grow with the square of their number."""

import struct

import pytest

from logkeep.formats.zstd_frames import MAGIC, FrameHead, blocks_before_damage, frame_head, packed_frame
from logkeep.model.segments import Codec
from logkeep.repository.segments import damaged_bytes
from logkeep.repository.segments.reader import StoredLog
from logkeep.store.memory import MemoryStore

HEAD = MAGIC + bytes((0xA0,)) + struct.pack("<I", 2 << 20)
"""Of a frame of two megabytes."""
GOOD = packed_frame(memoryview(b"a good frame" * 100))


def stored(data: bytes) -> StoredLog:
    store = MemoryStore()
    store.put_new("x", data)
    return StoredLog(store, "x", Codec.ZSTD, len(data), 1 << 20)


class Work:
    """How many frame heads a salvage read, how often it copied its buffer, how many chains of blocks it followed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heads = self.copies = self.walks = 0
        self._last: object = None
        monkeypatch.setattr(damaged_bytes, "frame_head", self._read_head)
        monkeypatch.setattr(damaged_bytes, "blocks_before_damage", self._walk)

    def _read_head(self, data: memoryview, subject: str) -> FrameHead:
        self.heads += 1
        self.copies += data.obj is not self._last
        self._last = data.obj
        return frame_head(data, subject)

    def _walk(self, data: memoryview, head: FrameHead) -> tuple[memoryview, int]:
        self.walks += 1
        return blocks_before_damage(data, head)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(monkeypatch)


def test_the_buffer_is_not_copied_for_every_head(work: Work) -> None:
    data = MAGIC * 4000 + GOOD
    assert b"".join(damaged_bytes.salvaged(stored(data))) == b"a good frame" * 100
    assert work.heads > 4000
    assert work.copies == 1


def test_a_frame_is_found_at_every_border_of_two_reads(work: Work) -> None:
    """Between two of them lies a stretch that holds none."""
    data = (GOOD + bytes(3 << 20)) * 5 + GOOD
    assert b"".join(damaged_bytes.salvaged(stored(data))) == b"a good frame" * 600
    assert work.copies <= 8


def test_the_search_for_frames_ends_at_its_limit(work: Work) -> None:
    list(damaged_bytes.salvaged(stored(MAGIC * 20_000), effort_bytes=1 << 20))
    assert 4000 < work.heads < 5000


def test_chains_of_blocks_that_many_heads_begin_are_not_all_followed(work: Work) -> None:
    """Each head has a block that reaches over all other heads, to where empty blocks go on and on."""
    many, unit = 200, len(HEAD) + 3
    heads = (HEAD + ((many - number - 1) * unit << 3).to_bytes(3, "little") for number in range(many))
    data = b"".join(heads) + bytes(60 << 10)
    list(damaged_bytes.salvaged(stored(data), effort_bytes=1 << 20))
    assert 10 < work.walks < 20


def test_frames_that_are_damaged_cost_next_to_nothing(work: Work) -> None:
    """All that was followed lies behind when the next one is looked for."""
    bad = bytearray(packed_frame(memoryview(bytes(range(256)) * 1000)))
    bad[9:12] = b"\xff\xff\xff"
    data = (bytes(bad) + GOOD) * 100
    assert b"".join(damaged_bytes.salvaged(stored(data), effort_bytes=100 << 10)) == b"a good frame" * 10_000
