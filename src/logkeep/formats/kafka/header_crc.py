"""The CRC-32C of a batch of which only the header changes, found without reading its records again.

A CRC is linear: changing some bytes changes it by the difference that their own CRCs have, carried over all that lies
behind them. Carrying over a byte multiplies a polynomial by x to the 8th, modulo the one that CRC-32C divides by; over
n bytes it is done with one table for each power of two in n. So the cost is that of a header, and whatever happens to
the records after their CRC was checked is still found by whoever checks the new one.

Not a compiled kernel: a process that only sends archived batches then has no need of a compiler's memory.
Polynomials are 32 bits; the highest one is the coefficient of x to the 0th.
"""

from functools import cache

import google_crc32c

from logkeep.formats.kafka.record_kernels import Bytes

_DIVISOR = 0x82F63B78
_LENGTH_BITS = 32

_Table = tuple[list[int], list[int], list[int], list[int]]
"""What becomes of each byte of a polynomial, the lowest one first."""


def changed_crc(crc: int, old: Bytes, new: Bytes, behind: int) -> int:
    """The CRC after the bytes `old`, which it covers, became `new`; `behind` more bytes follow unchanged."""
    return crc ^ carried(google_crc32c.value(old) ^ google_crc32c.value(new), behind)


def carried(polynomial: int, length: int) -> int:
    """A difference of CRCs as it is so many bytes later."""
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
