"""An archived log is read in pieces of any size, and every batch comes out whole, once and in order."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import BatchStretch
from logkeep.kafka.logs import archived
from logkeep.model.segments import Codec, Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from tests.property.untimed import untimed
from tests.support.kafka.slow_records import Slow, batch_of
from tests.support.kafka.stored_segments import place, written

SIZES = st.lists(st.integers(0, 400), min_size=1, max_size=40)
PIECES = st.integers(100, 1500)
_EIGHT_BATCHES = 8 * 512
"""No batch of these sizes is larger than an eighth of it."""


def _batches(sizes: list[int]) -> list[bytes]:
    return [batch_of(number, [Slow(0, 0, b"k", bytes(size))]) for number, size in enumerate(sizes)]


@contextmanager
def _read_at_once(piece_bytes: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archived, "PIECE_BYTES", piece_bytes)
        patch.setattr(archived, "HASHED_BYTES", 0)
        yield


def _archived(where: SourceRef, batches: list[bytes], codec: Codec = Codec.NONE) -> Segment:
    (segment,) = written(where, b"".join(batches), codec)
    return segment


def _stored_as(where: SourceRef, segment: Segment, data: bytes) -> Segment:
    """As if this had been archived."""
    name = layout.segment(where.source, segment)
    where.store.delete(name)
    where.store.put_new(name, data)
    digest = hashlib.sha256(data).hexdigest()
    return msgspec.structs.replace(segment, stored_bytes=len(data), plain_bytes=len(data), sha256=digest)


def _read(where: SourceRef, segment: Segment) -> Iterator[BatchStretch]:
    return archived.stretches(where, (segment,), 0, segment.end)


def _bytes(stretch: BatchStretch) -> Iterator[bytes]:
    for at, size in zip(stretch.batches.positions.tolist(), stretch.batches.sizes.tolist(), strict=True):
        yield bytes(stretch.buffer[at : at + size])


@untimed
@given(SIZES, PIECES, st.sampled_from([Codec.NONE, Codec.ZSTD]))
def test_every_batch_once_and_in_order(sizes: list[int], piece_bytes: int, codec: Codec) -> None:
    batches, where = _batches(sizes), place()
    with _read_at_once(piece_bytes):
        found = list(_read(where, _archived(where, batches, codec)))
    assert [each for stretch in found for each in _bytes(stretch)] == batches


@untimed
@given(SIZES)
def test_no_batch_is_put_together_from_two_reads(sizes: list[int]) -> None:
    """Where none is larger than an eighth of what is read at once: a stretch for each read, and few reads."""
    batches, where = _batches(sizes), place()
    with _read_at_once(_EIGHT_BATCHES):
        found = list(_read(where, _archived(where, batches)))
    assert len(found) <= 1 + sum(map(len, batches)) * 8 // (7 * _EIGHT_BATCHES)


@untimed
@given(SIZES, PIECES, st.data())
def test_a_log_that_ends_within_a_batch(sizes: list[int], piece_bytes: int, data: st.DataObject) -> None:
    batches, where = _batches(sizes), place()
    missing = data.draw(st.integers(1, len(batches[-1]) - 1))
    cut = _stored_as(where, _archived(where, batches), b"".join(batches)[:-missing])
    with _read_at_once(piece_bytes), pytest.raises(Damaged, match="the last batch is cut off"):
        list(_read(where, cut))


@untimed
@given(SIZES, PIECES, st.data())
def test_a_bit_that_turned_over(sizes: list[int], piece_bytes: int, data: st.DataObject) -> None:
    """Of what lies before its batch some is read, of what lies behind it nothing."""
    batches, where = _batches(sizes), place()
    broken = data.draw(st.integers(0, len(batches) - 1))
    stored = bytearray(b"".join(batches))
    stored[sum(map(len, batches[:broken])) + data.draw(st.integers(17, len(batches[broken]) - 1))] ^= 1
    damaged = _stored_as(where, _archived(where, batches), bytes(stored))
    found: list[bytes] = []
    with _read_at_once(piece_bytes), pytest.raises(Damaged):
        found.extend(each for stretch in _read(where, damaged) for each in _bytes(stretch))
    assert found == batches[: len(found)]
    assert len(found) <= broken
