"""The task that merges: the same batches end to end, or nothing at all and the reason."""

import hashlib

import pytest
from msgspec.structs import replace

from logkeep.formats.kafka.batch_index import decode, index_of
from logkeep.formats.kafka.batches import walk
from logkeep.kafka.merge import merge_segments
from logkeep.model.segments import Codec, Segment
from logkeep.model.time import random_token
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments import reader as segment_reader
from logkeep.repository.segments.reader import StoredLog
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.repository.upkeep.optimize import Merged, MergeUnit
from logkeep.store.memory import MemoryStore
from tests.support.kafka.many_small_backups import batches_of, log_of

PIECES = ((0, 4), (4, 10), (10, 12))


@pytest.fixture
def place() -> SourceRef:
    return SourceRef(MemoryStore(), "0" * 32, "prod")


def _rows(place: SourceRef, codec: Codec = Codec.NONE) -> tuple[Segment, ...]:
    rows: list[Segment] = []
    for start, end in PIECES:
        writer = SegmentWriter(place, log_of(0), start, SegmentLimits(1 << 20), 0, random_token, codec)
        data = b"".join(batches_of(0, start, end))
        writer.write(memoryview(data), walk(data).batches)
        writer.finish(end)
        rows += writer.segments
    return tuple(rows)


def _merge(place: SourceRef, rows: tuple[Segment, ...]) -> Merged:
    return merge_segments(MergeUnit(place, rows), lambda _: None)


@pytest.mark.parametrize("chunk", [50, 1 << 20])
def test_batches_end_to_end_with_an_index(place: SourceRef, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """Read in pieces smaller than a batch too."""
    monkeypatch.setattr(segment_reader, "_CHUNK", chunk)
    rows = _rows(place)
    merged = _merge(place, rows).segment
    assert merged is not None
    data = place.store.get(layout.segment("prod", merged), 1 << 20)
    assert data == b"".join(batches_of(0, 0, 12))
    assert (merged.start, merged.end, merged.records) == (0, 12, sum(r.records for r in rows))
    index = decode(place.store.get(layout.index_of("prod", merged.log, merged.first, merged.token), 1 << 20))
    assert (index.rows == index_of(walk(data).batches).rows).all()


def test_logs_in_frames_stay_in_frames(place: SourceRef) -> None:
    rows = _rows(place, Codec.ZSTD)
    merged = _merge(place, rows).segment
    assert merged is not None
    assert merged.codec is Codec.ZSTD
    log = b"".join(batches_of(0, 0, 12))
    assert StoredLog.of(place, merged).whole(1 << 20) == log
    assert merged.plain_sha256 == hashlib.sha256(log).hexdigest()


@pytest.mark.parametrize("at", [3, 10, 14, 16, 20, 40, 70, -1])
def test_a_flipped_bit_anywhere_leaves_everything_as_it_is(place: SourceRef, at: int) -> None:
    """Byte 14 is the leader epoch, which no CRC covers: only the hash of the object tells."""
    rows = _rows(place)
    name = layout.segment("prod", rows[1])
    data = bytearray(place.store.get(name, 1 << 20))
    data[at] ^= 1
    place.store.replace(name, bytes(data), place.store.head(name).version)
    before = [i.name for i in place.store.list("")]
    done = _merge(place, rows)
    assert (done.segment, done.where) == (None, name)
    assert [i.name for i in place.store.list("")] == before


def test_a_missing_piece_and_a_shorter_one_are_named(place: SourceRef) -> None:
    rows = _rows(place)
    assert _merge(place, (rows[0], replace(rows[1], stored_bytes=rows[1].stored_bytes + 1))).segment is None
    place.store.delete(layout.segment("prod", rows[2]))
    assert _merge(place, rows).where == layout.segment("prod", rows[2])


def test_the_end_of_an_object_that_its_row_does_not_answer_for_stays_behind(place: SourceRef) -> None:
    rows = _rows(place)
    shortened = replace(rows[1], end=8)
    merged = _merge(place, (rows[0], shortened)).segment
    assert merged is not None
    assert place.store.get(layout.segment("prod", merged), 1 << 20) == b"".join(batches_of(0, 0, 8))


def test_batches_that_reach_over_their_row_or_go_back_are_refused(place: SourceRef) -> None:
    rows = _rows(place)
    assert _merge(place, (rows[0], replace(rows[1], end=9))).segment is None
    assert _merge(place, (rows[1], replace(rows[0], start=10, end=14))).segment is None
