"""Kernels of Avro records: rows of a log written by one of our schemas, and read by the fields of a writer's schema.

Avro's numbers are zig-zag varints of up to 64 bits; bytes and texts have their length in front; a union begins with the
number of its branch; maps and arrays are blocks: a number of entries (negative: their bytes follow it), the entries,
and so on up to a block of 0.

`rows` to be written (int64): columns OFFSET … HEADERS_END; a size of -1 is null. `headers`: NAME_AT … IN_MAP.
`program` (one row per field of the writer's schema): what the FIELD is, the branch of its union that is NULL (-1: it is
no union), and the same of header VALUES. `blocks` (one per block in `data`): END of its plain bytes, and how many of
its records are LEFT.
"""

import numpy as np

from logkeep.formats.jit import inlined, kernel
from logkeep.formats.kafka.encode_kernels import NO_ROOM, copy, put_varint, zigzag
from logkeep.formats.kafka.record_kernels import U64, Bytes, Longs, Number, varint

OFFSET, TIME, KIND, KEY_AT, KEY_SIZE, VALUE_AT, VALUE_SIZE, HEADERS_FROM, HEADERS_END = range(9)
ROW_COLUMNS = 9
NAME_AT, NAME_SIZE, HEADER_AT, HEADER_SIZE, IN_MAP = range(5)
HEADER_COLUMNS = 5

FIELD, NULL, VALUES = range(3)
TOPIC, PARTITION, OFFSET_FIELD, TIMESTAMP, KEY, VALUE, HEADER_MAP, TIMESTAMP_TYPE, HEADER_LIST = range(9)
END, LEFT = range(2)

MAP_AT, MAP_COUNT, LIST_AT, LIST_COUNT, TOPIC_AT, TOPIC_SIZE, PARTITION_NUMBER = range(HEADERS_FROM, HEADERS_FROM + 7)
READ_COLUMNS = HEADERS_FROM + 7
"""A row that was read has the columns OFFSET … VALUE_SIZE, then these."""

DONE, FULL, SHORT, BAD, FOREIGN, FALLING, LEFT_OVER = 0, 1, -2, -1, -3, -4, -5
LARGEST_PIECE = 256 << 20
"""The longest key, value or header; `compression` unpacks no larger batch either."""
MOST_HEADERS = 1 << 20
"""In one record, and read at a time."""
_MOST_BEFORE_FIELDS = 64
"""Bytes of a record without its topic, key, value and headers."""
_MOST_BEFORE_HEADER = 2 * 11
_MOST_COMPARED = 64
"""Rows with more headers are left to the caller: comparing each with each takes too long."""


@inlined
def _number(data: Bytes, at: Number, end: Number) -> tuple[Number, Number]:
    """A number and the byte after it; BAD or SHORT in its place when it is malformed, or does not end."""
    number, after = varint(data, at, end, 63, 1)
    if after < 0:
        return np.int64(0), np.int64(SHORT if end - at < 10 else BAD)
    return np.int64(number), np.int64(after)


@inlined
def _piece(data: Bytes, at: Number, end: Number) -> tuple[Number, Number, Number]:
    """Start, size and end of bytes with their length in front; the end is BAD or SHORT as above."""
    size, start = _number(data, at, end)
    if start < 0:
        return np.int64(0), np.int64(0), start
    if size < 0 or size > LARGEST_PIECE:
        return np.int64(0), np.int64(0), np.int64(BAD)
    if size > end - start:
        return np.int64(0), np.int64(0), np.int64(SHORT)
    return start, size, start + size


@inlined
def _branch(data: Bytes, at: Number, end: Number, null: Number) -> tuple[int, Number]:
    """Whether a value is null, and the byte where it begins."""
    if null < 0:
        return 0, np.int64(at)
    branch, after = _number(data, at, end)
    if after >= 0 and not 0 <= branch <= 1:
        after = np.int64(BAD)
    return 1 if branch == null else 0, after


@inlined
def _optional(data: Bytes, at: Number, end: Number, null: Number) -> tuple[Number, Number, Number]:
    """As `_piece`; the size of null is -1."""
    is_null, at = _branch(data, at, end, null)
    if at < 0 or is_null:
        return np.int64(0), np.int64(-1), at
    return _piece(data, at, end)


@inlined
def _entries(data: Bytes, at: Number, end: Number, null: Number) -> tuple[Number, Number]:
    """How many names and values there are, and the byte after them."""
    total = np.int64(0)
    while True:
        count, at = _number(data, at, end)
        if at < 0 or count == 0:
            return total, at
        if count < 0:
            count = -count
            _, at = _number(data, at, end)
        if at >= 0 and (count < 0 or count > MOST_HEADERS - total):
            at = np.int64(BAD)
        if at >= 0 and count > end - at:
            at = np.int64(SHORT)
        if at < 0:
            return total, at
        for _ in range(count):
            _, _, at = _piece(data, at, end)
            if at >= 0:
                _, _, at = _optional(data, at, end, null)
            if at < 0:
                return total, at
        total += count


@inlined
def _same(data: Bytes, start: Number, size: Number, other: Bytes, at: Number) -> bool:
    for index in range(size):  # noqa: SIM110 - compiled code has no generators
        if data[U64(start + index)] != other[U64(at + index)]:
            return False
    return True


@kernel(lambda _data, _at, _blocks, _program, _topic, _partition, _before, rows: 120 * len(rows))
def decode_rows(  # noqa: PLR0911, PLR0912 - compiled code raises no exceptions: each check returns its answer
    data: Bytes, at: int, blocks: Longs, program: Longs, topic: Bytes, partition: int, before: int, rows: Longs
) -> tuple[int, int, int, int]:
    """Fill in rows from `at` on. Returns how many are filled, where the next record begins, why it ended, and a field.

    FULL: no more rows. SHORT: the record there does not end before its block does. BAD, FOREIGN (of another topic or
    partition), FALLING (not above `before`), LEFT_OVER (bytes after the last record) are faults. LEFT is counted down.
    A negative `partition` is not compared.
    """
    row, headers = 0, np.int64(0)
    here: Number = np.int64(at)
    last: Number = np.int64(before)
    for block in range(blocks.shape[0]):
        end = blocks[block, END]
        if end > data.shape[0]:
            return row, int(here), BAD, -1
        while blocks[block, LEFT] > 0:
            if row >= rows.shape[0] or headers >= MOST_HEADERS:
                return row, int(here), FULL, -1
            place, into = here, rows[row]
            into[KIND] = 0
            into[MAP_COUNT] = into[LIST_COUNT] = np.int64(-1)
            for step in range(program.shape[0]):
                field, null = program[step, FIELD], program[step, NULL]
                if field in (KEY, VALUE):
                    start, size, place = _optional(data, place, end, null)
                    column = KEY_AT if field == KEY else VALUE_AT
                    into[column], into[column + 1] = start, size
                elif field == TOPIC:
                    start, size, place = _piece(data, place, end)
                    into[TOPIC_AT], into[TOPIC_SIZE] = start, size
                elif field in (HEADER_MAP, HEADER_LIST):
                    column = MAP_AT if field == HEADER_MAP else LIST_AT
                    is_null, place = _branch(data, place, end, null)
                    into[column] = place
                    if place >= 0 and not is_null:
                        count, place = _entries(data, place, end, program[step, VALUES])
                        into[column + 1] = count
                        headers += count
                else:
                    number, place = _number(data, place, end)
                    if field == OFFSET_FIELD:
                        into[OFFSET] = number
                    elif field == TIMESTAMP:
                        into[TIME] = number
                    elif field == PARTITION:
                        into[PARTITION_NUMBER] = number
                    else:
                        into[KIND] = number
                        if place >= 0 and (number < -1 or number > 1):
                            place = np.int64(BAD)
                if place < 0:
                    return row, int(here), int(place), int(field)
            if partition >= 0 and (
                into[PARTITION_NUMBER] != partition
                or into[TOPIC_SIZE] != topic.shape[0]
                or not _same(data, into[TOPIC_AT], into[TOPIC_SIZE], topic, np.int64(0))
            ):
                return row, int(here), FOREIGN, TOPIC
            if into[OFFSET] <= last:
                return row, int(here), FALLING, OFFSET_FIELD
            last, here = into[OFFSET], place
            blocks[block, LEFT] -= 1
            row += 1
        if here != end:
            return row, int(here), LEFT_OVER, -1
    return row, int(here), DONE, -1


@kernel(lambda _data, rows, headers, *_: 2 * len(rows) + 12 * len(headers))
def header_entries(data: Bytes, rows: Longs, headers: Longs, map_null: int, list_null: int) -> int:
    """One row of `headers` per header of rows that `decode_rows` read: those of the list, else those of the map.

    Returns how many were filled in: all of them.
    """
    filled = 0
    end = np.int64(data.shape[0])
    for row in range(rows.shape[0]):
        in_list = rows[row, LIST_COUNT] >= 0
        left = rows[row, LIST_COUNT] if in_list else rows[row, MAP_COUNT]
        at: Number = rows[row, LIST_AT] if in_list else rows[row, MAP_AT]
        null = list_null if in_list else map_null
        while left > 0:
            count, at = _number(data, at, end)
            if count < 0:
                count = -count
                _, at = _number(data, at, end)
            if at < 0 or count == 0 or count > left:
                return filled
            left -= count
            for _ in range(count):
                if filled >= headers.shape[0]:
                    return filled
                headers[filled, NAME_AT], headers[filled, NAME_SIZE], at = _piece(data, at, end)
                if at < 0:
                    return filled
                headers[filled, HEADER_AT], headers[filled, HEADER_SIZE], at = _optional(data, at, end, null)
                if at < 0:
                    return filled
                filled += 1
    return filled


@inlined
def _is_text(data: Bytes, start: Number, size: Number) -> bool:
    """Whether bytes are UTF-8: no overlong forms, no halves of pairs, nothing above U+10FFFF."""
    at, end = np.int64(start), np.int64(start) + size
    while at < end:
        first = np.int64(data[U64(at)])
        at += 1
        if first < 0x80:
            continue
        more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if first < 0xC2 or first > 0xF4 or more > end - at:
            return False
        second = np.int64(data[U64(at)])
        if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F):
            return False
        if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
            return False
        for index in range(more):
            if np.int64(data[U64(at + index)]) & 0xC0 != 0x80:
                return False
        at += more
    return True


@kernel(lambda _names, rows, headers, _text: 2 * len(rows) + 40 * len(headers))
def mark_headers(names: Bytes, rows: Longs, headers: Longs, text: Bytes) -> int:
    """Set `text` where a name is UTF-8, and IN_MAP where no later header of the row has the name.

    Returns how many rows have so many headers that the caller must find their repeated names.
    """
    many = 0
    for row in range(rows.shape[0]):
        first, end = rows[row, HEADERS_FROM], rows[row, HEADERS_END]
        if first < 0 or end > headers.shape[0] or end > text.shape[0]:
            return NO_ROOM
        many += 1 if end - first > _MOST_COMPARED else 0
        for one in range(first, end):
            start, size = headers[one, NAME_AT], headers[one, NAME_SIZE]
            if start < 0 or size < 0 or size > names.shape[0] - start:
                return NO_ROOM
            text[one] = np.uint8(1 if _is_text(names, start, size) else 0)
            headers[one, IN_MAP] = 1
            for before in range(first, one if end - first <= _MOST_COMPARED else first):
                if headers[before, NAME_SIZE] == size and _same(names, start, size, names, headers[before, NAME_AT]):
                    headers[before, IN_MAP] = 0
    return many


@inlined
def _put_piece(out: Bytes, at: np.uint64, data: Bytes, start: Number, size: Number) -> np.uint64:
    if size < 0:
        size = np.int64(0)
    at = put_varint(out, at, zigzag(size))
    copy(data, U64(start), U64(size), out, at)
    return at + U64(size)


@inlined
def _put_optional(out: Bytes, at: np.uint64, data: Bytes, start: Number, size: Number) -> np.uint64:
    """In a union of bytes and null."""
    out[at] = np.uint8(2 if size < 0 else 0)
    at += U64(1)
    if size < 0:
        return at
    return _put_piece(out, at, data, start, size)


@inlined
def _fits(data: Bytes, start: Number, size: Number) -> bool:
    return bool(start >= 0 and size <= data.shape[0] - start)


@kernel(lambda _prefix, rows, headers, *_: 60 * len(rows) + 30 * len(headers))
def encode_rows(  # noqa: PLR0912 - as above
    prefix: Bytes,
    rows: Longs,
    headers: Longs,
    keys: Bytes,
    values: Bytes,
    names: Bytes,
    contents: Bytes,
    faithful: int,
    out: Bytes,
    ends: Longs,
) -> int:
    """Write each row as a record, and where it ends; returns the last end. `prefix`: topic and partition, encoded.

    NO_ROOM when `out` is too small, or a row points outside of its data. Where `faithful` is 0, nulls that the schema
    cannot hold are written as empty.
    """
    at = U64(0)
    for row in range(rows.shape[0]):
        each = rows[row]
        first, end = each[HEADERS_FROM], each[HEADERS_END]
        if first < 0 or end > headers.shape[0]:
            return NO_ROOM
        if not (_fits(keys, each[KEY_AT], each[KEY_SIZE]) and _fits(values, each[VALUE_AT], each[VALUE_SIZE])):
            return NO_ROOM
        needed = prefix.shape[0] + _MOST_BEFORE_FIELDS + max(each[KEY_SIZE], 0) + max(each[VALUE_SIZE], 0)
        in_map = np.int64(0)
        for one in range(first, end):
            if not _fits(names, headers[one, NAME_AT], headers[one, NAME_SIZE]):
                return NO_ROOM
            if not _fits(contents, headers[one, HEADER_AT], headers[one, HEADER_SIZE]):
                return NO_ROOM
            needed += 2 * (_MOST_BEFORE_HEADER + headers[one, NAME_SIZE] + max(headers[one, HEADER_SIZE], 0))
            in_map += headers[one, IN_MAP]
        if needed > out.shape[0] - np.int64(at):
            return NO_ROOM
        copy(prefix, U64(0), U64(prefix.shape[0]), out, at)
        at = put_varint(out, at + U64(prefix.shape[0]), zigzag(each[OFFSET]))
        at = put_varint(out, at, zigzag(each[TIME]))
        at = _put_optional(out, at, keys, each[KEY_AT], each[KEY_SIZE])
        if faithful:
            at = _put_optional(out, at, values, each[VALUE_AT], each[VALUE_SIZE])
        else:
            at = _put_piece(out, at, values, each[VALUE_AT], each[VALUE_SIZE])
        out[at] = np.uint8(0 if in_map else 2)
        at += U64(1)
        if in_map:
            at = put_varint(out, at, zigzag(in_map))
            for one in range(first, end):
                if headers[one, IN_MAP]:
                    at = _put_piece(out, at, names, headers[one, NAME_AT], headers[one, NAME_SIZE])
                    at = _put_piece(out, at, contents, headers[one, HEADER_AT], headers[one, HEADER_SIZE])
            out[at] = np.uint8(0)
            at += U64(1)
        if faithful:
            at = put_varint(out, at, zigzag(each[KIND]))
            out[at] = np.uint8(0 if end > first else 2)
            at += U64(1)
            if end > first:
                at = put_varint(out, at, zigzag(end - first))
                for one in range(first, end):
                    at = _put_piece(out, at, names, headers[one, NAME_AT], headers[one, NAME_SIZE])
                    at = _put_optional(out, at, contents, headers[one, HEADER_AT], headers[one, HEADER_SIZE])
                out[at] = np.uint8(0)
                at += U64(1)
        ends[row] = np.int64(at)
    return int(np.int64(at))
