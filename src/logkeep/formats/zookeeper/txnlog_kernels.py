"""Kernels that check transaction logs: frames, Adler-32, end marks and the order of zxids.

A record: checksum (8 bytes: Adler-32 of the body), length of the body (4), body, end mark `B`. A body begins with
session (8), cxid (4), zxid (8), time in ms (8) and kind (4). Numbers are big-endian.

`facts` (int64) is what is known of the records walked so far; `rows` gets one row per record, unless it has no room at
all.
"""

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from logkeep.formats.jit import inlined, inlined_or, kernel

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Number = Any
"""64 bits. Which of numpy's or Python's types it has makes no difference to compiled code."""

RECORDS, FIRST, LAST, MIN_TIME, MAX_TIME, ADLER, TELLING = range(7)
"""TELLING: where in `data` the first body begins that is not a failure (these never have digests); -1: nowhere."""
FACTS = 7

ZXID, TIME, SESSION, CXID, KIND, BODY_AT, BODY_SIZE, SUM = range(8)
ROW_COLUMNS = 8

MORE, FINISHED, END, BAD_LENGTH, BAD_CHECKSUM, BAD_END_MARK, BAD_ORDER, JUMP, FOUND, GAVE_UP = range(10)

FRAME_BYTES = 12
SMALLEST_BODY = 32
SMALLEST_RECORD = FRAME_BYTES + SMALLEST_BODY + 1
ERROR_KIND = -1
END_MARK = 0x42
_MODULUS = 65521
_BLOCK = 4096
"""So many bytes can be summed, each times its distance to the end, before 32 bits with a sign overflow."""

U64 = np.uint64
U32 = np.uint32
I32 = np.int32
I16 = np.int16


def _read_big_endian(data: Bytes, at: Number, size: int) -> Number:
    return U64(int.from_bytes(data[at : at + size].tobytes()))


@inlined_or(_read_big_endian)
def big_endian(data: Bytes, at: Number, size: int) -> Number:
    value = U64(0)
    for index in range(size):
        value = (value << U64(8)) | U64(data[U64(at + index)])
    return value


@inlined
def int32(data: Bytes, at: Number) -> Number:
    return np.int64(np.int32(U32(big_endian(data, at, 4))))


@inlined
def int64(data: Bytes, at: Number) -> Number:
    return np.int64(big_endian(data, at, 8))


def _zlib_adler32(data: Bytes, at: Number, end: Number) -> Number:
    return np.int64(zlib.adler32(data[at:end].data))


@inlined_or(_zlib_adler32)
def adler32(data: Bytes, at: Number, end: Number) -> Number:
    """As zlib computes it; a block's two sums have no dependence between bytes, so they are summed side by side.

    Factors of 16 bits, multiplied into 32: processors have one instruction for two such products and their sum.
    """
    low, high = U64(1), U64(0)
    while at < end:
        size = min(np.int64(_BLOCK), end - at)
        block = data[at : at + size]
        plain, weighted = I32(0), I32(0)
        for index in range(size):
            byte = I32(I16(block[index]))
            plain = I32(plain + byte)
            weighted = I32(weighted + byte * I32(I16(size - index)))
        high = (high + low * U64(size) + U64(weighted)) % U64(_MODULUS)
        low = (low + U64(plain)) % U64(_MODULUS)
        at += size
    return np.int64((high << U64(16)) | low)


@inlined
def follows(earlier: Number, later: Number) -> bool:
    """As `names.follows`."""
    if later >> 32 == earlier >> 32:
        return bool(later == earlier + 1)
    return bool(later >> 32 > earlier >> 32 and later & 0xFFFFFFFF == 1)


def _walk_us(_data: Bytes, at: int, end: int, *_: object) -> int:
    """25 us for a record of 100 bytes."""
    return (end - at) // 4


@kernel(_walk_us)
def walk(  # noqa: PLR0911, PLR0912 - a compiled function has no exceptions to raise: each check returns its answer
    data: Bytes, at: int, end: int, until: int, largest: int, facts: Longs, rows: Longs
) -> tuple[int, int, int, int]:
    """Check records from `at` on, up to the one with zxid `until`. No body may have more than `largest` bytes.

    Returns why it stopped, where (a record begins there), how many bytes from there on were needed or read, and how
    many rows were filled. END: length and checksum there are 0.
    """
    row = 0
    while True:
        if rows.shape[0] > 0 and row == rows.shape[0]:
            return MORE, at, FRAME_BYTES, row
        if end - at < FRAME_BYTES:
            return MORE, at, FRAME_BYTES, row
        stored, size = int64(data, at), int32(data, at + 8)
        if size == 0 and stored == 0:
            return END, at, FRAME_BYTES, row
        if size < SMALLEST_BODY or size > largest:
            return BAD_LENGTH, at, FRAME_BYTES, row
        whole = FRAME_BYTES + size + 1
        if end - at < whole:
            return MORE, at, whole, row
        body = at + FRAME_BYTES
        marked = data[U64(body + size)] == END_MARK
        summed = adler32(data, body, body + size) == stored
        if not summed:
            return (BAD_CHECKSUM if marked else BAD_LENGTH), at, whole, row
        if not marked:
            return BAD_END_MARK, at, whole, row
        zxid, time, kind = int64(data, body + 12), int64(data, body + 20), int32(data, body + 28)
        if zxid <= facts[LAST]:
            return BAD_ORDER, at, whole, row
        if facts[LAST] > 0 and not follows(facts[LAST], zxid):
            return JUMP, at, whole, row
        if zxid > until:
            return FINISHED, at, whole, row
        if facts[RECORDS] == 0:
            facts[FIRST], facts[MIN_TIME], facts[MAX_TIME] = zxid, time, time
        if facts[TELLING] < 0 and kind != ERROR_KIND:
            facts[TELLING] = body
        facts[RECORDS] += 1
        facts[LAST], facts[ADLER] = zxid, stored
        facts[MIN_TIME], facts[MAX_TIME] = min(facts[MIN_TIME], time), max(facts[MAX_TIME], time)
        if rows.shape[0] > 0:
            found = rows[U64(row)]
            found[ZXID], found[TIME], found[KIND] = zxid, time, kind
            found[SESSION], found[CXID] = int64(data, body), int32(data, body + 8)
            found[BODY_AT], found[BODY_SIZE], found[SUM] = body, size, stored
            row += 1
        at += whole


@inlined
def record_at(data: Bytes, at: Number, end: Number, after: Number, left: Number) -> tuple[Number, Number]:
    """Whether a good record with a zxid above `after` begins here: FOUND, MORE, or BAD_LENGTH for no; and its size.

    `left`: how many bytes the file can have from here on.
    """
    if end - at < FRAME_BYTES + 20:
        return MORE, FRAME_BYTES + 20
    if int32(data, at) != 0:
        return BAD_LENGTH, 0
    size = int32(data, at + 8)
    whole = FRAME_BYTES + size + 1
    if size < SMALLEST_BODY or whole > left or int64(data, at + FRAME_BYTES + 12) <= after:
        return BAD_LENGTH, 0
    if end - at < whole:
        return MORE, whole
    if data[U64(at + whole - 1)] != END_MARK:
        return BAD_LENGTH, 0
    good = adler32(data, at + FRAME_BYTES, at + whole - 1) == int64(data, at)
    return (FOUND if good else BAD_CHECKSUM), whole


@kernel(lambda _data, at, end, *_: 5 * (end - at))
def find(data: Bytes, at: int, end: int, after: int, left: int, effort: int) -> tuple[int, int, int, int]:
    """The next good record with a zxid above `after`. Returns FOUND, MORE or GAVE_UP; where; its size or what is
    needed to decide; and what is left of `effort`, the bytes that may be summed in vain: a file made for it could cost
    the square of its size.
    """
    while True:
        verdict, size = record_at(data, at, end, after, left)
        if verdict in (FOUND, MORE):
            return verdict, at, size, effort
        effort -= size
        if effort < 0:
            return GAVE_UP, at, 0, effort
        at += 1
        left -= 1
