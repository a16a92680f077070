"""Kernels that write Arrow's columns of records as record sections of batches.

A column of byte strings is its `borders` (int32, one more than rows), its `data` and which rows are `there` (not null).
Headers are two such columns, and `firsts`: the borders of each record's headers in them.
"""

import numpy as np
import numpy.typing as npt

from logkeep.formats.jit import inlined, kernel
from logkeep.formats.kafka.encode_kernels import copy, put_varint, varint_size, zigzag
from logkeep.formats.kafka.record_kernels import U64, Bytes, Ints, Longs, Number

Flags = npt.NDArray[np.bool_]
MOST_DELTA = 2**31 - 1
NO_ROOM = -1


@inlined
def _string_size(size: Number, there: Number) -> Number:
    return varint_size(zigzag(size)) + size if there else 1


@kernel(lambda keys, *_: 30 * len(keys))
def body_sizes(
    keys: Ints,
    keys_there: Flags,
    values: Ints,
    values_there: Flags,
    firsts: Ints,
    names: Ints,
    header_values: Ints,
    header_values_there: Flags,
    sizes: Longs,
) -> int:
    """The bytes of each record from the length of its key on. Returns their sum."""
    total = np.int64(0)
    for row in range(sizes.shape[0]):
        size = _string_size(np.int64(keys[row + 1]) - np.int64(keys[row]), keys_there[row])
        size += _string_size(np.int64(values[row + 1]) - np.int64(values[row]), values_there[row])
        first, after = np.int64(firsts[row]), np.int64(firsts[row + 1])
        size += varint_size(zigzag(after - first))
        for header in range(first, after):
            size += _string_size(np.int64(names[header + 1]) - np.int64(names[header]), True)
            length = np.int64(header_values[header + 1]) - np.int64(header_values[header])
            size += _string_size(length, header_values_there[header])
        sizes[row] = size
        total += size
    return int(total)


@kernel(lambda offsets, *_: 5 * len(offsets))
def batch_borders(
    offsets: Longs, times: Longs, appended: Flags, sizes: Longs, most: Number, before: Number, groups: Longs
) -> int:
    """The first row of each batch and the one after its last; how many there are.

    A batch has one kind of times (append times: one time), offsets within 31 bits of its first, and at most `most`
    bytes, `before` per record besides its size; a larger record has its own.
    """
    count = np.int64(0)
    filled = np.int64(0)
    for row in range(offsets.shape[0]):
        first = groups[count - 1, 0] if count else np.int64(0)
        new = count == 0 or filled + sizes[row] + before > most or offsets[row] - offsets[first] > MOST_DELTA
        if not new:
            new = appended[row] != appended[first] or (appended[row] and times[row] != times[first])
        if new:
            groups[count, 0] = row
            count += 1
            filled = np.int64(0)
        groups[count - 1, 1] = row + 1
        filled += sizes[row] + before
    return int(count)


@inlined
def _put_string(out: Bytes, at: np.uint64, borders: Ints, data: Bytes, row: Number, there: Number) -> np.uint64:
    if not there:
        out[at] = np.uint8(1)
        return at + U64(1)
    start = np.int64(borders[row])
    size = np.int64(borders[row + 1]) - start
    at = put_varint(out, at, zigzag(size))
    copy(data, U64(start), U64(size), out, at)
    return at + U64(size)


@kernel(lambda offsets, *_: 60 * len(offsets))
def encode_rows(
    offsets: Longs,
    times: Longs,
    groups: Longs,
    sizes: Longs,
    keys: Ints,
    key_data: Bytes,
    keys_there: Flags,
    values: Ints,
    value_data: Bytes,
    values_there: Flags,
    firsts: Ints,
    names: Ints,
    name_data: Bytes,
    header_values: Ints,
    header_value_data: Bytes,
    header_values_there: Flags,
    head: Number,
    out: Bytes,
    ends: Longs,
    latest: Longs,
) -> int:
    """Write each batch after `head` free bytes: fills in its end and its largest time; returns the last end.

    NO_ROOM when `out` is too small: it needs `head` per batch and 21 bytes and its size per record.
    """
    at = np.int64(0)
    for group in range(groups.shape[0]):
        at += head
        first = groups[group, 0]
        most = times[first]
        for row in range(first, groups[group, 1]):
            if sizes[row] + 21 > out.shape[0] - at:
                return NO_ROOM
            most = max(most, times[row])
            time, offset = zigzag(times[row] - times[first]), zigzag(offsets[row] - offsets[first])
            here = put_varint(out, U64(at), zigzag(1 + varint_size(time) + varint_size(offset) + sizes[row]))
            out[here] = np.uint8(0)
            here = put_varint(out, put_varint(out, here + U64(1), time), offset)
            here = _put_string(out, here, keys, key_data, row, keys_there[row])
            here = _put_string(out, here, values, value_data, row, values_there[row])
            begin, after = np.int64(firsts[row]), np.int64(firsts[row + 1])
            here = put_varint(out, here, zigzag(after - begin))
            for header in range(begin, after):
                here = _put_string(out, here, names, name_data, header, True)
                here = _put_string(out, here, header_values, header_value_data, header, header_values_there[header])
            at = np.int64(here)
        if at > out.shape[0]:
            return NO_ROOM
        ends[group], latest[group] = at, most
    return int(at)
