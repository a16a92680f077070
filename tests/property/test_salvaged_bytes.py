"""One wrong bit anywhere in a packed log: every record before it is found, and with zstd those of all other frames."""

import io
import random
import zlib
from functools import cache
from itertools import accumulate

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.txnlog import scan
from logkeep.formats.zstd_frames import LARGEST_SHARED
from logkeep.model.segments import Codec
from logkeep.repository.object_writer import FRAME_BYTES, StoredWriter
from logkeep.repository.segments.damaged_bytes import salvaged
from logkeep.repository.segments.reader import StoredLog
from logkeep.store.memory import MemoryStore
from logkeep.zookeeper.model.packing import unpacked_stream
from logkeep.zookeeper.timeline.log_check import good_runs
from logkeep.zookeeper.timeline.object_check import LARGEST_SALVAGED
from tests.support.zookeeper.encoding import LOG_HEADER
from tests.support.zookeeper.handmade_directories import txn

RECORDS = {Codec.GZIP: 400, Codec.ZSTD: 1500, Codec.NONE: 100}
GZIP_HEAD, GZIP_TAIL = 10, 8
BLOCK_BYTES = 128 << 10


class Packed:
    """A log of some megabytes whose content shrinks by half, and where each of its records ends."""

    def __init__(self, codec: Codec) -> None:
        chance = random.Random(7)
        made = [txn(zxid, chance.randbytes(1500).hex().encode()) for zxid in range(1, RECORDS[codec] + 1)]
        self.codec, self.plain = codec, LOG_HEADER + b"".join(made)
        self.ends = list(accumulate(map(len, made), initial=len(LOG_HEADER)))[1:]
        store = MemoryStore()
        writer = StoredWriter(store.open_new("x"), "x", "x", codec)
        writer.write(self.plain)
        writer.close()
        self.stored = store.get("x", 1 << 30)

    def holding(self, stored: bytes) -> StoredLog:
        store = MemoryStore()
        store.put_new("x", stored)
        return StoredLog(store, "x", self.codec, len(self.stored), len(self.plain))

    def flipped(self, at: int, bit: int) -> StoredLog:
        return self.holding(self.stored[:at] + bytes((self.stored[at] ^ 1 << bit,)) + self.stored[at + 1 :])

    def within(self, first: int, end: int) -> set[int]:
        """The transactions whose records lie in these plain bytes."""
        starts = [len(LOG_HEADER), *self.ends]
        return {n + 1 for n, last in enumerate(self.ends) if first <= starts[n] and last <= end}


@cache
def packed(codec: Codec) -> Packed:
    return Packed(codec)


def found_in(stored: StoredLog) -> set[int]:
    with unpacked_stream(salvaged(stored)) as source:
        scanned = scan(source, deep=True, largest_record=LARGEST_SALVAGED)
    return {zxid for first, last in good_runs(scanned) for zxid in range(first, last + 1)}


def block_before(frame: bytes, at: int) -> int:
    """How many blocks of a frame end before a byte, counted in another way: by following their heads."""
    descriptor = frame[4]
    single, flag = descriptor & 0x20, descriptor >> 6
    here = 5 + (not single) + {0: 1 if single else 0, 1: 2, 2: 4, 3: 8}[flag]
    whole = 0
    while here + 3 <= at:
        head = int.from_bytes(frame[here : here + 3], "little")
        here += 3 + (1 if head >> 1 & 3 == 1 else head >> 3)
        whole += here <= at
    return whole


def frames_of(log: Packed) -> list[int]:
    """Where the frames of a log begin, as writing each by itself tells."""
    starts = [0]
    for at in range(0, len(log.plain), FRAME_BYTES):
        store = MemoryStore()
        writer = StoredWriter(store.open_new("x"), "x", "x", Codec.ZSTD)
        writer.write(log.plain[at : at + FRAME_BYTES])
        starts.append(starts[-1] + writer.close().size_bytes)
    assert starts[-1] == len(log.stored)
    return starts


@settings(max_examples=40)
@given(st.integers(0, 1 << 40), st.integers(0, 7))
@example(0, 0)
@example(2, 3)
@example(3, 2)
@example(3, 3)
@example(9, 5)
@example(-1, 0)
@example(-GZIP_TAIL, 7)
def test_gzip_gives_every_record_before_a_wrong_bit(place: int, bit: int) -> None:
    log = packed(Codec.GZIP)
    at = place % len(log.stored)
    found = found_in(log.flipped(at, bit))
    if at < GZIP_HEAD or at >= len(log.stored) - GZIP_TAIL:
        assert found == log.within(0, len(log.plain)), "neither the head nor the checksum holds anything of a record"
    before = len(zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(log.stored[:at]))
    assert log.within(0, before) <= found


@settings(max_examples=40)
@given(st.integers(0, 1 << 40), st.integers(0, 7))
@example(0, 0)
@example(4, 5)
@example(5, 7)
@example(6, 1)
@example(9, 0)
@example(-1, 7)
def test_zstd_gives_every_record_outside_of_the_damaged_blocks(place: int, bit: int) -> None:
    log = packed(Codec.ZSTD)
    at, starts = place % len(log.stored), frames_of(log)
    assert len(starts) > 3
    number = next(n for n, end in enumerate(starts[1:]) if at < end)
    frame = log.stored[starts[number] : starts[number + 1]]
    begins = number * FRAME_BYTES
    spared = block_before(frame, at - starts[number]) * BLOCK_BYTES
    if at - starts[number] < 5:
        spared = 0
    found = found_in(log.flipped(at, bit))
    assert log.within(0, begins + spared) <= found
    assert log.within(begins + FRAME_BYTES, len(log.plain)) <= found


@pytest.mark.parametrize("codec", list(Codec))
@settings(max_examples=10)
@given(st.integers(0, 1 << 40))
def test_what_was_cut_off_is_all_that_is_missing(codec: Codec, place: int) -> None:
    log = packed(codec)
    cut = place % len(log.stored)
    found = found_in(log.holding(log.stored[:cut]))
    if codec is Codec.NONE:
        assert found == log.within(0, cut)
    elif codec is Codec.GZIP:
        assert found == log.within(0, len(zlib.decompressobj(31).decompress(log.stored[:cut])))
    else:
        assert found >= log.within(0, sum(end <= cut for end in frames_of(log)[1:]) * FRAME_BYTES)


@pytest.mark.parametrize("codec", list(Codec))
def test_of_a_whole_object_it_is_what_was_stored(codec: Codec) -> None:
    log = packed(codec)
    assert b"".join(salvaged(log.holding(log.stored))) == log.plain


@settings(max_examples=15)
@given(st.integers(GZIP_HEAD, 1 << 40), st.integers(0, 7))
def test_who_reads_on_is_told_and_has_everything_before(place: int, bit: int) -> None:
    """Reading that stops at damage: what comes before it is given first."""
    log = packed(Codec.GZIP)
    at = GZIP_HEAD + place % (len(log.stored) - GZIP_HEAD)
    given_first = io.BytesIO()
    with pytest.raises(Damaged):
        given_first.writelines(log.flipped(at, bit).pieces())
    before = len(zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(log.stored[:at]))
    assert given_first.getvalue()[:before] == log.plain[:before]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_an_object_that_explodes_is_given_up(codec: Codec) -> None:
    """No more than twice what it should hold is made of it, and a frame."""
    log, store = packed(codec), MemoryStore()
    writer = StoredWriter(store.open_new("x"), "x", "x", codec)
    for _ in range(24):
        writer.write(bytes(1 << 20))
    size = writer.close().size_bytes
    small = StoredLog(store, "x", log.codec, size, 1000)
    assert sum(map(len, salvaged(small))) <= 2000 + LARGEST_SHARED
