"""Schema ids at the beginning of keys and values, against a judge that reads one record after another."""

import random
import struct

import numpy as np

from logkeep.formats.kafka.batches import walk
from logkeep.formats.kafka.records import RecordColumns, decode
from logkeep.formats.schemas.frames import NO_BYTES, NO_FRAME, RecordSide, schema_ids, sizes
from tests.support.kafka.handmade_batches import Batch


def _varint(number: int) -> bytes:
    number, out = (number << 1) ^ (number >> 63), b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def _part(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _columns(rows: list[tuple[bytes | None, bytes | None]]) -> RecordColumns:
    payload = b""
    for at, (key, value) in enumerate(rows):
        body = b"\0" + _varint(0) + _varint(at) + _part(key) + _part(value) + _varint(0)
        payload += _varint(len(body)) + body
    data = Batch(0, len(rows) - 1, len(rows), payload=payload).encode()
    (found,) = decode(data, walk(data).batches)
    assert isinstance(found, RecordColumns)
    return found


def _judge(data: bytes | None) -> int:
    if data is None:
        return NO_BYTES
    if len(data) < 5 or data[0] != 0:
        return NO_FRAME
    if number := struct.unpack_from(">I", data, 1)[0]:
        return int(number)
    return (struct.unpack_from(">Q", data, 1)[0] if len(data) >= 9 else 0) or NO_FRAME


def _random_bytes(rng: random.Random) -> bytes | None:
    kind = rng.randrange(6)
    if kind == 0:
        return None
    if kind == 1:
        return rng.randbytes(rng.randrange(12))
    if kind == 2:
        return b"\0" * rng.randrange(12)
    if kind == 3:
        return b"\0" + struct.pack(">Q", rng.randrange(1 << 20)) + rng.randbytes(rng.randrange(4))
    return b"\0" + struct.pack(">I", rng.choice((0, 1, 77, 2**32 - 1))) + rng.randbytes(rng.randrange(4))


def test_random_records() -> None:
    rng = random.Random(18)
    rows = [(_random_bytes(rng), _random_bytes(rng)) for _ in range(3000)]
    columns = _columns(rows)
    for side, place in ((RecordSide.KEY, 0), (RecordSide.VALUE, 1)):
        assert schema_ids(columns, side).tolist() == [_judge(row[place]) for row in rows]
        assert sizes(columns, side).tolist() == [-1 if row[place] is None else len(row[place] or b"") for row in rows]


def test_some_records_of_a_batch() -> None:
    columns = _columns([(None, b"\0" + struct.pack(">I", n) + b"x") for n in range(1, 9)])
    kept = columns.chosen(np.arange(8) % 2 == 1)
    assert schema_ids(kept, RecordSide.VALUE).tolist() == [2, 4, 6, 8]
    assert schema_ids(kept, RecordSide.KEY).tolist() == [NO_BYTES] * 4
