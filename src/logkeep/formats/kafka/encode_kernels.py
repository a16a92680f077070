"""Kernels that write records: the record sections of many batches, and bytes collected from many places.

Rows of `groups` (one per batch to be written, int64): FIRST and AFTER row of its records. A group without records has
an empty section. Offset deltas count from 0 without holes, time deltas are relative to the group's first record, the
body of a record (from the length of its key to its end) is copied as it is.
"""

import numpy as np

from logkeep.formats.jit import inlined, inlined_or, kernel
from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.record_kernels import U64, Bytes, Ints, Longs, Number

FIRST, AFTER = range(2)
MOST_BEFORE_BODY = 5 + 1 + 10 + 5
"""Bytes of a record before its body: length, attributes, time delta, offset delta, each as long as it may be."""
NO_ROOM = -1
_LARGEST_BORDER = 2**31 - 1


@inlined
def zigzag(number: Number) -> np.uint64:
    return U64((number << 1) ^ (number >> 63))


@inlined
def put_varint(out: Bytes, at: np.uint64, rest: np.uint64) -> np.uint64:
    """Write a number that is zig-zagged already; the byte after it."""
    while rest >= U64(128):
        out[at] = np.uint8((rest & U64(127)) | U64(128))
        rest >>= U64(7)
        at += U64(1)
    out[at] = np.uint8(rest)
    return at + U64(1)


@inlined
def varint_size(rest: np.uint64) -> int:
    size = 1
    while rest >= U64(128):
        rest >>= U64(7)
        size += 1
    return size


def _copy_slice(data: Bytes, start: np.uint64, size: np.uint64, out: Bytes, at: np.uint64) -> None:
    out[at : at + size] = data[start : start + size]


@inlined_or(_copy_slice)
def copy(data: Bytes, start: np.uint64, size: np.uint64, out: Bytes, at: np.uint64) -> None:
    """Copy bytes that are there to where there is room."""
    for index in range(size):
        out[at + U64(index)] = data[start + U64(index)]


@kernel(lambda _data, times, *_: 40 * len(times))
def encode_groups(
    data: Bytes, times: Longs, spans: Ints, groups: Longs, head: int, out: Bytes, ends: Longs, latest: Longs
) -> int:
    """Write each group after `head` free bytes. Fills in its end and its largest time; returns the last end.

    NO_ROOM when `out` is too small: it needs `head` per group and MOST_BEFORE_BODY and the body per record.
    """
    at: Number = np.int64(0)
    for group in range(groups.shape[0]):
        at += head
        first = groups[group, FIRST]
        most = np.int64(-1)
        for row in range(first, groups[group, AFTER]):
            start = np.int64(spans[row, k.BODY_AT])
            size = np.int64(spans[row, k.END_AT]) - start
            if size < 0 or size + MOST_BEFORE_BODY > out.shape[0] - at:
                return NO_ROOM
            if row == first or times[row] > most:
                most = times[row]
            time, offset = zigzag(times[row] - times[first]), zigzag(row - first)
            here = put_varint(out, U64(at), zigzag(1 + varint_size(time) + varint_size(offset) + size))
            out[here] = np.uint8(0)
            here = put_varint(out, put_varint(out, here + U64(1), time), offset)
            copy(data, U64(start), U64(size), out, here)
            at = np.int64(here) + size
        if at > out.shape[0]:
            return NO_ROOM
        ends[group], latest[group] = at, most
    return int(at)


@kernel(lambda _data, starts, *_: 5 * len(starts))
def gather(data: Bytes, starts: Longs, sizes: Longs, out: Bytes, places: Longs) -> int:
    """Copy pieces to their places. Negative sizes are nothing. Returns how many fit on both sides: all of them."""
    for index in range(starts.shape[0]):
        start, size, at = starts[index], sizes[index], places[index]
        if size <= 0:
            continue
        if start < 0 or at < 0 or size > data.shape[0] - start or size > out.shape[0] - at:
            return index
        copy(data, U64(start), U64(size), out, U64(at))
    return len(starts)


@kernel(lambda sizes, _borders: 2 * len(sizes))
def count_borders(sizes: Longs, borders: Ints) -> tuple[int, int]:
    """Fill in where pieces of these sizes begin and end, one after the other. Negative sizes are nothing.

    Returns how many there are of them, and the last border: NO_ROOM when it needs more than 31 bits.
    """
    nothing, at = 0, np.int64(0)
    borders[0] = 0
    for index in range(min(sizes.shape[0], borders.shape[0] - 1)):
        size = sizes[index]
        if size < 0:
            nothing += 1
        elif size > _LARGEST_BORDER - at:
            return nothing, NO_ROOM
        else:
            at += size
        borders[index + 1] = at
    return nothing, int(at)


@kernel(lambda _data, starts, *_: 5 * len(starts))
def pack(data: Bytes, starts: Longs, borders: Ints, out: Bytes) -> int:
    """Copy pieces to between their borders. Returns how many fit on both sides: all of them."""
    for index in range(min(starts.shape[0], borders.shape[0] - 1)):
        start, at = starts[index], np.int64(borders[index])
        size = np.int64(borders[index + 1]) - at
        if size <= 0:
            continue
        if start < 0 or at < 0 or size > data.shape[0] - start or size > out.shape[0] - at:
            return index
        copy(data, U64(start), U64(size), out, U64(at))
    return len(starts)
