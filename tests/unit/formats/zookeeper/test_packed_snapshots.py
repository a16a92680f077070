"""Snapshots that servers packed: read while they are unpacked, and refused where anything is missing or too much."""

import gzip
import io
import os
import struct
import tracemalloc
from contextlib import suppress

import pytest

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.compression import opened
from logkeep.formats.zookeeper.names import SnapshotPacking
from tests.support.zookeeper.snappy_frames import snapped

PLAIN = b"some text and some text" * 400 + os.urandom(70_000)
PACKED = {
    SnapshotPacking.PLAIN: PLAIN,
    SnapshotPacking.GZIP: gzip.compress(PLAIN),
    SnapshotPacking.SNAPPY: snapped(PLAIN),
}


@pytest.mark.parametrize("packing", SnapshotPacking)
def test_the_plain_bytes_come_out(packing: SnapshotPacking) -> None:
    with opened(io.BytesIO(PACKED[packing]), packing) as stream:
        assert stream.read(10) + stream.read() == PLAIN
        assert stream.read(1) == b""


@pytest.mark.parametrize("packing", [SnapshotPacking.GZIP, SnapshotPacking.SNAPPY])
def test_closing_it_closes_the_file(packing: SnapshotPacking) -> None:
    file = io.BytesIO(PACKED[packing])
    opened(file, packing).close()
    assert file.closed


def test_gzip_that_ends_too_early_is_damaged_wherever_it_is_cut() -> None:
    packed = gzip.compress(b"short")
    for size in range(len(packed)):
        with pytest.raises(Damaged, match="ends too early"):
            opened(io.BytesIO(packed[:size]), SnapshotPacking.GZIP).read()


def test_snappy_that_ends_too_early_is_damaged_unless_it_ends_between_blocks() -> None:
    packed = snapped(b"0123456789" * 3, 10)
    readable = {}
    for size in range(len(packed) + 1):
        with suppress(Damaged):
            readable[size] = opened(io.BytesIO(packed[:size]), SnapshotPacking.SNAPPY).read()
    block = (len(packed) - 16) // 3
    assert readable == {16 + number * block: b"0123456789" * number for number in range(4)}


@pytest.mark.parametrize("behind", [b"\0", b"x" * 40, gzip.compress(b"more", mtime=0)], ids=["zero", "text", "gzip"])
@pytest.mark.parametrize("packing", [SnapshotPacking.GZIP, SnapshotPacking.SNAPPY])
def test_anything_behind_the_end_is_damage(packing: SnapshotPacking, behind: bytes) -> None:
    with pytest.raises(Damaged):
        opened(io.BytesIO(PACKED[packing] + behind), packing).read()


@pytest.mark.parametrize("packing", [SnapshotPacking.GZIP, SnapshotPacking.SNAPPY])
def test_bytes_that_are_not_packed_are_refused(packing: SnapshotPacking) -> None:
    with pytest.raises(Damaged):
        opened(io.BytesIO(PLAIN), packing).read()


def test_a_flipped_bit_in_gzip_is_noticed_or_changes_nothing() -> None:
    """There are bits that mean nothing: the time in the header, what fills the last byte of the stream."""
    packed = bytearray(gzip.compress(b"short text", mtime=0))
    noticed = 0
    for bit in range(8 * len(packed)):
        packed[bit // 8] ^= 1 << bit % 8
        try:
            assert opened(io.BytesIO(bytes(packed)), SnapshotPacking.GZIP).read() == b"short text"
        except Damaged:
            noticed += 1
        packed[bit // 8] ^= 1 << bit % 8
    assert noticed > 8 * len(packed) * 3 // 4


def test_a_block_that_claims_to_be_huge_costs_nothing() -> None:
    """Both ways: a length before the block, and a length within it."""
    claim = b"\xff\xff\xff\xff\x07" + b"\0" * 20
    for block in (struct.pack(">i", 0x7FFFFFFF) + b"x", struct.pack(">i", len(claim)) + claim):
        packed = snapped(b"") + block
        tracemalloc.start()
        with pytest.raises(Damaged):
            opened(io.BytesIO(packed), SnapshotPacking.SNAPPY).read()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4 << 20


def test_a_bomb_is_unpacked_a_piece_at_a_time() -> None:
    packed = gzip.compress(bytes(64 << 20))
    tracemalloc.start()
    with opened(io.BytesIO(packed), SnapshotPacking.GZIP) as stream:
        while stream.read(1 << 16):
            pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
