"""Batches as they are written: golden bytes per codec, frames that Java reads, sizes that a broker takes."""

import random
from typing import Any

import numpy as np
import pytest
from kafka.record.default_records import DefaultRecordBatch

from logkeep.formats.kafka import encode_kernels
from logkeep.formats.kafka.batches import CODECS, HEADER_BYTES, walk
from logkeep.formats.kafka.compression import pack
from logkeep.formats.kafka.encode import Encoded, encode
from logkeep.formats.kafka.producer_stamp import Outgoing, stamp
from logkeep.formats.kafka.records import RecordColumns, decode
from tests.support.kafka.slow_batches import Source, read_sent, unpacked
from tests.support.kafka.slow_records import Slow

RECORDS = (
    Slow(0, 0, None, None),
    Slow(3, 5, b"", b""),
    Slow(4, -7, b"key", b"value " * 9, ((b"a", b"1"), (b"a", None), (b"", b"\xff"))),
)
GOLDEN = {
    "none": (
        "00000000000000000000008affffffff02bcc9bf1d0000000000020000018bcfe568000000018bcfe5680500000000000012"
        "67000100000000000000030c0000000101000c000a020000009201000d04066b65796c76616c75652076616c75652076616c"
        "75652076616c75652076616c75652076616c75652076616c75652076616c75652076616c75652006026102310261010002ff"
    ),
    "gzip": (
        "00000000000000000000006fffffffff027f20e8070001000000020000018bcfe568000000018bcfe5680500000000000012"
        "67000100000000000000031f8b0800000000000003e3616060606464e061e06202b2263132f0b2b065a756e69425e694a62a"
        "904ab2312532193225323230fd0700516e49ab59000000"
    ),
    "snappy": (
        "000000000000000000000060ffffffff02912c4c900002000000020000018bcfe568000000018bcfe5680500000000000012"
        "670001000000000000000359740c0000000101000c000a020000009201000d04066b65796c76616c756520be060028060261"
        "02310261010002ff"
    ),
    "lz4": (
        "00000000000000000000006fffffffff02b116c6f80003000000020000018bcfe568000000018bcfe5680500000000000012"
        "670001000000000000000304224d186040822f000000ff0f0c0000000101000c000a020000009201000d04066b65796c7661"
        "6c75652006001db006026102310261010002ff00000000"
    ),
    "zstd": (
        "00000000000000000000006bffffffff02614554680004000000020000018bcfe568000000018bcfe5680500000000000012"
        "670001000000000000000328b52ffd20598d010094020c0000000101000c000a020000009201000d04066b65796c76616c75"
        "652006026102310261010002ff010096a83801"
    ),
}


def _decoded(source: Source) -> RecordColumns:
    data = source.encode()
    (part,) = decode(data, walk(data).batches)
    assert isinstance(part, RecordColumns), part
    return part


def _stamped(part: RecordColumns, made: Encoded) -> Outgoing:
    positions = np.cumsum(made.sizes) - made.sizes
    counts = made.groups[:, 1] - made.groups[:, 0]
    found = Outgoing(
        made.buffer, positions, made.sizes, counts, part.offsets[made.groups[:, 0]], np.empty((0, 2), np.int64)
    )
    stamp(found, 4711, 1, 0)
    return found


def _written(codec: int) -> bytes:
    part = _decoded(Source(100, RECORDS, 4, codec, base_time_ms=1_700_000_000_000))
    return bytes(_stamped(part, encode(part, np.array([[0, 3]]))).batch(0))


@pytest.mark.parametrize("codec", range(5))
def test_the_same_records_are_the_same_bytes(codec: int) -> None:
    assert _written(codec).hex() == GOLDEN[CODECS[codec]]


@pytest.mark.parametrize("codec", [0, 1])
def test_kafka_python_reads_what_was_written(codec: int) -> None:
    """Its other codecs need libraries; librdkafka and Java judge all five in the integration tests."""
    reader: Any = DefaultRecordBatch(_written(codec))
    assert reader.validate_crc()
    found = [(r.offset, r.timestamp, r.key, r.value) for r in reader]
    time = 1_700_000_000_000
    assert found == [(0, time, None, None), (1, time + 5, b"", b""), (2, time - 7, b"key", b"value " * 9)]
    assert (reader.producer_id, reader.producer_epoch, reader.base_sequence) == (4711, 1, 0)


def test_lz4_blocks_depend_on_nothing_and_what_does_not_shrink_is_stored() -> None:
    chance = random.Random(1)
    for data in (b"", b"x", b"x" * 200_000, chance.randbytes(200_000), chance.randbytes(65_536) + b"x" * 70_000):
        frame = bytes(pack(3, np.frombuffer(data, np.uint8)))
        assert unpacked(3, frame) == data
        assert frame[4] & 0x20, "Java refuses blocks that depend on each other"
        assert len(frame) <= len(data) + 7 + 4 * (len(data) // 65_536 + 1) + 4


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_packs_nothing_and_much(codec: int) -> None:
    for data in (b"", b"x" * 3_000_000):
        block = bytes(pack(codec, np.frombuffer(data, np.uint8)))
        assert (unpacked(codec, block) if block else b"") == data


def test_there_are_five_codecs() -> None:
    with pytest.raises(ValueError, match="no codec 5"):
        pack(5, np.empty(0, np.uint8))


def test_a_batch_that_became_much_larger_is_cut_in_halves() -> None:
    """Times far from that of the first record make every record longer."""
    count = 1000
    far = [Slow(i, 0 if i == 0 else 2**55, b"", b"") for i in range(count)]
    near = tuple(Slow(i, 0 if i else -(2**55), b"", b"") for i in range(count))
    part = _decoded(Source(0, near, count - 1, base_time_ms=2**55))
    size = len(Source(0, near, count - 1).encode())
    made = encode(part, np.array([[0, 1], [1, count]]))
    assert len(made.groups) == 2, "nothing grew"
    made = encode(part, np.array([[0, count]]))
    assert len(made.groups) > 1
    assert made.sizes.max() <= size + 1024
    assert made.groups[:, 0].tolist() == [0, *made.groups[:-1, 1].tolist()]
    assert int(made.groups[-1, 1]) == count
    batches = _stamped(part, made)
    sent = [read_sent(bytes(batches.batch(i))) for i in range(len(batches))]
    assert [seen for each in sent for seen in each.records] == [(r.time_delta, b"", b"", ()) for r in far]


def test_a_lone_record_stays_whole_however_large_it_became() -> None:
    """The source packed better than we do: here because its header says so."""
    part = _decoded(Source(0, (Slow(0, 0, None, bytes(9000)),), 0))
    part.batches.headers["length"] = HEADER_BYTES - 12
    assert encode(part, np.array([[0, 1]])).groups.tolist() == [[0, 1]]


def test_the_kernels_say_so_when_there_is_no_room() -> None:
    part = _decoded(Source(0, RECORDS, 4))
    groups, out, column = np.array([[0, 3]]), np.empty(100, np.uint8), np.empty(1, np.int64)
    arguments = (part.data, part.times_ms, part.spans, groups, 61, out, column, column)
    assert encode_kernels.encode_groups(*arguments) == encode_kernels.NO_ROOM
    source = np.zeros(9, np.uint8)
    source.flags.writeable = False
    two, zero = np.array([2, 8]), np.array([0, 0])
    assert encode_kernels.gather(source, two, two, np.empty(9, np.uint8), zero) == 1
    assert encode_kernels.gather(source, zero, two, np.empty(3, np.uint8), two) == 0
