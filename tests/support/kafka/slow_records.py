"""Records written and read byte by byte, by code that is slow and obviously right: the judge of the kernels."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.kafka.handmade_batches import Batch


@dataclass(frozen=True)
class Slow:
    """One record as a consumer sees it, with its deltas."""

    delta: int = 0
    time_delta: int = 0
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    longer: int = field(default=0, compare=False)
    """So many bytes more than needed for every number of the body."""

    def body(self, longer: int = 0) -> bytes:
        parts = [_field(self.key, longer), _field(self.value, longer), varint(len(self.headers), longer)]
        for name, value in self.headers:
            parts += [_field(name, longer), _field(value, longer)]
        return b"".join(parts)

    def encode(self) -> bytes:
        inner = b"\0" + varint(self.time_delta) + varint(self.delta) + self.body(self.longer)
        return varint(len(inner)) + inner


def varint(number: int, longer: int = 0) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)
    for _ in range(min(longer, 5 - len(out))):
        out[-1] |= 128
        out.append(0)
    return bytes(out)


def _field(data: bytes | None, longer: int) -> bytes:
    return varint(-1, longer) if data is None else varint(len(data), longer) + data


def batch_of(base: int, records: Sequence[Slow], payload: bytes | None = None, **fields: int) -> bytes:
    """A batch of records, or of `payload` in place of them."""
    plain = b"".join(r.encode() for r in records) if payload is None else payload
    last = max((r.delta for r in records), default=0)
    wanted = {"delta": last, "count": len(records), **fields}
    return Batch(base, payload=plain, **wanted).encode()


class Wrong(Exception):
    """The bytes are no records."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def left(self) -> int:
        return len(self._data) - self.at

    def take(self, size: int) -> bytes:
        if size < 0 or size > self.left():
            raise Wrong
        self.at += size
        return self._data[self.at - size : self.at]

    def number(self, bits: int = 32) -> int:
        rest = 0
        for index in range(10 if bits == 64 else 5):
            byte = self.take(1)[0]
            rest |= (byte & 127) << (7 * index)
            if byte < 128:
                if rest >= 1 << bits:
                    raise Wrong
                return (rest >> 1) ^ -(rest & 1)
        raise Wrong

    def bytes_or_null(self) -> bytes | None:
        size = self.number()
        if size < -1:
            raise Wrong
        return None if size == -1 else self.take(size)


def read_records(plain: bytes, count: int, last_delta: int) -> list[Slow]:
    """The records of one batch. Raises Wrong."""
    reader, found, before = _Reader(plain), list[Slow](), -1
    for _ in range(count):
        record = _Reader(reader.take(reader.number()))
        record.take(1)
        time_delta, delta = record.number(64), record.number()
        if not before < delta <= last_delta:
            raise Wrong
        before = delta
        key, value = record.bytes_or_null(), record.bytes_or_null()
        headers = []
        for _ in range(_natural(record.number(), record.left())):
            headers.append((record.take(record.number()), record.bytes_or_null()))
        if record.left():
            raise Wrong
        found.append(Slow(delta, time_delta, key, value, tuple(headers)))
    if reader.left():
        raise Wrong
    return found


def _natural(number: int, most: int) -> int:
    if not 0 <= number <= most:
        raise Wrong
    return number


# XXH64 after its specification, with Python's long numbers.
_P = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_MASK = 2**64 - 1


def _turn(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (64 - bits))) & _MASK


def _round(lane: int, word: int) -> int:
    return _turn((lane + word * _P[1]) & _MASK, 31) * _P[0] & _MASK


def slow_xxh64(data: bytes, seed: int = 0) -> int:
    at = 0
    if len(data) >= 32:
        lanes = [(seed + _P[0] + _P[1]) & _MASK, (seed + _P[1]) & _MASK, seed, (seed - _P[0]) & _MASK]
        while len(data) - at >= 32:
            lanes = [_round(lane, w) for lane, w in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
            at += 32
        hashed = sum(_turn(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            hashed = ((hashed ^ _round(0, lane)) * _P[0] + _P[3]) & _MASK
    else:
        hashed = (seed + _P[4]) & _MASK
    hashed = (hashed + len(data)) & _MASK
    while len(data) - at >= 8:
        hashed ^= _round(0, struct.unpack_from("<Q", data, at)[0])
        hashed = (_turn(hashed, 27) * _P[0] + _P[3]) & _MASK
        at += 8
    if len(data) - at >= 4:
        hashed ^= struct.unpack_from("<I", data, at)[0] * _P[0] & _MASK
        hashed = (_turn(hashed, 23) * _P[1] + _P[2]) & _MASK
        at += 4
    for byte in data[at:]:
        hashed = _turn(hashed ^ (byte * _P[4] & _MASK), 11) * _P[0] & _MASK
    for shift, prime in ((33, _P[1]), (29, _P[2])):
        hashed = (hashed ^ (hashed >> shift)) * prime & _MASK
    return hashed ^ (hashed >> 32)


def slow_digest(records: Sequence[tuple[int, int, Slow]]) -> tuple[int, int, int]:
    """The three sums for `(offset, time, record)`, written down once more from the page on the format."""
    prime, multiplier = 2**61 - 1, 0x14F72D8A53C19E6B
    sums = [0, 0, 0]
    for offset, time_ms, record in records:
        body, time, place = record.body(), struct.pack("<q", time_ms), struct.pack("<q", offset)
        seeds = (0x6C6F676B65657031, 0x6C6F676B65657032)
        words = [slow_xxh64(time, slow_xxh64(body, seed)) for seed in seeds] + [slow_xxh64(place, seeds[0])]
        sums = [(total * multiplier + (word >> 3)) % prime for total, word in zip(sums, words, strict=True)]
    return sums[0], sums[1], sums[2]


def gzipped(data: bytes) -> bytes:
    maker = zlib.compressobj(6, zlib.DEFLATED, 31)
    return maker.compress(data) + maker.flush()
