"""Kernels of digests: XXH64 of records, and the order-dependent sum. See `digest`."""

import numpy as np
import numpy.typing as npt

from logkeep.formats.jit import inlined, kernel
from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.record_kernels import Bytes, Ints, Longs, Number, eight, four, varint32

Words = npt.NDArray[np.uint64]

U64 = np.uint64
_P1, _P2, _P3 = U64(0x9E3779B185EBCA87), U64(0xC2B2AE3D27D4EB4F), U64(0x165667B19E3779F9)
_P4, _P5 = U64(0x85EBCA77C2B2AE63), U64(0x27D4EB2F165667C5)
PRIME = (1 << 61) - 1
"""Sums are taken modulo this."""
_M61, _M31, _M30 = U64(PRIME), U64((1 << 31) - 1), U64((1 << 30) - 1)
MULTIPLIER = 0x14F7_2D8A_53C1_9E6B
"""What a sum is multiplied with for each record that follows."""
_R = U64(MULTIPLIER)
SEEDS = (0x6C6F_676B_6565_7031, 0x6C6F_676B_6565_7032)
_SEED_A, _SEED_B = U64(SEEDS[0]), U64(SEEDS[1])

CONTENT_A, CONTENT_B, OFFSETS = range(3)


@inlined
def _turn(word: np.uint64, bits: int) -> np.uint64:
    return (word << U64(bits)) | (word >> U64(64 - bits))


@inlined
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _turn(lane + word * _P2, 31) * _P1


@inlined
def _merge_lane(hashed: np.uint64, lane: np.uint64) -> np.uint64:
    return (hashed ^ _round(U64(0), lane)) * _P1 + _P4


@inlined
def _avalanche(hashed: np.uint64) -> np.uint64:
    hashed = (hashed ^ (hashed >> U64(33))) * _P2
    hashed = (hashed ^ (hashed >> U64(29))) * _P3
    return hashed ^ (hashed >> U64(32))


@inlined
def xxh64(data: Bytes, start: Number, size: Number, seed: np.uint64) -> np.uint64:
    """XXH64 of `size` bytes, which must be there."""
    at, end = U64(start), U64(start + size)
    if size >= 32:
        a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while end - at >= U64(32):
            a = _round(a, eight(data, at))
            b = _round(b, eight(data, at + U64(8)))
            c = _round(c, eight(data, at + U64(16)))
            d = _round(d, eight(data, at + U64(24)))
            at += U64(32)
        hashed = _turn(a, 1) + _turn(b, 7) + _turn(c, 12) + _turn(d, 18)
        hashed = _merge_lane(_merge_lane(_merge_lane(_merge_lane(hashed, a), b), c), d)
    else:
        hashed = seed + _P5
    hashed += U64(size)
    while end - at >= U64(8):
        hashed = _turn(hashed ^ _round(U64(0), eight(data, at)), 27) * _P1 + _P4
        at += U64(8)
    if end - at >= U64(4):
        hashed = _turn(hashed ^ (four(data, at) * _P1), 23) * _P2 + _P3
        at += U64(4)
    while at < end:
        hashed = _turn(hashed ^ (U64(data[at]) * _P5), 11) * _P1
        at += U64(1)
    return _avalanche(hashed)


@inlined
def xxh64_of_long(number: Number, seed: np.uint64) -> np.uint64:
    """XXH64 of a number's eight bytes, little-endian."""
    hashed = seed + _P5 + U64(8)
    hashed = _turn(hashed ^ _round(U64(0), U64(number)), 27) * _P1 + _P4
    return _avalanche(hashed)


@inlined
def _times(a: np.uint64, b: np.uint64) -> np.uint64:
    """Product modulo 2**61 - 1, of numbers below it."""
    a_high, a_low, b_high, b_low = a >> U64(31), a & _M31, b >> U64(31), b & _M31
    middle = a_low * b_high + a_high * b_low
    total = ((a_high * b_high) << U64(1)) + (middle >> U64(30)) + ((middle & _M30) << U64(31)) + a_low * b_low
    total = (total & _M61) + (total >> U64(61))
    return total - _M61 if total >= _M61 else total


@inlined
def _add(total: np.uint64, word: np.uint64) -> np.uint64:
    total = _times(total, _R) + word
    return total - _M61 if total >= _M61 else total


@inlined
def _below_prime(word: np.uint64) -> np.uint64:
    word >>= U64(3)
    return word - _M61 if word >= _M61 else word


@inlined
def put_varint(out: Bytes, at: Number, number: Number) -> Number:
    """Write a zig-zag number with as few bytes as it needs; the byte after it."""
    rest = U64((number << 1) ^ (number >> 63))
    while rest >= U64(128):
        out[at] = np.uint8(rest & U64(127)) | np.uint8(128)
        rest >>= U64(7)
        at += 1
    out[at] = np.uint8(rest)
    return at + 1


@inlined
def _put_bytes(out: Bytes, at: Number, data: Bytes, start: Number, size: Number) -> Number:
    at = put_varint(out, at, size)
    for index in range(max(size, 0)):
        out[at + index] = data[start + index]
    return at + max(size, 0)


@inlined
def canonical_body(data: Bytes, span: Ints, out: Bytes) -> Number:
    """Key, value and headers with no number longer than it must be; the size. `out` has room for END_AT - BODY_AT."""
    at = _put_bytes(out, 0, data, span[k.KEY_AT], span[k.KEY_SIZE])
    at = _put_bytes(out, at, data, span[k.VALUE_AT], span[k.VALUE_SIZE])
    at = put_varint(out, at, span[k.HEADERS])
    here: Number = np.int64(span[k.HEADERS_AT])
    end = np.int64(span[k.END_AT])
    for _ in range(2 * span[k.HEADERS]):
        size, here = varint32(data, here, end)
        at = _put_bytes(out, at, data, here, size)
        here += max(size, 0)
    return at


def _fold_us(_data: Bytes, offsets: Longs, _times: Longs, spans: Ints, _sums: Words) -> int:
    body_bytes = int((spans[:, k.END_AT].astype(np.int64) - spans[:, k.BODY_AT]).sum())
    return 60 * len(offsets) + body_bytes


@kernel(_fold_us)
def fold(data: Bytes, offsets: Longs, times: Longs, spans: Ints, sums: Words) -> None:
    """Add records, as `record_kernels.decode_batches` found them, to the three sums."""
    a, b, places = sums[CONTENT_A], sums[CONTENT_B], sums[OFFSETS]
    for row in range(offsets.shape[0]):
        start = np.int64(spans[row, k.BODY_AT])
        size: Number = np.int64(spans[row, k.END_AT]) - start
        if spans[row, k.ODD]:
            plain = np.empty(size, np.uint8)
            size = canonical_body(data, spans[row], plain)
            body_a, body_b = xxh64(plain, 0, size, _SEED_A), xxh64(plain, 0, size, _SEED_B)
        else:
            body_a, body_b = xxh64(data, start, size, _SEED_A), xxh64(data, start, size, _SEED_B)
        a = _add(a, _below_prime(xxh64_of_long(times[row], body_a)))
        b = _add(b, _below_prime(xxh64_of_long(times[row], body_b)))
        places = _add(places, _below_prime(xxh64_of_long(offsets[row], _SEED_A)))
    sums[CONTENT_A], sums[CONTENT_B], sums[OFFSETS] = a, b, places


@kernel(lambda offsets, _sums: 20 * len(offsets))
def fold_places(offsets: Longs, sums: Words) -> None:
    """Add offsets alone to their sum."""
    places = sums[OFFSETS]
    for row in range(offsets.shape[0]):
        places = _add(places, _below_prime(xxh64_of_long(offsets[row], _SEED_A)))
    sums[OFFSETS] = places
