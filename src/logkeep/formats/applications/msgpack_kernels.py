"""Kernels that read the parts of MessagePack that events and acknowledgements use. Safe for any bytes.

Each returns the byte after what it read, -1 if that is something else, or does not end before `end`.
"""

import numpy as np

from logkeep.formats.jit import inlined
from logkeep.formats.kafka.record_kernels import Bytes, Number


@inlined
def big_endian(data: Bytes, at: Number, size: Number) -> Number:
    """Of eight bytes a negative number is possible."""
    number = np.int64(0)
    for index in range(size):
        number = (number << np.int64(8)) | np.int64(data[at + index])
    return number


@inlined
def array(data: Bytes, at: Number, end: Number) -> tuple[Number, Number]:
    """The number of elements, and where the first begins."""
    if at < 0 or at >= end:
        return np.int64(0), np.int64(-1)
    head = np.int64(data[at])
    if 0x90 <= head <= 0x9F:
        return head & 15, at + 1
    size = 2 if head == 0xDC else 4
    if (head != 0xDC and head != 0xDD) or size >= end - at:  # noqa: PLR1714 - compiled
        return np.int64(0), np.int64(-1)
    return big_endian(data, at + 1, size), at + 1 + size


@inlined
def integer(data: Bytes, at: Number, end: Number) -> tuple[Number, Number]:
    """A number of at most 63 bits that is not negative."""
    if at < 0 or at >= end:
        return np.int64(0), np.int64(-1)
    head = np.int64(data[at])
    if head < 0x80:
        return head, at + 1
    if head < 0xCC or head > 0xCF:
        return np.int64(0), np.int64(-1)
    size = 1 << (head - 0xCC)
    if size >= end - at:
        return np.int64(0), np.int64(-1)
    number = big_endian(data, at + 1, size)
    return (number, at + 1 + size) if number >= 0 else (np.int64(0), np.int64(-1))


@inlined
def text(data: Bytes, at: Number, end: Number) -> tuple[Number, Number]:
    """The size of a text or of bytes, and where they begin; a size of -1 is nil."""
    if at < 0 or at >= end:
        return np.int64(0), np.int64(-1)
    head = np.int64(data[at])
    if head == 0xC0:
        return np.int64(-1), at + 1
    if 0xA0 <= head <= 0xBF:
        size, start = head & 31, at + 1
    else:
        if 0xD9 <= head <= 0xDB:
            width = 1 << (head - 0xD9)
        elif 0xC4 <= head <= 0xC6:
            width = 1 << (head - 0xC4)
        else:
            return np.int64(0), np.int64(-1)
        if width >= end - at:
            return np.int64(0), np.int64(-1)
        size, start = big_endian(data, at + 1, width), at + 1 + width
    return (size, start) if size <= end - start else (np.int64(0), np.int64(-1))
