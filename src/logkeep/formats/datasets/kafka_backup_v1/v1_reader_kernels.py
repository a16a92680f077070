"""Kernels that read records of kafka-backup-v1 files: at the positions of an index, or one after the other.

Rows of `numbers` (int64, one per record): its POSITION in the data, its LENGTH, OFFSET, TIME (-1: none) and KIND as the
file has it. Rows of `spans`: where key, value and headers are, a size of -1 is null. Every length is compared with the
bytes that are there before it is used.
"""

import numpy as np
import numpy.typing as npt

from logkeep.formats.jit import inlined, kernel
from logkeep.formats.kafka.record_kernels import U64, Bytes, Longs, Number

POSITION, LENGTH, OFFSET, TIME, KIND = range(5)
NUMBER_COLUMNS = 5
KEY_AT, KEY_SIZE, VALUE_AT, VALUE_SIZE, HEADERS_AT, HEADERS = range(6)
SPAN_COLUMNS = 6
LEAST_RECORD_BYTES = 24
"""Offset, type, three lengths or counts, and nothing else."""
LARGEST_RECORD_BYTES = 256 << 20
"""No broker accepts a larger one. What claims to be larger is not a record."""

END, FULL, TORN, BAD = 0, 1, -1, -2
"""Why a walk ends: nothing is left, no row is left, the record ends after the data, no record begins here."""

Flags = npt.NDArray[np.bool_]


@inlined
def big_long(data: Bytes, at: Number) -> Number:
    number = np.int64(0)
    for index in range(8):
        number = (number << 8) | np.int64(data[U64(at + index)])
    return number


@inlined
def big_int(data: Bytes, at: Number) -> Number:
    number = np.int64(0)
    for index in range(4):
        number = (number << 8) | np.int64(data[U64(at + index)])
    return number - ((number >> 31) << 32)


@inlined
def _field(data: Bytes, at: Number, end: Number) -> tuple[Number, Number]:
    """The size of a byte string and the byte after it, or why there is none."""
    if end - at < 4:
        return 0, TORN
    size = big_int(data, at)
    if size < -1:
        return 0, BAD
    if size > end - at - 4:
        return 0, TORN
    return size, at + 4 + max(size, 0)


@inlined
def _headers_end(data: Bytes, at: Number, end: Number, count: Number) -> Number:
    """The byte after the headers, or why there is none. Each takes eight bytes at least."""
    if count < 0:
        return BAD
    if count > (end - at) // 8:
        return TORN
    for _ in range(count):
        size, after = _field(data, at, end)
        if after < 0:
            return after
        if size < 0:
            return BAD
        size, at = _field(data, after, end)
        if at < 0:
            return at
    return at


@inlined
def _record(  # noqa: PLR0911 - one way out for each field that may not fit
    data: Bytes, start: Number, end: Number, numbers: Longs, spans: Longs, row: Number
) -> Number:
    """Fill in a row; the byte after the record, or why there is none."""
    if end - start < 12:
        return TORN
    offset, kind = big_long(data, start), big_int(data, start + 8)
    if kind < -2 or kind > 1 or offset < 0 or offset == 9223372036854775807:
        return BAD
    at, time = start + 12, np.int64(-1)
    if kind >= 0:
        if end - at < 8:
            return TORN
        time = big_long(data, at)
        at += 8
    size, after = _field(data, at, end)
    if after < 0:
        return after
    spans[row, KEY_AT], spans[row, KEY_SIZE] = at + 4, size
    size, value_end = _field(data, after, end)
    if value_end < 0:
        return value_end
    spans[row, VALUE_AT], spans[row, VALUE_SIZE] = after + 4, size
    if end - value_end < 4:
        return TORN
    count = big_int(data, value_end)
    spans[row, HEADERS_AT], spans[row, HEADERS] = value_end + 4, count
    after = _headers_end(data, value_end + 4, end, count)
    if after >= 0:
        numbers[row, POSITION], numbers[row, LENGTH] = start, after - start
        numbers[row, OFFSET], numbers[row, TIME], numbers[row, KIND] = offset, time, kind
    return after


@kernel(lambda _data, _at, _end, _above, numbers, _spans: 60 * len(numbers))
def walk_records(
    data: Bytes, at: Number, end: Number, above: Number, numbers: Longs, spans: Longs
) -> tuple[int, int, int]:
    """Read records one after the other, with rising offsets above `above`. Their number, where it ended, and why."""
    count = np.int64(0)
    last = np.int64(above)
    here = np.int64(at)
    while here < end:
        if count == numbers.shape[0]:
            return int(count), int(here), FULL
        after = _record(data, here, end, numbers, spans, count)
        if after < 0:
            return int(count), int(here), int(after)
        if numbers[count, OFFSET] <= last:
            return int(count), int(here), BAD
        last = numbers[count, OFFSET]
        here = after
        count += 1
    return int(count), int(here), END


@kernel(lambda _data, starts, *_: 60 * len(starts))
def read_entries(
    data: Bytes, starts: Longs, lengths: Longs, offsets: Longs, numbers: Longs, spans: Longs, good: Flags
) -> int:
    """Read the records that index entries name. `good`: those of exactly this length and offset; their number."""
    count = np.int64(0)
    for index in range(starts.shape[0]):
        start, length = starts[index], lengths[index]
        good[index] = False
        if start < 0 or length < LEAST_RECORD_BYTES or length > data.shape[0] - start:
            continue
        after = _record(data, start, start + length, numbers, spans, count)
        if after == start + length and numbers[count, OFFSET] == offsets[index]:
            good[index] = True
            count += 1
    return int(count)


@kernel(lambda _data, spans, *_: 10 * len(spans))
def header_places(
    data: Bytes, spans: Longs, name_at: Longs, name_size: Longs, value_at: Longs, value_size: Longs
) -> int:
    """Where names and values of all headers are; their number. Records were read by a kernel of this module."""
    count = np.int64(0)
    for row in range(spans.shape[0]):
        at = spans[row, HEADERS_AT]
        for _ in range(spans[row, HEADERS]):
            size = big_int(data, at)
            name_at[count], name_size[count] = at + 4, size
            at += 4 + size
            size = big_int(data, at)
            value_at[count], value_size[count] = at + 4, size
            at += 4 + max(size, 0)
            count += 1
    return int(count)


@kernel(lambda entries, *_: len(entries))
def fitting_entries(entries: Longs, size: Number, last_offset: Number, last_end: Number) -> int:
    """How many entries (offset, position, length) from the first on rise and fit a file of this size."""
    for index in range(entries.shape[0]):
        offset, position, length = entries[index, 0], entries[index, 1], entries[index, 2]
        if offset <= last_offset or position < last_end or length < LEAST_RECORD_BYTES:
            return int(index)
        if position > size or length > size - position or length > LARGEST_RECORD_BYTES:
            return int(index)
        last_offset, last_end = offset, position + length
    return int(entries.shape[0])
