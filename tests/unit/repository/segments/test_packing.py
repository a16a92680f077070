"""Segments in zstd frames: what the writer stores, and that every way of reading gives the log back."""

import gzip
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged
from logkeep.formats.kafka.batch_index import BatchIndex
from logkeep.formats.kafka.batches import walk
from logkeep.formats.zstd_frames import FRAME_BYTES
from logkeep.model.segments import Codec
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.packing import compressed_balance
from logkeep.repository.segments.reader import StoredLog, joined, read_index
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.store.base import ObjectMetadata, Store
from logkeep.store.memory import MemoryStore
from logkeep.store.wrapper import DelegatingStore
from tests.support.kafka.handmade_batches import Batch, dense
from tests.support.kafka.stored_segments import LOG, log_of, place, split, written
from tests.unit.formats.test_zstd_frames import zstd_d

MIXED = log_of([(300_000, 0)] * 12 + [(300_000, 4)] * 12 + [(3_000_000 // 4, 0), (61, 2)] + [(900_000, 0)] * 3)
LARGE = log_of([(100, 0), (2 * FRAME_BYTES // 3, 0)] + [(1_400_000, 0)] * 2)


@pytest.mark.parametrize("chunk", [1_000_000, 8 << 20])
@pytest.mark.parametrize("log", [MIXED, LARGE], ids=["mixed", "large"])
def test_zstd_gives_the_log_back_and_both_hashes_are_true(log: bytes, chunk: int) -> None:
    where = place()
    (segment,) = written(where, log, Codec.ZSTD, chunk=chunk)
    name = layout.segment("prod", segment)
    stored = where.store.get(name, 1 << 30)
    assert name.endswith(".log.zst")
    assert zstd_d(stored) == log
    assert (segment.stored_bytes, segment.plain_bytes) == (len(stored), len(log))
    assert segment.sha256 == hashlib.sha256(stored).hexdigest()
    assert segment.plain_sha256 == hashlib.sha256(log).hexdigest()
    index = read_index(where, segment)
    assert index is not None
    assert index.frames["stored_bytes"].tolist() == [len(frame) for frame in split(stored)]


def test_one_piece_is_not_copied() -> None:
    piece = memoryview(b"bytes of a log")
    assert joined(iter((piece,))) is piece
    assert joined(iter((piece[:5], piece[5:]))) == piece
    assert joined(iter(())) == b""


def test_how_batches_arrive_makes_no_difference() -> None:
    first, second = place(), place()
    (one,), (two,) = written(first, MIXED, Codec.ZSTD, chunk=400_000), written(second, MIXED, Codec.ZSTD)
    assert one.sha256 == two.sha256


def test_batches_that_producers_compressed_are_not_compressed_again() -> None:
    where = place()
    (segment,) = written(where, MIXED, Codec.ZSTD)
    frames = split(where.store.get(layout.segment("prod", segment), 1 << 30))
    raw = [frame[4] == 0xC0 and frame[5] == 7 << 3 for frame in frames]
    assert True in raw
    assert raw[0] is False
    blocks = sum(len(zstd_d(frame)) + 131_071 >> 17 for frame, is_raw in zip(frames, raw, strict=True) if is_raw)
    stored = sum(len(frame) for frame, is_raw in zip(frames, raw, strict=True) if is_raw)
    plain = sum(len(zstd_d(frame)) for frame, is_raw in zip(frames, raw, strict=True) if is_raw)
    assert stored == plain + 14 * raw.count(True) + 3 * blocks


def test_a_segment_that_begins_with_compressed_batches_is_stored_as_it_is() -> None:
    log = log_of([(900_000, 4)] * 3 + [(900_000, 0)] * 6)
    segments = written(place(), log, Codec.ZSTD, chunk=2_000_000, segment_bytes=3_000_000)
    assert [s.codec for s in segments] == [Codec.NONE, Codec.ZSTD, Codec.ZSTD]
    assert segments[0].sha256 == segments[0].plain_sha256


def test_rotation_counts_plain_bytes() -> None:
    packed, plain = (written(place(), MIXED, codec, segment_bytes=2_000_000) for codec in (Codec.ZSTD, Codec.NONE))
    assert [(s.start, s.end, s.plain_bytes, s.plain_sha256) for s in packed] == [
        (s.start, s.end, s.plain_bytes, s.plain_sha256) for s in plain
    ]
    assert len(packed) > 3


@given(st.data())
def test_a_range_is_the_same_with_and_without_an_index_and_for_both_kinds(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(MIXED)))
    length = data.draw(st.integers(0, len(MIXED) - start))
    for log, index in READABLE:
        assert b"".join(log.range(start, length, index)) == MIXED[start : start + length]


class Counting(DelegatingStore):
    """How many bytes were read."""

    read_bytes = 0

    def get_range(self, name: str, start: int, length: int) -> bytes:
        self.read_bytes += length
        return self.inner.get_range(name, start, length)


def test_a_range_read_reads_only_the_frames_around_it() -> None:
    where = place()
    (segment,) = written(where, MIXED, Codec.ZSTD)
    store = Counting(where.store)
    log = StoredLog(store, layout.segment("prod", segment), segment.codec, segment.stored_bytes, segment.plain_bytes)
    index = read_index(where, segment)
    assert b"".join(log.range(5_000_000, 1000, index)) == MIXED[5_000_000:5_001_000]
    assert 0 < store.read_bytes < 2 * FRAME_BYTES + 1000


def test_pieces_are_bounded_and_whole_is_capped() -> None:
    log, _ = READABLE[1]
    assert max(len(piece) for piece in log.pieces()) <= 2 * FRAME_BYTES
    assert log.whole(len(MIXED)) == MIXED
    with pytest.raises(Damaged, match="more than"):
        log.whole(len(MIXED) - 1)
    with pytest.raises(Damaged, match="not all in the object"):
        list(log.range(0, len(MIXED) + 1))


def test_an_index_of_another_object_is_not_believed() -> None:
    where = place()
    (other,) = written(where, LARGE, Codec.ZSTD)
    log, _ = READABLE[1]
    assert b"".join(log.range(100, 5000, read_index(where, other))) == MIXED[100:5100]


def test_a_lost_index_costs_only_time() -> None:
    where = place()
    (segment,) = written(where, LARGE, Codec.ZSTD)
    where.store.delete(layout.index_of("prod", segment.log, segment.first, segment.token))
    index = read_index(where, segment)
    assert index is None
    assert b"".join(StoredLog.of(where, segment).range(7, 100, index)) == LARGE[7:107]


def test_an_object_packed_by_gzip_is_what_is_said_of_it() -> None:
    stored = gzip.compress(LARGE, 1, mtime=0)
    wrong = bytes([*stored[:-8], stored[-8] ^ 1, *stored[-7:]])
    assert b"".join(_gzipped(stored, len(LARGE)).pieces()) == LARGE
    for content, plain_bytes in (
        (stored[:-1], len(LARGE)),
        (wrong, len(LARGE)),
        (stored, len(LARGE) - 1),
        (stored, len(LARGE) + 1),
    ):
        with pytest.raises(Damaged):
            list(_gzipped(content, plain_bytes).pieces())


def _gzipped(content: bytes, plain_bytes: int) -> StoredLog:
    store = MemoryStore()
    store.put_new("x", content)
    return StoredLog(store, "x", Codec.GZIP, len(content), plain_bytes)


def _readable() -> list[tuple[StoredLog, BatchIndex | None]]:
    found: list[tuple[StoredLog, BatchIndex | None]] = []
    for codec in (Codec.NONE, Codec.ZSTD):
        where = place()
        (segment,) = written(where, MIXED, codec)
        found.append((StoredLog.of(where, segment), read_index(where, segment)))
    return [*found, (found[1][0], None)]


READABLE = _readable()


@pytest.mark.parametrize("most", [1, 3, 4, 100])
def test_a_segment_ends_when_its_index_is_long_enough(most: int) -> None:
    """Whatever producers send, what is held in memory for the index is bounded."""
    where, log = place(), log_of([(50, 0)] * 10)
    tokens = iter(f"{number:016x}" for number in range(1, 1000))
    writer = SegmentWriter(where, LOG, 0, SegmentLimits(1 << 40, most), 0, lambda: next(tokens))
    batches = walk(log).batches
    for at in range(0, 10, 5):
        writer.write(memoryview(log), batches[at : at + 5])
    writer.finish(0)
    assert [s.records for s in writer.segments] == [most] * (10 // most) + ([10 % most] if 10 % most else [])
    assert b"".join(where.store.get(layout.segment("prod", s), 1 << 20) for s in writer.segments) == log


class Described(DelegatingStore):
    """Remembers the metadata of every object."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.metadata: dict[str, ObjectMetadata | None] = {}

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        self.metadata[name] = metadata
        super().put_new(name, data, metadata)


def test_an_index_says_what_its_log_ends_with() -> None:
    store = Described(MemoryStore())
    (segment,) = written(SourceRef(store, "r", "prod"), LARGE, Codec.NONE)
    name = layout.index_of("prod", LOG, segment.first, segment.token)
    times = {"last-time-ms": str(segment.max_time_ms), "max-time-ms": str(segment.max_time_ms)}
    assert store.metadata[name] == {"last-offset": str(segment.end - 1), **times}


def test_the_balance_counts_bytes_by_the_codec_of_their_batches() -> None:
    plain, packed = dense(0, 10).encode(), Batch(10, 0, 1, attributes=4, payload=bytes(400)).encode()
    assert compressed_balance(walk(plain + packed).batches) == len(packed) - len(plain)
    assert compressed_balance(walk(b"").batches) == 0
