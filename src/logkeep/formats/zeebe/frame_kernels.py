"""Kernels that walk the frames of a segment and the records in them.

A frame: 1 (one byte; 0 = no more frames), SBE header (12, 1, 7, version), CRC-32C (8 bytes), length (4), then that many
bytes, which the CRC covers: SBE header (…, 2, 7, …), index (8), lowest position (8; -1 if only Raft uses the entry),
length (4), entry.

An entry: SBE header (9, 1, 8, …), term (8), type (1): 0 records, 1 a configuration, 2 the first entry of a leader.
Records: SBE header, lowest and highest position (8 each), length (4), batch.

A record of a batch: length of the record (4), zeros (8), version 1 (2), flags (1), reserved (1), position (8), position
of its source (8), key (8), time in ms (8), length of the metadata (4), metadata, value. The next record begins at the
next multiple of 8.

Metadata: SBE header (40, 200, 0, …), type of the record (1), stream of the request (4), its id (8; all ones: none),
version of the protocol (2), value type (1), intent (1), and more. Numbers are little-endian.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from logkeep.formats.jit import inlined, inlined_or, kernel

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Number = Any
"""64 bits. Which of numpy's or Python's types it has makes no difference to compiled code."""

FRAME_AT, PAYLOAD_AT, PAYLOAD_SIZE, FRAME_CRC = range(4)
FRAME_COLUMNS = 4
FRAME_HEAD = 21

POSITION, SOURCE, KEY, TIME, RECORD_TYPE, VALUE_TYPE, INTENT = range(7)
FLAGS, REQUESTED, VALUE_AT, VALUE_SIZE, FRAME_END, TERM = range(7, 13)
RECORD_COLUMNS = 13

LAST_INDEX, LAST_POSITION, LAST_TERM, FIRST_INDEX, FIRST_POSITION, FIRST_TERM, RECORDS, ODD_FLAGS, FIRST_ODD = range(9)
FACTS = 9
"""What is known of the frames walked so far; -1: nothing yet. ODD_FLAGS counts records with flags that no healthy log
has, FIRST_ODD is the position of the first."""

MORE, END, BAD_START, BAD_HEADER, BAD_LENGTH = range(5)
"""Why a walk over frames ended. MORE: the next frame is not complete in the buffer."""
GOOD, BAD_PAYLOAD, BAD_INDEX, BAD_ENTRY, BAD_TERM, BAD_LOWEST, BAD_RECORD, BAD_METADATA, BAD_POSITION, FULL = range(10)
"""What is wrong with an entry."""

SMALLEST_RECORD = 77
"""Its head, and metadata up to the intent."""
_CHECKPOINT = 254
_ALL_ONES = 0xFFFFFFFFFFFFFFFF

U64 = np.uint64
I64 = np.int64


def _read_little_endian(data: Bytes, at: Number, size: int) -> Number:
    return U64(int.from_bytes(data[int(at) : int(at) + size].tobytes(), "little"))


@inlined_or(_read_little_endian)
def little_endian(data: Bytes, at: Number, size: int) -> Number:
    value = U64(0)
    for index in range(size):
        value |= U64(data[U64(at + index)]) << U64(8 * index)
    return value


@inlined
def number16(data: Bytes, at: Number) -> Number:
    return I64(little_endian(data, at, 2))


@inlined
def int32(data: Bytes, at: Number) -> Number:
    return I64(np.int32(np.uint32(little_endian(data, at, 4))))


@inlined
def int64(data: Bytes, at: Number) -> Number:
    return I64(little_endian(data, at, 8))


def _frames_us(_data: Bytes, at: int, end: int, *_: object) -> int:
    """10 us for a frame of 1,000 bytes."""
    return (end - at) // 100


@kernel(_frames_us)
def walk_frames(  # noqa: PLR0911 - a compiled function has no exceptions to raise: each check returns its answer
    data: Bytes, at: int, end: int, largest: int, rows: Longs
) -> tuple[int, int, int, int]:
    """Find frames from `at` on by their heads alone. No payload may have more than `largest` bytes.

    Returns why it stopped, where, how many bytes from there on a complete frame has, and how many rows were filled.
    """
    row = 0
    while True:
        if row == rows.shape[0] or end - at < 1:
            return MORE, at, FRAME_HEAD, row
        if data[U64(at)] == 0:
            return END, at, 0, row
        if data[U64(at)] != 1:
            return BAD_START, at, 0, row
        if end - at < FRAME_HEAD:
            return MORE, at, FRAME_HEAD, row
        version = number16(data, at + 7)
        ids = number16(data, at + 1) == 12 and number16(data, at + 3) == 1 and number16(data, at + 5) == 7
        if not ids or version < 1 or version > 2:
            return BAD_HEADER, at, 0, row
        size = int32(data, at + 17)
        if size < 1 or size > largest:
            return BAD_LENGTH, at, 0, row
        if end - at < FRAME_HEAD + size:
            return MORE, at, FRAME_HEAD + size, row
        found = rows[U64(row)]
        found[FRAME_AT], found[PAYLOAD_AT], found[PAYLOAD_SIZE] = at, at + FRAME_HEAD, size
        found[FRAME_CRC] = int64(data, at + 9)
        row += 1
        at += FRAME_HEAD + size


@inlined
def is_wanted(record_type: Number, value_type: Number, intent: Number, source: Number, requested: Number) -> bool:
    """Whether checks need the record: checkpoints, commands that another partition may have sent, what caused them."""
    if value_type == _CHECKPOINT:
        return True
    if record_type == 1:
        return bool(source == -1 and requested == 0)
    if record_type != 0:
        return False
    if value_type == 12:
        return bool(intent in (0, 4))
    if value_type == 11:
        return bool(intent in (1, 8))
    return bool(value_type == 33 and intent == 1)


@inlined
def walk_batch(  # noqa: PLR0911 - as above
    data: Bytes, at: Number, end: Number, frame_end: Number, facts: Longs, rows: Longs, row: Number, every: Number
) -> tuple[Number, Number]:
    """All records of a batch. Positions continue those of `facts`. Returns what is wrong, and the next free row."""
    while at < end:
        if end - at < SMALLEST_RECORD:
            return BAD_RECORD, row
        size = int32(data, at)
        if size < SMALLEST_RECORD or size > end - at or number16(data, at + 12) != 1:
            return BAD_RECORD, row
        position, source, extra = int64(data, at + 16), int64(data, at + 24), int32(data, at + 48)
        if position < 0 or position != facts[LAST_POSITION] + 1:
            return BAD_POSITION, row
        meta = at + 52
        if extra < 25 or extra > size - 52:
            return BAD_RECORD, row
        block = number16(data, meta)
        known = number16(data, meta + 2) == 200 and number16(data, meta + 4) == 0
        if not known or block < 17 or 8 + block > extra:
            return BAD_METADATA, row
        record_type, flags = I64(data[U64(meta + 8)]), I64(data[U64(at + 14)])
        value_type, intent = I64(data[U64(meta + 23)]), I64(data[U64(meta + 24)])
        requested = I64(little_endian(data, meta + 13, 8) != U64(_ALL_ONES))
        facts[LAST_POSITION] = position
        facts[RECORDS] += 1
        if flags > 1 or (flags != 0 and record_type == 1 and source == -1):
            if facts[ODD_FLAGS] == 0:
                facts[FIRST_ODD] = position
            facts[ODD_FLAGS] += 1
        if every != 0 or is_wanted(record_type, value_type, intent, source, requested):
            if row == rows.shape[0]:
                return FULL, row
            found = rows[U64(row)]
            found[POSITION], found[SOURCE], found[KEY] = position, source, int64(data, at + 32)
            found[TIME], found[RECORD_TYPE], found[VALUE_TYPE] = int64(data, at + 40), record_type, value_type
            found[INTENT], found[FLAGS], found[REQUESTED] = intent, flags, requested
            found[VALUE_AT], found[VALUE_SIZE] = meta + extra, size - 52 - extra
            found[FRAME_END], found[TERM] = frame_end, facts[LAST_TERM]
            row += 1
        at += (size + 7) // 8 * 8
    return GOOD, row


def _entries_us(_data: Bytes, frames: Longs, *_: object) -> int:
    """60 us for an entry with a record of 1,000 bytes."""
    return len(frames) * 60


@kernel(_entries_us)
def walk_entries(  # noqa: PLR0911, PLR0912 - as above
    data: Bytes, frames: Longs, facts: Longs, rows: Longs, every: int
) -> tuple[int, int, int]:
    """Check the entries of frames whose CRC is right, and list their records: `every` one, or those that checks need.

    Returns what is wrong, with which frame, and how many rows were filled.
    """
    row: Number = I64(0)
    for number in range(frames.shape[0]):
        at, size = frames[U64(number), PAYLOAD_AT], frames[U64(number), PAYLOAD_SIZE]
        end = at + size
        if size < 28:
            return BAD_PAYLOAD, number, row
        block = number16(data, at)
        if block < 16 or size < 12 + block or number16(data, at + 2) != 2 or number16(data, at + 4) != 7:
            return BAD_PAYLOAD, number, row
        index, lowest, entry = int64(data, at + 8), int64(data, at + 16), at + 12 + block
        if int32(data, at + 8 + block) != end - entry:
            return BAD_PAYLOAD, number, row
        if index < 1 or (facts[LAST_INDEX] >= 0 and index != facts[LAST_INDEX] + 1):
            return BAD_INDEX, number, row
        if end - entry < 17:
            return BAD_ENTRY, number, row
        block = number16(data, entry)
        if block < 9 or end - entry < 8 + block or number16(data, entry + 2) != 1 or number16(data, entry + 4) != 8:
            return BAD_ENTRY, number, row
        term, kind = int64(data, entry + 8), data[U64(entry + 16)]
        if term < 0 or term < facts[LAST_TERM]:
            return BAD_TERM, number, row
        if facts[LAST_INDEX] < 0:
            facts[FIRST_INDEX] = index
        if facts[FIRST_TERM] < 0:
            facts[FIRST_TERM] = term
        facts[LAST_INDEX], facts[LAST_TERM] = index, term
        if kind > 2:
            return BAD_ENTRY, number, row
        if kind != 0:
            continue
        at = entry + 8 + block
        if end - at < 28:
            return BAD_ENTRY, number, row
        block = number16(data, at)
        if block < 16 or end - at < 12 + block:
            return BAD_ENTRY, number, row
        first, last, batch = int64(data, at + 8), int64(data, at + 16), at + 12 + block
        if int32(data, at + 8 + block) != end - batch or last < first or first < 0 or batch == end:
            return BAD_ENTRY, number, row
        if first != lowest:
            return BAD_LOWEST, number, row
        if facts[LAST_POSITION] < 0:
            facts[FIRST_POSITION], facts[LAST_POSITION] = first, first - 1
        status, row = walk_batch(data, batch, end, end, facts, rows, row, every)
        if status != GOOD:
            return status, number, row
        if facts[LAST_POSITION] != last:
            return BAD_POSITION, number, row
    return GOOD, frames.shape[0], row
