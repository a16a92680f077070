"""Batches that no producer sent, byte for byte, and read by a second reader."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import CODECS, first_broken, walk
from logkeep.formats.kafka.compression import pack
from logkeep.formats.kafka.restore.synthetic_batches import abort_marker, cut_batch, empty_batches
from logkeep.formats.kafka.transactions import Settling
from tests.property.untimed import untimed
from tests.support.kafka.slow_records import Slow, batch_of, read_records

MARKER = (
    "00000000000003e8"  # base offset 1000
    "00000042"  # length
    "00000000"  # leader epoch
    "02"
    "6f1bd9fe"  # CRC-32C
    "0030"  # transactional, control
    "00000000"  # last offset delta
    "0000018bcfe56800"
    "0000018bcfe56800"
    "0000000000000007"  # producer
    "0003"  # its epoch
    "ffffffff"  # sequence
    "00000001"
    "20"  # the record's length
    "000000"  # attributes, time and offset deltas
    "08" "00000000"  # key: version 0, type 0 (abort)
    "0c" "000000000000"  # value: version 0, coordinator epoch 0
    "00"
)  # fmt: skip


def test_a_marker_byte_for_byte() -> None:
    assert abort_marker(1000, 7, 3, 1_700_000_000_000).hex() == MARKER


def test_a_marker_ends_a_transaction() -> None:
    data = batch_of(0, [Slow(value=b"v")], attributes=0x10, producer=7) + abort_marker(1, 7, 3, 5)
    settling = Settling()
    settling.take(data, walk(data).batches)
    assert settling.settled().open == ()
    assert [(a.first_offset, a.last_offset, a.producer_id) for a in settling.settled().aborted] == [(0, 1, 7)]


@pytest.mark.parametrize(("start", "end", "count"), [(5, 5, 0), (5, 6, 1), (0, 2**31, 1), (3, 2**31 + 4, 2)])
def test_nothing_takes_offsets(start: int, end: int, count: int) -> None:
    data = empty_batches(start, end)
    batches = walk(data).batches
    assert (len(batches), first_broken(data, batches)) == (count, None)
    taken = [(int(a), int(b) + 1) for a, b in zip(batches.base_offsets, batches.last_offsets, strict=True)]
    assert ([] if start == end else [taken[0][0], taken[-1][1]]) == ([] if start == end else [start, end])
    assert all(one[1] == other[0] for one, other in pairwise(taken))
    assert not batches.headers["records"].any()


_RECORDS = st.lists(st.tuples(st.integers(1, 3), st.integers(-5, 500), st.binary(max_size=40)), min_size=1, max_size=12)


@untimed
@given(_RECORDS, st.integers(0, 40), st.integers(0, 4), st.sampled_from([0, 0x08, 0x10, 0x40]))
def test_a_cut_batch_has_the_records_before(
    shapes: list[tuple[int, int, bytes]], cut: int, codec: int, flags: int
) -> None:
    records, delta = list[Slow](), -1
    for step, time, value in shapes:
        delta += step
        records.append(Slow(delta, time, b"k", value, ((b"h", None),)))
    plain = b"".join(r.encode() for r in records)
    packed = pack(codec, np.frombuffer(plain, np.uint8)).tobytes()
    fields = {"attributes": codec | flags, "producer": 9, "base_time_ms": 100, "max_time_ms": 7777, "epoch": 4}
    source = batch_of(50, records, packed, delta=delta + 3, **fields)
    made = cut_batch(source, walk(source).batches, 50 + cut)
    kept = [r for r in records if r.delta < cut]
    if not kept:
        assert made == b""
        return
    batches = walk(made).batches
    (header,) = batches.headers
    assert first_broken(made, batches) is None
    assert (int(batches.base_offsets[0]), int(batches.last_offsets[0])) == (50, 50 + cut - 1)
    assert (header["attributes"], header["producer_id"], header["base_time_ms"]) == (codec | flags, 9, 100)
    assert header["max_time_ms"] == (7777 if flags == 0x08 else 100 + max(r.time_delta for r in kept))
    assert read_records(_opened(made[61:], codec, plain), int(header["records"]), cut - 1) == kept


def _opened(section: bytes, codec: int, room: bytes) -> bytes:
    """By another library."""
    name = CODECS[codec]
    if name == "none":
        return section
    if name == "snappy":
        size, at, shift = 0, 0, 0
        while True:
            size |= (section[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if section[at - 1] < 128:
                return bytes(pa.decompress(section, size, codec="snappy"))
    with pa.CompressedInputStream(pa.py_buffer(section), name) as stream:
        return bytes(stream.read(len(room) + 1))


def test_a_batch_that_cannot_be_read_cannot_be_cut() -> None:
    source = batch_of(0, [Slow(0, value=b"a"), Slow(1, value=b"b")], b"\xff" * 30, attributes=1)
    with pytest.raises(Damaged, match="cannot be cut"):
        cut_batch(source, walk(source).batches, 1)


def test_a_batch_without_records_is_left_out() -> None:
    source = empty_batches(3, 9)
    assert cut_batch(source, walk(source).batches, 5) == b""
