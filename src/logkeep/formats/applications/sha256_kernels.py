"""SHA-256 of short byte strings inside compiled loops: many thousand calls of a library would cost more."""

import hashlib

import numpy as np
import numpy.typing as npt

from logkeep.formats.jit import inlined, inlined_or
from logkeep.formats.kafka.record_kernels import Bytes, Number

Words = npt.NDArray[np.uint64]
W = np.uint64
_MASK = W(0xFFFF_FFFF)


def _prime_roots(count: int, power: int) -> Words:
    """The first 32 bits of the fractional parts of the roots of the first primes, exactly."""
    primes = [n for n in range(2, 312) if all(n % d for d in range(2, n))][:count]
    return np.array([_root(prime << (32 * power), power) & 0xFFFF_FFFF for prime in primes], np.uint64)


def _root(number: int, power: int) -> int:
    low, high = 0, 1 << (number.bit_length() // power + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**power <= number else (low, middle - 1)
    return low


_START, _ROUNDS = _prime_roots(8, 2), _prime_roots(64, 3)


@inlined
def _turned(word: np.uint64, bits: int) -> np.uint64:
    return ((word >> W(bits)) | (word << W(32 - bits))) & _MASK


@inlined
def _block(data: Bytes, at: Number, w: Words, h: Words) -> None:
    for i in range(16):
        here = at + 4 * i
        w[i] = (W(data[here]) << W(24)) | (W(data[here + 1]) << W(16)) | (W(data[here + 2]) << W(8)) | W(data[here + 3])
    for i in range(16, 64):
        a, b = w[i - 15], w[i - 2]
        small = _turned(a, 7) ^ _turned(a, 18) ^ (a >> W(3))
        large = _turned(b, 17) ^ _turned(b, 19) ^ (b >> W(10))
        w[i] = (w[i - 16] + small + w[i - 7] + large) & _MASK
    a, b, c, d, e, f, g, last = h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]
    for i in range(64):
        one = _turned(e, 6) ^ _turned(e, 11) ^ _turned(e, 25)
        first = (last + one + ((e & f) ^ (~e & _MASK & g)) + _ROUNDS[i] + w[i]) & _MASK
        two = _turned(a, 2) ^ _turned(a, 13) ^ _turned(a, 22)
        second = (two + ((a & b) ^ (a & c) ^ (b & c))) & _MASK
        last, g, f, e, d, c, b, a = g, f, e, (d + first) & _MASK, c, b, a, (first + second) & _MASK
    h[0], h[1], h[2], h[3] = h[0] + a & _MASK, h[1] + b & _MASK, h[2] + c & _MASK, h[3] + d & _MASK
    h[4], h[5], h[6], h[7] = h[4] + e & _MASK, h[5] + f & _MASK, h[6] + g & _MASK, h[7] + last & _MASK


def _by_library(data: Bytes, size: Number, w: Words, h: Words, out: Words) -> None:  # noqa: ARG001 - as below
    out[:] = np.frombuffer(hashlib.sha256(data[: int(size)].tobytes()).digest(), ">u8")


@inlined_or(_by_library)
def sha256(data: Bytes, size: Number, w: Words, h: Words, out: Words) -> None:
    """Of the first `size` bytes, as four big-endian words. `data` has room for 72 more, which are overwritten.

    `w` and `h` are memory for 64 and 8 words.
    """
    blocks = (size + 8) // 64 + 1
    data[size] = 0x80
    for at in range(size + 1, blocks * 64):
        data[at] = 0
    for index in range(8):
        data[blocks * 64 - 1 - index] = (size * 8 >> (8 * index)) & 255
    for index in range(8):
        h[index] = _START[index]
    for block in range(blocks):
        _block(data, block * 64, w, h)
    for index in range(4):
        out[index] = (h[2 * index] << W(32)) | h[2 * index + 1]
