"""Kernels that read events and acknowledgements: what they write, send and acknowledge, as rows.

An event is MessagePack `[source position, writes, sends, reply]`, with writes `[key, value | nil]` and sends
`[name, key, value]`; an acknowledgement is `[[position, index]…]`. `count_events` and `count_acks` find how many rows
there are; the others fill them.

A row of a write has a 128-bit hash of its key, the position of its event, whether it deletes the key, the position that
it reports of another system (-1: it reports none), where its key is, and SHA-256 of `u32 length of the key · key ·
value`, by which the digest of a state is defined. Numbers in rows are unsigned; -1 is their largest.
"""

import numpy as np
import numpy.typing as npt

from logkeep.formats.applications.msgpack_kernels import array, integer, text
from logkeep.formats.applications.sha256_kernels import sha256
from logkeep.formats.compare.digest_kernels import xxh64
from logkeep.formats.jit import inlined, inlined_or, kernel
from logkeep.formats.kafka.record_kernels import VALUE_AT, VALUE_SIZE, Bytes, Ints, Longs, Number

Words = npt.NDArray[np.uint64]
W = np.uint64

GOOD, SOURCE_AT, WRITES, WRITES_FROM, SENDS, SENDS_FROM = range(6)
EVENT_COLUMNS = 6
KEY_A, KEY_B, AT, DELETED, EXTERNAL, NAME_AT, NAME_SIZE, SHA = range(8)
WRITE_COLUMNS = SHA + 4
RECEIVER, SENT_BY, INDEX = range(3)
SEND_COLUMNS = 3
_RESERVED = np.frombuffer(b"lk/external/", np.uint8)
_PADDING = 136


def _work(_data: Bytes, spans: Ints, rows: Longs, *_: object) -> int:
    return 60 * len(rows) + int(np.maximum(spans[rows, VALUE_SIZE], 0).sum(dtype=np.int64)) // 4


@inlined
def _skip_pairs(data: Bytes, at: Number, end: Number, count: Number, size: Number) -> Number:
    """The byte after `count` arrays of `size` texts; -1 if there is something else."""
    for _ in range(count):
        found, at = array(data, at, end)
        if at < 0 or found != size:
            return np.int64(-1)
        for _ in range(size):
            length, at = text(data, at, end)
            if at < 0:
                return np.int64(-1)
            at += max(length, 0)
    return at


@kernel(_work)
def count_events(data: Bytes, spans: Ints, rows: Longs, out: Longs) -> None:
    """For each of the records `rows` whether it is an event, its source, and how much it writes and sends."""
    for row in range(rows.shape[0]):
        out[row, :] = 0
        at: Number = np.int64(spans[rows[row], VALUE_AT])
        end = at + max(np.int64(spans[rows[row], VALUE_SIZE]), 0)
        fields, at = array(data, at, end)
        if at < 0 or fields != 4:
            continue
        source, at = integer(data, at, end)
        writes, at = array(data, at, end)
        if at < 0:
            continue
        writes_from = at
        at = _skip_pairs(data, at, end, writes, 2)
        sends, at = array(data, at, end)
        if at < 0:
            continue
        sends_from = at
        if _skip_pairs(data, at, end, sends, 3) < 0:
            continue
        out[row, GOOD], out[row, SOURCE_AT] = 1, source
        out[row, WRITES], out[row, WRITES_FROM] = writes, writes_from
        out[row, SENDS], out[row, SENDS_FROM] = sends, sends_from


@inlined
def _reported(data: Bytes, key_at: Number, key_size: Number, value_at: Number, value_size: Number) -> Number:
    """The position of another system that a write reports; -1 if its key is an ordinary one."""
    if key_size <= _RESERVED.shape[0] or value_size < 1:
        return np.int64(-1)
    for index in range(_RESERVED.shape[0]):
        if data[key_at + index] != _RESERVED[index]:
            return np.int64(-1)
    number, after = integer(data, value_at, value_at + value_size)
    return number if after >= 0 else np.int64(-1)


@kernel(lambda data, _offsets, _events, out, *_: 150 * len(out) + len(data) // 8)
def read_writes(data: Bytes, offsets: Longs, events: Longs, out: Words, seed_a: np.uint64, seed_b: np.uint64) -> None:
    """Fill a row for each write of `events`, which `count_events` filled; `offsets` are their positions."""
    room = np.empty(256, np.uint8)
    w, h = np.empty(64, np.uint64), np.empty(8, np.uint64)
    end = np.int64(data.shape[0])
    write = 0
    for row in range(events.shape[0]):
        at: Number = events[row, WRITES_FROM]
        for _ in range(events[row, WRITES]):
            _, at = array(data, at, end)
            key_size, key_at = text(data, at, end)
            key_size = max(key_size, 0)
            size, value_at = text(data, key_at + key_size, end)
            value_size = max(size, 0)
            if key_at < 0 or value_at < 0:
                return
            at = value_at + value_size
            if 4 + key_size + value_size + _PADDING > room.shape[0]:
                room = np.empty(2 * (4 + key_size + value_size + _PADDING), np.uint8)
            line = out[write]
            line[KEY_A], line[KEY_B] = xxh64(data, key_at, key_size, seed_a), xxh64(data, key_at, key_size, seed_b)
            line[AT], line[DELETED] = W(offsets[row]), W(1 if size < 0 else 0)
            line[EXTERNAL] = W(_reported(data, key_at, key_size, value_at, value_size))
            line[NAME_AT], line[NAME_SIZE] = W(key_at), W(key_size)
            if size >= 0:
                for index in range(4):
                    room[index] = np.uint8((key_size >> (24 - 8 * index)) & 255)
                room[4 : 4 + key_size] = data[key_at : key_at + key_size]
                room[4 + key_size : 4 + key_size + value_size] = data[value_at : value_at + value_size]
                sha256(room, 4 + key_size + value_size, w, h, line[SHA : SHA + 4])
            else:
                line[SHA : SHA + 4] = W(0)
            write += 1


def _zlib_crc32(data: Bytes, at: Number, size: Number, table: Words) -> np.uint64:  # noqa: ARG001 - as below
    import zlib  # noqa: PLC0415 - only uncompiled

    return W(zlib.crc32(data[int(at) : int(at) + int(size)].tobytes()))


@inlined_or(_zlib_crc32)
def _crc32(data: Bytes, at: Number, size: Number, table: Words) -> np.uint64:
    crc = W(0xFFFF_FFFF)
    for index in range(at, at + size):
        crc = table[(crc ^ W(data[index])) & W(255)] ^ (crc >> W(8))
    return crc ^ W(0xFFFF_FFFF)


def _crc_table() -> Words:
    table = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        table = np.where(table & W(1), (table >> W(1)) ^ W(0xEDB8_8320), table >> W(1))
    return table


_TABLE = _crc_table()


@kernel(lambda _data, _events, _partitions, out: 30 * len(out))
def read_sends(data: Bytes, events: Longs, partitions: int, out: Longs) -> None:
    """Fill a row for each message of `events`: its receiver by the key, the position of its command, its index."""
    end = np.int64(data.shape[0])
    sent = 0
    for row in range(events.shape[0]):
        at: Number = events[row, SENDS_FROM]
        for index in range(events[row, SENDS]):
            _, at = array(data, at, end)
            size, at = text(data, at, end)
            key_size, key_at = text(data, at + max(size, 0), end)
            key_size = max(key_size, 0)
            size, value_at = text(data, key_at + key_size, end)
            if key_at < 0 or value_at < 0:
                return
            at = value_at + max(size, 0)
            out[sent, RECEIVER] = np.int64(_crc32(data, key_at, key_size, _TABLE) % W(partitions))
            out[sent, SENT_BY], out[sent, INDEX] = events[row, SOURCE_AT], index
            sent += 1


@kernel(_work)
def count_acks(data: Bytes, spans: Ints, rows: Longs, counts: Longs) -> None:
    """How many messages each of the records `rows` acknowledges; -1 for one that cannot be read."""
    for row in range(rows.shape[0]):
        at: Number = np.int64(spans[rows[row], VALUE_AT])
        end = at + max(np.int64(spans[rows[row], VALUE_SIZE]), 0)
        count, at = array(data, at, end)
        for _ in range(count):
            _, at = array(data, at, end)
            _, at = integer(data, at, end)
            _, at = integer(data, at, end)
            if at < 0:
                break
        counts[row] = count if at >= 0 else -1


@kernel(lambda _data, _spans, _rows, _counts, out: 20 * len(out))
def read_acks(data: Bytes, spans: Ints, rows: Longs, counts: Longs, out: Longs) -> None:
    """Fill a row for each: which of `rows` it is in, the position and index of the message."""
    line = 0
    for row in range(rows.shape[0]):
        at: Number = np.int64(spans[rows[row], VALUE_AT])
        end = at + max(np.int64(spans[rows[row], VALUE_SIZE]), 0)
        _, at = array(data, at, end)
        for _ in range(counts[row]):
            _, at = array(data, at, end)
            position, at = integer(data, at, end)
            index, at = integer(data, at, end)
            if at < 0:
                return
            out[line, 0], out[line, 1], out[line, 2] = row, position, index
            line += 1
