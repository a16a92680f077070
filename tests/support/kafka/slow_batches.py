"""Logs with batches of every kind, and sent batches read back: all of it slow, none of it shared with the product."""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import google_crc32c
import pyarrow as pa

from tests.support.kafka.slow_records import Slow, batch_of, gzipped, read_records

APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 8, 16, 32, 64
Seen = tuple[int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]
"""Time, key, value, headers."""
_HEADER = struct.Struct(">qiibIhiqqqhii")
_LARGEST = 1 << 24


def streamed(codec: str, data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def lz4(data: bytes) -> bytes:
    """A frame of blocks that are stored as they are. Kafka refuses frames whose blocks depend on each other."""
    blocks = [data[at : at + 65_536] for at in range(0, len(data), 65_536)]
    stored = b"".join(struct.pack("<I", len(block) | 1 << 31) + block for block in blocks)
    return bytes.fromhex("04224d18604082") + stored + bytes(4)


def snappy(data: bytes) -> bytes:
    return bytes(pa.Codec("snappy").compress(data))


PACKERS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: gzipped,
    2: snappy,
    3: lz4,
    4: partial(streamed, "zstd"),
}


def unpacked(codec: int, block: bytes) -> bytes:
    if codec == 0:
        return block
    if codec == 1:
        return zlib.decompress(block, 31)
    if codec == 2:
        plain: bytes = pa.Codec("snappy").decompress(block, _snappy_size(block), asbytes=True)
        return plain
    with pa.CompressedInputStream(pa.BufferReader(block), {3: "lz4", 4: "zstd"}[codec]) as stream:
        found: bytes = stream.read(_LARGEST)
    return found


def _snappy_size(block: bytes) -> int:
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 127) << (7 * index)
        if byte < 128:
            break
    return size


@dataclass(frozen=True)
class Source:
    """A batch of an archive; `last` is its last offset delta, which compaction keeps."""

    base: int
    records: tuple[Slow, ...]
    last: int
    attributes: int = 0
    producer: int = -1
    base_time_ms: int = 0
    max_time_ms: int = 0
    counts: bool = True
    """Whether its records are there for a read-committed consumer."""

    @property
    def section(self) -> bytes:
        return PACKERS[self.attributes & 7](b"".join(r.encode() for r in self.records))

    def encode(self) -> bytes:
        fields = {"attributes": self.attributes, "producer": self.producer, "delta": self.last}
        fields |= {"base_time_ms": self.base_time_ms, "max_time_ms": self.max_time_ms, "epoch": 7}
        return batch_of(self.base, self.records, self.section, **fields)

    def seen(self) -> list[tuple[int, Seen]]:
        """Offset and what a consumer saw."""
        return [(self.base + r.delta, (self._time(r), r.key, r.value, r.headers)) for r in self.records]

    def _time(self, record: Slow) -> int:
        if self.attributes & APPEND_TIME:
            return self.max_time_ms
        return (self.base_time_ms + record.time_delta + 2**63) % 2**64 - 2**63


@dataclass(frozen=True)
class Sent:
    """A batch that a broker would get."""

    base_offset: int
    leader_epoch: int
    attributes: int
    last_offset_delta: int
    base_time_ms: int
    max_time_ms: int
    producer: tuple[int, int]
    sequence: int
    section: bytes = field(repr=False)
    records: tuple[Seen, ...]


def read_sent(batch: bytes) -> Sent:
    """Fails unless a broker would take the batch."""
    base, length, leader, magic, crc, attributes, last, first_time, max_time, pid, epoch, sequence, count = (
        _HEADER.unpack_from(batch)
    )
    assert magic == 2
    assert length == len(batch) - 12
    assert crc == google_crc32c.value(batch[21:])
    assert count == last + 1
    section = batch[_HEADER.size :]
    records = read_records(unpacked(attributes & 7, section), count, last)
    assert [r.delta for r in records] == list(range(count))
    times = [(first_time + r.time_delta + 2**63) % 2**64 - 2**63 for r in records]
    seen = tuple((t, r.key, r.value, r.headers) for t, r in zip(times, records, strict=True))
    return Sent(base, leader, attributes, last, first_time, max_time, (pid, epoch), sequence, section, seen)
