"""The index beside a segment: its bytes, for ever, and what it answers."""

import struct
import zlib
from dataclasses import replace

import google_crc32c
import numpy as np
import pytest

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.kafka.batch_index import FRAME, ROW, BatchIndex, decode, encode, index_of, join
from logkeep.formats.kafka.batches import walk
from tests.support.kafka.handmade_batches import Batch, dense

BATCHES = [
    Batch(10, 1, 2, epoch=4, base_time_ms=500, max_time_ms=900, payload=bytes(14)),
    Batch(20, 9, 3, epoch=5, attributes=0x34, base_time_ms=100, max_time_ms=700, producer=81, payload=b"zstd"),
    Batch(30, 0, 1, epoch=5, attributes=0x48, base_time_ms=9999, max_time_ms=950),
    Batch(31, 0, 0, epoch=5, base_time_ms=-1, max_time_ms=-1, producer=7, payload=b""),
]
LOG = b"".join(b.encode() for b in BATCHES)
INDEX = index_of(walk(LOG).batches)
GOLDEN = bytes.fromhex(
    "4c4b42494458303104000000aaaf8c31789ce362800011282d07a5e5a134379496c5210f03de50ba074a5f40127704621720"
    "b605e22f8c10f114a83cbf3a84fe0f052dcc10fe1e2608bd8d19551e240c126284db6cc2e081241fc880aa9e1dca67016256"
    "240c000b4027cf"
)
FRAMES = np.array([(140, 33), (129, 90)], FRAME)
FRAMED = replace(INDEX, frames=FRAMES)
GOLDEN_FRAMED = bytes.fromhex(
    "4c4b4249445830320400000088e716fa02000000789ce362800011282d07a5e5a134379496c5210f03de50ba074a5f401277"
    "04621720b605e22f8c10f114a83cbf3a84fe0f052dcc10fe1e2608bd8d19551e240c126284db6cc2e081241fc880aa9e1dca"
    "67016256240c726723102b027114100300998a2957"
)


def test_golden_bytes_are_read_for_ever() -> None:
    assert (decode(GOLDEN).rows == INDEX.rows).all()


def test_columns_are_laid_out_as_the_format_says() -> None:
    """Independent of the compressor's version: the plain columns, in order, little-endian."""
    plain = zlib.decompress(encode(INDEX)[16:])
    assert plain[:32] == struct.pack("<4q", 10, 20, 30, 31)
    assert plain[32:64] == struct.pack("<4q", 11, 29, 30, 31)
    assert plain[-16:] == struct.pack("<4i", 4, 5, 5, 5)
    assert len(plain) == 4 * ROW.itemsize
    assert zlib.decompress(GOLDEN[16:]) == plain


def test_golden_bytes_with_frames_are_read_for_ever() -> None:
    found = decode(GOLDEN_FRAMED)
    assert (found.rows == INDEX.rows).all()
    assert (found.frames == FRAMES).all()


def test_frames_follow_the_batches() -> None:
    data = encode(FRAMED)
    assert data[:8] == b"LKBIDX02"
    assert data[16:20] == struct.pack("<I", 2)
    plain = zlib.decompress(data[20:])
    assert plain[: 4 * ROW.itemsize] == zlib.decompress(GOLDEN[16:])
    assert plain[4 * ROW.itemsize :] == struct.pack("<4i", 140, 129, 33, 90)


@pytest.mark.parametrize("frames", [[(140, 33)], [(141, 33), (128, 90)], [(140, 33), (129, 0)], [(269, 1), (0, 1)]])
def test_frames_that_do_not_hold_whole_batches_are_damage(frames: list[tuple[int, int]]) -> None:
    with pytest.raises(Damaged, match="contradicts"):
        decode(encode(replace(INDEX, frames=np.array(frames, FRAME))))


def test_it_knows_what_the_headers_say() -> None:
    assert INDEX.records == 6
    assert INDEX.codecs.tolist() == [0, 4, 0, 0]
    assert INDEX.transactional.tolist() == [False, True, False, False]
    assert INDEX.control.tolist() == [False, True, False, False]
    assert INDEX.append_time.tolist() == [False, False, True, False]
    assert INDEX.delete_horizon.tolist() == [False, False, True, False]
    assert (INDEX.base_time_ms, INDEX.max_time_ms) == (100, 950)


def test_lookups() -> None:
    assert [INDEX.at_offset(o) for o in (0, 11, 12, 25, 29, 30, 31, 32)] == [0, 0, 1, 1, 1, 2, 3, 4]


def test_pieces_join() -> None:
    first, second = walk(LOG).batches[:2], walk(LOG).batches[2:]
    assert (join([index_of(first), index_of(second, first.end)]).rows == INDEX.rows).all()
    assert len(join([])) == 0
    assert len(decode(encode(join([])))) == 0


@pytest.mark.parametrize("index", [INDEX, FRAMED], ids=["plain", "framed"])
def test_every_changed_byte_is_damage(index: BatchIndex) -> None:
    good = encode(index)
    for at in range(len(good)):
        with pytest.raises((Damaged, FormatTooNew)):
            decode(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(Damaged):
            decode(good[:at])


def _sealed(count: int, body: bytes) -> bytes:
    head = b"LKBIDX01" + struct.pack("<I", count)
    return head + struct.pack("<I", google_crc32c.value(head + body)) + body


@pytest.mark.parametrize(
    ("count", "body"),
    [
        (2**32 - 1, zlib.compress(b"")),
        (1, zlib.compress(bytes(ROW.itemsize - 1))),
        (1, zlib.compress(bytes(ROW.itemsize + 1))),
        (1, zlib.compress(bytes(10_000_000))),
        (1, b"not deflated at all, but rather long"),
        (1, zlib.compress(bytes(ROW.itemsize))),
        (4, zlib.compress(zlib.decompress(GOLDEN[16:])) + b"more"),
        (4, zlib.compress(zlib.decompress(GOLDEN[16:]))[:-1]),
    ],
)
def test_lies_under_a_right_checksum_are_damage(count: int, body: bytes) -> None:
    with pytest.raises(Damaged):
        decode(_sealed(count, body))


@pytest.mark.parametrize("column", ["position", "last_offset", "base_offset", "records", "size"])
def test_an_index_that_contradicts_itself_is_damage(column: str) -> None:
    rows = INDEX.rows.copy()
    rows[column][1] = -5
    with pytest.raises(Damaged, match="contradicts"):
        decode(encode(type(INDEX)(rows)))


def test_dense_batches_need_few_bytes() -> None:
    log = b"".join(dense(i * 10, 10, base_time_ms=i, max_time_ms=i).encode() for i in range(1000))
    assert len(encode(index_of(walk(log).batches))) < 1000 * ROW.itemsize / 4
