"""The CRC-32C of a batch after a change of its header, computed without reading its records again.

A CRC is linear: changing some bytes changes it by the difference of their own CRCs, carried over all bytes after them.
Carrying over a byte multiplies a polynomial by x to the 8th, modulo the CRC-32C polynomial; over n bytes it takes one
table for each power of two in n. So the cost is that of a header, and damage to the records after their CRC was checked
is still detected by the new one.

Not a compiled kernel: a process that only sends archived batches does not need the compiler's memory.
Polynomials are 32 bits; the highest one is the coefficient of x to the 0th.
"""

from functools import cache

import google_crc32c

from logkeep.formats.kafka.record_kernels import Bytes

_DIVISOR = 0x82F63B78
_LENGTH_BITS = 32

_Table = tuple[list[int], list[int], list[int], list[int]]
"""The image of each byte of a polynomial, the lowest first."""


def changed_crc(crc: int, old: Bytes, new: Bytes, following: int) -> int:
    """The CRC after the bytes `old`, which it covers, became `new`; `following` more bytes are unchanged."""
    return crc ^ carried(google_crc32c.value(old) ^ google_crc32c.value(new), following)


def carried(polynomial: int, length: int) -> int:
    """A difference of CRCs, `length` bytes later."""
    for table in _tables():
        if not length:
            break
        if length & 1:
            polynomial = _looked_up(table, polynomial)
        length >>= 1
    return polynomial


@cache
def _tables() -> list[_Table]:
    """For one byte, two, four, …"""
    images = [_times_x(1 << bit, 8) for bit in range(32)]
    found = []
    for _ in range(_LENGTH_BITS):
        table = _table(images)
        found.append(table)
        images = [_looked_up(table, image) for image in images]
    return found


def _times_x(polynomial: int, times: int) -> int:
    for _ in range(times):
        polynomial = polynomial >> 1 ^ (_DIVISOR if polynomial & 1 else 0)
    return polynomial


def _table(images: list[int]) -> _Table:
    columns: list[list[int]] = []
    for first in range(0, 32, 8):
        column = [0] * 256
        for byte in range(1, 256):
            lowest = byte & -byte
            column[byte] = column[byte ^ lowest] ^ images[first + lowest.bit_length() - 1]
        columns.append(column)
    return columns[0], columns[1], columns[2], columns[3]


def _looked_up(table: _Table, polynomial: int) -> int:
    lowest, low, high, highest = table
    return (
        lowest[polynomial & 255] ^ low[polynomial >> 8 & 255] ^ high[polynomial >> 16 & 255] ^ highest[polynomial >> 24]
    )
