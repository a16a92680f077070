"""Kernels that read records of OSO kafka-backup segments. All numbers are little-endian.

    size u32 of the rest | time i64 | offset i64 | key | value | headers u16 | { name (u16 size) | value } *

Key and value have a size i32 in front, -1 for null. Rows of `numbers` and `spans` are those of kafka-backup-v1.
"""

import numpy as np

from logkeep.formats.datasets.kafka_backup_v1.v1_reader_kernels import (
    BAD,
    END,
    FULL,
    HEADERS,
    HEADERS_AT,
    KEY_AT,
    KEY_SIZE,
    KIND,
    LENGTH,
    OFFSET,
    POSITION,
    TIME,
    TORN,
    VALUE_AT,
    VALUE_SIZE,
    Flags,
)
from logkeep.formats.jit import inlined, kernel
from logkeep.formats.kafka.record_kernels import U64, Bytes, Longs, Number

LEAST_RECORD_BYTES = 4 + 8 + 8 + 4 + 4 + 2
OFFSET_NAME = np.frombuffer(b"x-original-offset", np.uint8)
TIME_NAME = np.frombuffer(b"x-original-timestamp", np.uint8)
"""Headers that the tool appends to each record by default: 8 bytes each."""


@inlined
def little(data: Bytes, at: Number, size: Number) -> Number:
    """A number of up to 8 bytes, unsigned below 8."""
    number = np.int64(0)
    for index in range(size):
        number |= np.int64(data[U64(at + index)]) << (8 * index)
    return number


@inlined
def _signed(data: Bytes, at: Number) -> Number:
    number = little(data, at, 4)
    return number - ((number >> 31) << 32)


@inlined
def _end_of(data: Bytes, at: Number, end: Number) -> Number:
    """The byte after a byte string with a size of four bytes; BAD if it does not fit."""
    if end - at < 4:
        return BAD
    size = _signed(data, at)
    if size < -1 or size > end - at - 4:
        return BAD
    return at + 4 + max(size, 0)


@inlined
def _headers_end(data: Bytes, at: Number, end: Number, count: Number) -> Number:
    for _ in range(count):
        if end - at < 2:
            return BAD
        size = little(data, at, 2)
        if size > end - at - 2:
            return BAD
        at = _end_of(data, at + 2 + size, end)
        if at < 0:
            return BAD
    return at


@inlined
def _record(data: Bytes, start: Number, end: Number, numbers: Longs, spans: Longs, row: Number) -> Number:
    """Fill in a row. The record ends exactly at `end`, or the result is BAD."""
    if end - start < LEAST_RECORD_BYTES - 4:
        return BAD
    time, offset, key = little(data, start, 8), little(data, start + 8, 8), start + 16
    value = _end_of(data, key, end)
    if value < 0 or offset < 0 or offset == 9223372036854775807:
        return BAD
    after = _end_of(data, value, end)
    if after < 0 or end - after < 2:
        return BAD
    count = little(data, after, 2)
    if _headers_end(data, after + 2, end, count) != end:
        return BAD
    numbers[row, TIME], numbers[row, OFFSET], numbers[row, KIND] = time, offset, 0
    spans[row, KEY_AT], spans[row, KEY_SIZE] = key + 4, _signed(data, key)
    spans[row, VALUE_AT], spans[row, VALUE_SIZE] = value + 4, _signed(data, value)
    spans[row, HEADERS_AT], spans[row, HEADERS] = after + 2, count
    return end


@kernel(lambda _data, _at, _above, numbers, _spans: 80 * len(numbers))
def walk_oso(data: Bytes, at: Number, above: Number, numbers: Longs, spans: Longs) -> tuple[int, int, int]:
    """Read records one after the other, with rising offsets above `above`. Their number, where it ended, and why."""
    count, last, here = np.int64(0), np.int64(above), np.int64(at)
    end = np.int64(data.shape[0])
    while here < end:
        if count == numbers.shape[0]:
            return int(count), int(here), FULL
        if end - here < 4:
            return int(count), int(here), TORN
        size = little(data, here, 4)
        if size > end - here - 4:
            return int(count), int(here), TORN
        if _record(data, here + 4, here + 4 + size, numbers, spans, count) < 0 or numbers[count, OFFSET] <= last:
            return int(count), int(here), BAD
        numbers[count, POSITION], numbers[count, LENGTH] = here, size + 4
        last = numbers[count, OFFSET]
        here += size + 4
        count += 1
    return int(count), int(here), END


@inlined
def _is(data: Bytes, at: Number, size: Number, name: Bytes) -> bool:
    if size != name.shape[0]:
        return False
    for index in range(size):  # noqa: SIM110 - numba knows no generators
        if data[U64(at + index)] != name[U64(index)]:
            return False
    return True


@kernel(lambda _data, spans, *_: 20 * len(spans))
def oso_header_places(
    data: Bytes, spans: Longs, name_at: Longs, name_size: Longs, value_at: Longs, value_size: Longs
) -> int:
    """Where names and values of all headers are; their number. Records were read by a kernel of this module."""
    count = np.int64(0)
    for row in range(spans.shape[0]):
        at = spans[row, HEADERS_AT]
        for _ in range(spans[row, HEADERS]):
            size = little(data, at, 2)
            name_at[count], name_size[count] = at + 2, size
            at += 2 + size
            size = _signed(data, at)
            value_at[count], value_size[count] = at + 4, size
            at += 4 + max(size, 0)
            count += 1
    return int(count)


@kernel(lambda _data, numbers, *_: 20 * len(numbers))
def appended_headers(
    data: Bytes,
    numbers: Longs,
    spans: Longs,
    name_at: Longs,
    name_size: Longs,
    value_at: Longs,
    value_size: Longs,
    offset_name: Bytes,
    time_name: Bytes,
    kept: Flags,
) -> int:
    """Mark the two headers that the tool appended: the last two, if they equal the record's own offset and time.

    Older ones of the same names came from a restore, and are data. Returns how many records had them; lowers their
    number of headers.
    """
    at, found = np.int64(0), np.int64(0)
    for row in range(numbers.shape[0]):
        count = spans[row, HEADERS]
        for header in range(at, at + count):
            kept[header] = True
        at += count
        if count < 2:
            continue
        first, second = at - 2, at - 1
        if not _is(data, name_at[first], name_size[first], offset_name) or value_size[first] != 8:
            continue
        if not _is(data, name_at[second], name_size[second], time_name) or value_size[second] != 8:
            continue
        if little(data, value_at[first], 8) != numbers[row, OFFSET]:
            continue
        if little(data, value_at[second], 8) != numbers[row, TIME]:
            continue
        kept[first], kept[second] = False, False
        spans[row, HEADERS] = count - 2
        found += 1
    return int(found)
