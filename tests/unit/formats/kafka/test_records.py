"""Records of every codec, golden bytes, bombs, and what is said of records that cannot be read."""

import gzip
import mmap
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from logkeep.errors import Damaged
from logkeep.formats.compare.digest import NOTHING, Digest, digest_of
from logkeep.formats.kafka.batches import walk
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from tests.support.kafka.slow_records import Slow, batch_of, gzipped, slow_xxh64

RECORDS = [
    Slow(0, 0, None, None),
    Slow(1, 5, b"", b""),
    Slow(2, -7, b"key", b"value " * 300, ((b"a", b"1"), (b"a", None), (b"", b"\xff"))),
]
PLAIN = b"".join(r.encode() for r in RECORDS)


def _raw_snappy(data: bytes) -> bytes:
    return bytes(pa.Codec("snappy").compress(data))


def _xerial(data: bytes) -> bytes:
    """Java's framing: small blocks, so that there are several."""
    blocks = [_raw_snappy(data[at : at + 700]) for at in range(0, len(data), 700)]
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)


def _packed(codec: str, data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


PACKERS: dict[int, Callable[[bytes], bytes]] = {
    1: gzipped,
    2: _raw_snappy,
    3: partial(_packed, "lz4"),
    4: partial(_packed, "zstd"),
}
PACKED = {
    "none": (0, PLAIN),
    "gzip": (1, gzipped(PLAIN)),
    "snappy": (2, _raw_snappy(PLAIN)),
    "snappy of Java": (2, _xerial(PLAIN)),
    "lz4": (3, _packed("lz4", PLAIN)),
    "zstd": (4, _packed("zstd", PLAIN)),
    "gzip in two members": (1, gzip.compress(PLAIN[:11]) + gzip.compress(PLAIN[11:])),
    "zstd in two frames": (4, _packed("zstd", PLAIN[:11]) + _packed("zstd", PLAIN[11:])),
}


def _all(data: bytes, largest: int = 1 << 20) -> tuple[Digest, list[Malformed], int]:
    found, wrong, rows = NOTHING, [], 0
    for part in decode(data, walk(data).batches, largest):
        if isinstance(part, Malformed):
            wrong.append(part)
        else:
            found, rows = found.then(digest_of(part)), rows + len(part)
    return found, wrong, rows


@pytest.mark.parametrize("packed", PACKED)
def test_every_codec_gives_the_same_records(packed: str) -> None:
    codec, payload = PACKED[packed]
    data = batch_of(10, RECORDS, payload, attributes=codec, base_time_ms=1000)
    (part,) = decode(data, walk(data).batches)
    assert isinstance(part, RecordColumns), part
    assert part.offsets.tolist() == [10, 11, 12]
    assert part.times_ms.tolist() == [1000, 1005, 993]
    assert [part.key(i) for i in range(3)] == [None, b"", b"key"]
    assert [part.value(i) for i in range(3)] == [None, b"", b"value " * 300]
    assert part.headers(2) == [(b"a", b"1"), (b"a", None), (b"", b"\xff")]


def test_mixed_codecs_in_one_log_have_the_digest_of_the_plain_one() -> None:
    """More than is unpacked at once, too: the border falls somewhere between batches."""
    big = [Slow(i, i, b"%d" % i, bytes([i]) * 100_000) for i in range(20)]
    plain = b"".join(r.encode() for r in big)
    kinds = [
        (0, plain),
        (4, _packed("zstd", plain)),
        (2, _xerial(plain)),
        (3, _packed("lz4", plain)),
        (1, gzipped(plain)),
    ]
    mixed = b"".join(batch_of(100 * i, big, payload, attributes=c) for i, (c, payload) in enumerate(kinds * 4))
    alone = b"".join(batch_of(100 * i, big) for i in range(20))
    (mixed_digest, wrong, rows), (plain_digest, _, _) = _all(mixed, 1 << 22), _all(alone)
    assert (mixed_digest, wrong, rows) == (plain_digest, [], 400)


def test_kafka_pythons_own_batches_are_read() -> None:
    builder: Any = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    rows = [
        (i, 1_700_000_000_000 - 3 * i, b"k%d" % i if i % 2 else None, b"v" * i, [("h", b"x"), ("n", None)][: i % 3])
        for i in range(90)
    ]
    for row in rows:
        builder.append(*row)
    data = bytes(builder.build())
    (part,) = decode(data, walk(data).batches)
    assert isinstance(part, RecordColumns)
    for i, (offset, time_ms, key, value, headers) in enumerate(rows):
        assert (part.offsets[i], part.times_ms[i], part.key(i), part.value(i)) == (offset, time_ms, key, value)
        assert part.headers(i) == [(name.encode(), v) for name, v in headers]


def test_the_digest_of_known_bytes_never_changes() -> None:
    """Stored digests are compared with those of later releases."""
    data = batch_of(100, RECORDS, base_time_ms=1_700_000_000_000) + batch_of(
        200, RECORDS, attributes=8, max_time_ms=1_700_000_000_123
    )
    assert str(_all(data)[0]) == "lk1:6:0248b26c3daacc3010dd6b101aadcdeb:0198c26f40bf8bdf:3"
    assert str(NOTHING) == "lk1:0:00000000000000000000000000000000:0000000000000000:0"


def test_the_judges_hash_is_xxh64() -> None:
    """By the published values, so that the kernels' hash, which is compared with it, is."""
    assert [slow_xxh64(text) for text in (b"", b"a", b"abc")] == [
        0xEF46DB3751D8E999,
        0xD24EC4F1A98C6E5B,
        0x44BC2CF5AD770999,
    ]


@pytest.mark.parametrize(
    "text", ["", "lk1:", "lk2:0:" + "0" * 32 + ":" + "0" * 16 + ":0", str(NOTHING) + "\n", "x" * 500]
)
def test_what_is_no_digest_is_refused(text: str) -> None:
    with pytest.raises(Damaged):
        Digest.parse(text)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_is_told_and_costs_no_memory(codec: int) -> None:
    """A few kilobytes that unpack to 64 MiB, where 1 MiB is allowed; the batches around it are read."""
    zeros = bytes(64 << 20)
    packed = PACKERS[codec](zeros)
    good = batch_of(0, RECORDS), batch_of(50, RECORDS)
    data = good[0] + batch_of(10, [Slow(5)], packed, attributes=codec) + good[1]
    _, wrong, rows = _all(data)
    assert [str(w) for w in wrong] == ["the batch at offset 10: it unpacks to more than 1 MiB"]
    assert rows == 6


@pytest.mark.parametrize("codec", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize(
    "payload",
    [b"", b"\0", b"not compressed at all", b"\x82SNAPPY\x00", b"\x82SNAPPY\x00" + bytes(8) + b"\x7f\xff\xff\xff"],
)
def test_a_block_that_cannot_be_unpacked_is_told(codec: int, payload: bytes) -> None:
    data = batch_of(10, [Slow(0)], payload, attributes=codec)
    _, wrong, rows = _all(data)
    assert (rows, [w.base_offset for w in wrong]) == (0, [10])


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_block_that_was_cut_is_told(codec: int) -> None:
    payload = next(p for c, p in PACKED.values() if c == codec)
    for cut in range(0, len(payload), 7):
        data = batch_of(10, RECORDS, payload[:cut], attributes=codec)
        assert _all(data)[2] == 0, cut


@pytest.mark.parametrize(
    ("payload", "fields", "reason"),
    [
        (PLAIN[:-1], {}, "a record's length is impossible"),
        (PLAIN + b"\0", {}, "bytes are left after the last record"),
        (PLAIN, {"count": 2}, "bytes are left after the last record"),
        (PLAIN, {"count": 4, "delta": 9}, "a record's length is impossible"),
        (PLAIN, {"delta": 1, "count": 2}, "bytes are left after the last record"),
        (b"".join(Slow(d).encode() for d in (0, 2, 2)), {"delta": 9}, "offsets of records do not rise"),
        (b"".join(Slow(d).encode() for d in (0, 1, 10)), {"delta": 9}, "offsets of records do not rise"),
        (b"\x0e\0\0\0\x05\x01\0\0", {"count": 1}, "a key's length is impossible"),
        (b"\x0e\0\0\0\x01\x05\0\0", {"count": 1}, "a value's length is impossible"),
        (b"\x0e\0\0\0\x01\x01\x01\0", {"count": 1}, "headers are malformed"),
        (b"\x0e\0\0\0\x01\x01\0\0", {"count": 1}, "a record is longer than its fields"),
        (b"\x0e\0\xff\xff\xff\xff\xff\xff", {"count": 1}, "a record's time is malformed"),
    ],
)
def test_malformed_records_are_told_with_their_place(payload: bytes, fields: dict[str, int], reason: str) -> None:
    data = batch_of(77, RECORDS, payload, **fields)
    walked = walk(data)
    if not len(walked.batches):
        assert "count" in walked.reason
        return
    (problem,) = decode(data, walked.batches)
    assert isinstance(problem, Malformed)
    assert (problem.base_offset, problem.reason) == (77, reason)
    assert 0 <= problem.byte <= len(payload)


@pytest.mark.parametrize("deltas", [(0, 2, 2), (0, 2, 2, 3)], ids=["the last record", "others follow it"])
def test_an_offset_that_does_not_rise_is_told_where_it_stands(deltas: tuple[int, ...]) -> None:
    """Also where the decoder takes its short way: length, attributes and time stand before it, a byte each."""
    records = [Slow(delta).encode() for delta in deltas]
    data = batch_of(77, RECORDS, b"".join(records), delta=9, count=len(deltas))
    (problem,) = decode(data, walk(data).batches)
    assert isinstance(problem, Malformed)
    assert problem.byte == len(records[0] + records[1]) + 3


def test_a_huge_count_in_a_compressed_batch_takes_no_memory() -> None:
    data = batch_of(0, RECORDS, gzipped(PLAIN), attributes=1, count=2**31 - 1, delta=2**31 - 1)
    (problem,) = decode(data, walk(data).batches)
    assert isinstance(problem, Malformed)


def test_a_buffer_that_spans_cannot_reach_through_is_refused() -> None:
    with mmap.mmap(-1, 2**31) as nothing, memoryview(nothing) as buffer, pytest.raises(ValueError, match="2 GiB"):
        list(decode(buffer, walk(b"").batches))


def test_an_empty_batch_has_no_records() -> None:
    """Compaction keeps it for its producer's sake."""
    data = batch_of(5, [], b"", delta=3) + batch_of(10, RECORDS)
    assert _all(data)[1:] == ([], 3)
