"""Kernels that read records: varints, and the records of many batches as columns.

A record, after its own length: attributes (one byte, unused), time delta, offset delta, key, value, headers.
Numbers are zig-zag varints, byte strings have their length in front (-1: null), headers their number, each a name
and a value.

Rows of `batches` (one per batch, int64): START and END of its records in `data`, BASE offset, LAST offset delta, COUNT
of records, TIME that deltas are added to; where APPENDED is not 0, TIME is that of every record.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from logkeep.formats.jit import inlined, inlined_or, kernel

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Number = Any
"""64 bits, signed; a type of numpy or Python."""

START, END, BASE, LAST, COUNT, TIME, APPENDED = range(7)
BATCH_COLUMNS = 7

KEY_AT, KEY_SIZE, VALUE_AT, VALUE_SIZE, HEADERS_AT, HEADERS, BODY_AT, END_AT, BATCH, ODD = range(10)
SPAN_COLUMNS = 10

OK, BAD_LENGTH, BAD_NUMBER, BAD_KEY, BAD_VALUE, BAD_HEADERS, LEFT_IN_RECORD, BAD_OFFSET, LEFT_IN_BATCH = range(9)

U64 = np.uint64
"""An unsigned index is used directly; a signed one would first be checked for being negative."""


def _read_eight(data: Bytes, at: np.uint64) -> np.uint64:
    return U64(int.from_bytes(data[at : at + U64(8)].tobytes(), "little"))


@inlined_or(_read_eight)
def eight(data: Bytes, at: np.uint64) -> np.uint64:
    """Eight bytes, which must be there, as a little-endian number."""
    word = U64(data[at]) | (U64(data[at + U64(1)]) << U64(8)) | (U64(data[at + U64(2)]) << U64(16))
    word |= (U64(data[at + U64(3)]) << U64(24)) | (U64(data[at + U64(4)]) << U64(32))
    return (
        word
        | (U64(data[at + U64(5)]) << U64(40))
        | (U64(data[at + U64(6)]) << U64(48))
        | (U64(data[at + U64(7)]) << U64(56))
    )


@inlined
def four(data: Bytes, at: np.uint64) -> np.uint64:
    """The same of four bytes."""
    word = U64(data[at]) | (U64(data[at + U64(1)]) << U64(8)) | (U64(data[at + U64(2)]) << U64(16))
    return word | (U64(data[at + U64(3)]) << U64(24))


@inlined
def varint(data: Bytes, at: Number, end: Number, top: int, most: int) -> tuple[Number, Number]:
    """A zig-zag number and the byte after it, which is -1 when it does not end before `end`, or is too large.

    `top` is the shift of the last byte that a number may have, `most` the largest value of that byte.
    """
    if at >= end:
        return 0, -1
    byte = np.int64(data[U64(at)])
    at += 1
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at
    number = byte & 127
    shift = 7
    while at < end and shift <= top:
        byte = np.int64(data[U64(at)])
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            if shift == top and byte > most:
                return 0, -1
            return np.int64(np.uint64(number) >> np.uint64(1)) ^ -(number & 1), at
        shift += 7
    return 0, -1


@inlined
def varint32(data: Bytes, at: Number, end: Number) -> tuple[Number, Number]:
    return varint(data, at, end, 28, 15)


@inlined
def overlong(data: Bytes, at: Number, after: Number) -> int:
    """Whether a number takes more bytes than it needs: legal, but no producer writes it."""
    return 1 if after - at > 1 and data[after - 1] == 0 else 0


@inlined
def short(data: Bytes, at: Number) -> tuple[Number, Number]:
    """A zig-zag number of one or two bytes, both of which must be there; the byte after it is -1 when it is longer."""
    byte = np.int64(data[U64(at)])
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    second = np.int64(data[U64(at + 1)])
    if 0 < second < 128:
        number = byte & 127 | second << 7
        return (number >> 1) ^ -(number & 1), at + 2
    return 0, -1


@inlined
def ordinary(  # noqa: PLR0911 - as below
    data: Bytes, at: Number, end: Number
) -> tuple[Number, Number, Number, Number, Number, Number, Number, Number]:
    """Most records: no number is longer than two bytes, there are no headers, and another record comes after it.

    So the end of the data need not be checked. Returns the end of the record (-1: it is another kind, or malformed),
    time and offset deltas, the start of the body, and position and size of key and value.
    """
    none = (np.int64(-1), np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0))
    if at + 2 > end:
        return none
    size, begin = short(data, at)
    stop = begin + size
    if begin < 0 or size < 6 or stop + 2 > end:
        return none
    delta, at = short(data, begin + 1)
    if at < 0:
        return none
    offset, body = short(data, at)
    if body < 0 or body > stop:
        return none
    key_size, key_at = short(data, body)
    if key_at < 0 or key_size < -1 or key_size > stop - key_at:
        return none
    at = key_at + max(key_size, 0)
    if at > stop:
        return none
    value_size, value_at = short(data, at)
    if value_at < 0 or value_size < -1 or value_at + max(value_size, 0) != stop - 1 or data[U64(stop - 1)] != 0:
        return none
    return stop, delta, offset, body, key_at, key_size, value_at, value_size


@inlined
def skip_headers(data: Bytes, at: Number, end: Number, count: Number) -> tuple[Number, int]:
    """The byte after `count` headers, -1 when they are malformed, and whether a number in them is overlong."""
    odd = 0
    for _ in range(count):
        size, body = varint32(data, at, end)
        if body < 0 or size < 0 or size > end - body:
            return -1, odd
        odd |= overlong(data, at, body)
        at = body + size
        size, body = varint32(data, at, end)
        if body < 0 or size < -1 or size > end - body:
            return -1, odd
        odd |= overlong(data, at, body)
        at = body + max(size, 0)
    return at, odd


@kernel(lambda _data, _batches, offsets, *_: 50 * len(offsets))
def decode_batches(  # noqa: PLR0911 - compiled code raises no exceptions: each check returns its answer
    data: Bytes, batches: Longs, offsets: Longs, times: Longs, spans: Ints
) -> tuple[int, int, int, int]:
    """Fill one row per record. Returns rows that are good, the problem (OK: none), its batch and its byte in `data`.

    The output arrays must have room for the sum of COUNT. A batch is good as a whole or not at all.
    """
    row = 0
    for batch in range(batches.shape[0]):
        at: Number = batches[batch, START]
        end = batches[batch, END]
        base, last = batches[batch, BASE], batches[batch, LAST]
        time, appended = batches[batch, TIME], batches[batch, APPENDED]
        first = row
        before: Number = np.int64(-1)
        for _ in range(batches[batch, COUNT]):
            stop, delta, offset, body, key_at, key_size, value_at, value_size = ordinary(data, at, end)
            headers_at, headers, odd = stop, np.int64(0), 0
            if stop < 0 or offset <= before or offset > last:
                size, begin = varint32(data, at, end)
                if begin < 0 or size < 6 or size > end - begin:
                    return first, BAD_LENGTH, batch, at
                stop = begin + size
                delta, at = varint(data, begin + 1, stop, 63, 1)
                if at < 0:
                    return first, BAD_NUMBER, batch, begin
                offset, body = varint32(data, at, stop)
                if body < 0 or offset <= before or offset > last:
                    return first, BAD_OFFSET, batch, at
                key_size, key_at = varint32(data, body, stop)
                if key_at < 0 or key_size < -1 or key_size > stop - key_at:
                    return first, BAD_KEY, batch, body
                at = key_at + max(key_size, 0)
                value_size, value_at = varint32(data, at, stop)
                if value_at < 0 or value_size < -1 or value_size > stop - value_at:
                    return first, BAD_VALUE, batch, at
                odd = overlong(data, body, key_at) | overlong(data, at, value_at)
                at = value_at + max(value_size, 0)
                headers, headers_at = varint32(data, at, stop)
                if headers_at < 0 or headers < 0 or headers > stop - headers_at:
                    return first, BAD_HEADERS, batch, at
                odd |= overlong(data, at, headers_at)
                at, odd_too = skip_headers(data, headers_at, stop, headers)
                if at < 0:
                    return first, BAD_HEADERS, batch, headers_at
                odd |= odd_too
                if at != stop:
                    return first, LEFT_IN_RECORD, batch, at
            before, at = offset, stop
            here = U64(row)
            offsets[here] = base + offset
            times[here] = time if appended else time + delta
            span = spans[here]
            span[KEY_AT], span[KEY_SIZE] = key_at, key_size
            span[VALUE_AT], span[VALUE_SIZE] = value_at, value_size
            span[HEADERS_AT], span[HEADERS] = headers_at, headers
            span[BODY_AT], span[END_AT] = body, stop
            span[BATCH], span[ODD] = batch, odd
            row += 1
        if at != end:
            return first, LEFT_IN_BATCH, batch, at
    return row, OK, -1, -1


@kernel(lambda _data, spans, name_at, *_: 2 * len(spans) + 10 * len(name_at))
def header_spans(data: Bytes, spans: Ints, name_at: Longs, name_size: Longs, value_at: Longs, value_size: Longs) -> int:
    """One row per header, in order; a size of -1 is null. Returns how many rows were filled.

    The records come from `decode_batches`, which checked every length; the columns have room for the sum of HEADERS.
    """
    row = 0
    for record in range(spans.shape[0]):
        at: Number = np.int64(spans[record, HEADERS_AT])
        end = np.int64(spans[record, END_AT])
        for _ in range(spans[record, HEADERS]):
            size, at = varint32(data, at, end)
            if at < 0 or size < 0 or size > end - at or row >= name_at.shape[0]:
                return row
            name_at[row], name_size[row] = at, size
            size, at = varint32(data, at + size, end)
            if at < 0 or size > end - at:
                return row
            value_at[row], value_size[row] = at, size
            at += max(size, 0)
            row += 1
    return row
