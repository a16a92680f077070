"""Kernels that read single fields of records' values, which are MessagePack maps.

Fields are recognised by a 64-bit hash of their names (FNV-1a). Nothing is decoded that is not wanted, nothing recurses:
what a map or list has is counted, and every item has at least one byte.
"""

import numpy as np

from logkeep.formats.jit import inlined, kernel
from logkeep.formats.zeebe.frame_kernels import VALUE_AT, VALUE_SIZE, Bytes, Longs, Number

INTEGER, TEXT, OTHER, BROKEN = range(4)
"""What a value is; BROKEN: it is longer than what is left."""
_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3

U64 = np.uint64
I64 = np.int64


def name_hash(name: bytes) -> int:
    """The hash of a text, with a sign."""
    value = _OFFSET
    for byte in name:
        value = (value ^ byte) * _PRIME & 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >> 63 else value


@inlined
def text_hash(data: Bytes, at: Number, size: Number) -> Number:
    value = U64(_OFFSET)
    for index in range(size):
        value = (value ^ U64(data[U64(at + index)])) * U64(_PRIME)
    return I64(value)


@inlined
def big_endian(data: Bytes, at: Number, size: Number) -> Number:
    value = U64(0)
    for index in range(size):
        value = (value << U64(8)) | U64(data[U64(at + index)])
    return value


@inlined
def signed(value: Number, size: Number) -> Number:
    if size == 1:
        return I64(np.int8(np.uint8(value)))
    if size == 2:
        return I64(np.int16(np.uint16(value)))
    if size == 4:
        return I64(np.int32(np.uint32(value)))
    return I64(value)


@inlined
def read_item(  # noqa: PLR0911, PLR0912 - each form of a value returns its answer
    data: Bytes, at: Number, end: Number
) -> tuple[Number, Number, Number, Number]:
    """What the item at `at` is, where its content begins, its number or its length in bytes, and how many items follow
    that belong to it.

    The first byte says which form it has (numbers are big endian):
    00-7f, e0-ff  a small number            80-8f, 90-9f, a0-bf  a map, list, text with its length in the low bits
    c0, c2, c3    null, false, true         c1                   nothing, so the bytes are broken
    c4-c6         bytes, length of 1-4      c7-c9                an extension, length of 1-4, a byte for its type
    ca, cb        floating point            cc-cf, d0-d3         a number of 1-8 bytes, without and with a sign
    d4-d8         an extension of 1-16      d9-db                a text, length of 1-4
    dc, dd        a list, length of 2, 4    de, df               a map, length of 2, 4
    """
    if at >= end:
        return I64(BROKEN), at, I64(0), I64(0)
    head, at, left = I64(data[U64(at)]), at + 1, end - at - 1
    if head < 0x80:
        return I64(INTEGER), at, head, I64(0)
    if head < 0x90:
        return I64(OTHER), at, I64(0), 2 * (head & 15)
    if head < 0xA0:
        return I64(OTHER), at, I64(0), head & 15
    if head < 0xC0:
        size = head & 31
        return (I64(TEXT) if size <= left else I64(BROKEN)), at, size, I64(0)
    if head >= 0xE0:
        return I64(INTEGER), at, head - 256, I64(0)
    if head in (0xC0, 0xC2, 0xC3):
        return I64(OTHER), at, I64(0), I64(0)
    if 0xCC <= head <= 0xD3:
        size = I64(1) << (head & 3)
        if size > left:
            return I64(BROKEN), at, I64(0), I64(0)
        value = big_endian(data, at, size)
        return I64(INTEGER), at + size, (signed(value, size) if head >= 0xD0 else I64(value)), I64(0)
    if 0xCA <= head <= 0xCB or 0xD4 <= head <= 0xD8:
        size = 4 * (head - 0xC9) if head <= 0xCB else 1 + (I64(1) << (head - 0xD4))
        return (I64(OTHER) if size <= left else I64(BROKEN)), at + size, I64(0), I64(0)
    if head == 0xC1:
        return I64(BROKEN), at, I64(0), I64(0)
    wide = I64(1) << ((head - 0xD9) if head >= 0xD9 and head <= 0xDB else (head - 0xC4) % 3)
    if head >= 0xDC:
        wide = I64(2) if head in (0xDC, 0xDE) else I64(4)
    if wide > left:
        return I64(BROKEN), at, I64(0), I64(0)
    size = I64(big_endian(data, at, wide))
    at, left = at + wide, left - wide
    if head >= 0xDC:
        return I64(OTHER), at, I64(0), (2 * size if head >= 0xDE else size)
    size += I64(1) if 0xC7 <= head <= 0xC9 else I64(0)
    if size > left:
        return I64(BROKEN), at, I64(0), I64(0)
    if head >= 0xD9:
        return I64(TEXT), at, size, I64(0)
    return I64(OTHER), at + size, I64(0), I64(0)


@inlined
def is_map(head: Number) -> bool:
    return bool(0x80 <= head < 0x90 or 0xDE <= head < 0xE0)


@inlined
def after(data: Bytes, at: Number, end: Number) -> Number:
    """Where the item at `at` ends, with all that belongs to it; -1 if it is longer than what is left."""
    pending = I64(1)
    while pending > 0:
        form, at, value, inside = read_item(data, at, end)
        if form == BROKEN or inside > end - at:
            return I64(-1)
        if form == TEXT:
            at += value
        pending += inside - 1
    return at


@inlined
def read_map(data: Bytes, at: Number, end: Number, names: Longs, found: Longs) -> bool:
    """Fill `found` with the numbers of the fields with these names, and hashes of texts. False if there is no map."""
    if at >= end or not is_map(data[U64(at)]):
        return False
    form, at, _, inside = read_item(data, at, end)
    if form == BROKEN or inside > end - at:
        return False
    for _ in range(inside // 2):
        form, at, size, _ = read_item(data, at, end)
        if form != TEXT:
            return False
        name, at = text_hash(data, at, size), at + size
        form, begin, value, _ = read_item(data, at, end)
        for column in range(names.shape[0]):
            if names[U64(column)] == name and form == INTEGER:
                found[U64(column)] = value
            elif names[U64(column)] == name and form == TEXT:
                found[U64(column)] = text_hash(data, begin, value)
        at = after(data, at, end)
        if at < 0:
            return False
    return bool(at == end)


def _fields_us(_data: Bytes, rows: Longs, *_: object) -> int:
    """A value has about 20 fields with names of 15 bytes."""
    return len(rows) * 1000


@kernel(_fields_us)
def read_fields(data: Bytes, rows: Longs, names: Longs, found: Longs) -> int:
    """Read the fields of each row's value into the same row of `found`. Returns the first row with no map; -1: none."""
    wrong = -1
    for row in range(rows.shape[0]):
        at = rows[U64(row), VALUE_AT]
        good = read_map(data, at, at + rows[U64(row), VALUE_SIZE], names, found[U64(row)])
        if not good and wrong < 0:
            wrong = row
    return wrong
