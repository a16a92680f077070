"""Kernel that reads the headers by which records of applications are checked.

    lk-t    u8 kind · u8 version
    lk-cp   u8 1 · 16 bytes application id · u32 history · i64 checkpoint id
    lk-src  u8 1 · u16 length, topic · i32 partition · i64 position · u32 index
    lk-in   as lk-src
    lk-low  i64

Numbers are big endian. Of several headers of one name the first counts.
"""

import numpy as np

from logkeep.formats.applications.msgpack_kernels import big_endian
from logkeep.formats.jit import inlined, kernel
from logkeep.formats.kafka.record_kernels import END_AT, HEADERS, HEADERS_AT, Bytes, Ints, Longs, Number, varint32

KIND, STAMP, HISTORY, CHECKPOINT = range(4)
SOURCE, SOURCE_PARTITION, SOURCE_POSITION, SOURCE_INDEX = range(4, 8)
INPUT, INPUT_PARTITION, INPUT_POSITION, INPUT_INDEX = range(8, 12)
LOW, COLUMNS = 12, 13

ABSENT, OURS, FOREIGN, UNREADABLE = 0, 1, 2, 3
"""Values of STAMP. SOURCE and INPUT have them too; the topic that is number n counts as OURS + (n << 2)."""
_STAMP_BYTES, _SOURCE_BYTES = 29, 19


@inlined
def _equal(data: Bytes, at: Number, other: Bytes, start: Number, size: Number) -> bool:
    for index in range(size):  # noqa: SIM110 - compiled
        if data[at + index] != other[start + index]:
            return False
    return True


@inlined
def _topic(data: Bytes, at: Number, size: Number, topics: Bytes, ends: Longs) -> int:
    """The number of a topic, -1 if it is none of these."""
    start = np.int64(0)
    for number in range(ends.shape[0]):
        if ends[number] - start == size and _equal(data, at, topics, start, size):
            return number
        start = ends[number]
    return -1


@inlined
def _read_source(data: Bytes, at: Number, size: Number, topics: Bytes, ends: Longs, mark: Longs, column: int) -> None:
    mark[column] = UNREADABLE
    if size < _SOURCE_BYTES or data[at] != 1:
        return
    length = big_endian(data, at + 1, 2)
    if size != _SOURCE_BYTES + length:
        return
    tail = at + 3 + length
    partition = big_endian(data, tail, 4)
    mark[column + 1] = partition if partition < 1 << 31 else partition - (1 << 32)
    mark[column + 2] = big_endian(data, tail + 4, 8)
    mark[column + 3] = big_endian(data, tail + 12, 4)
    topic = _topic(data, at + 3, length, topics, ends)
    mark[column] = FOREIGN if topic < 0 else OURS + (topic << 2)


@inlined
def _read_stamp(data: Bytes, at: Number, size: Number, application: Bytes, mark: Longs) -> None:
    mark[STAMP] = UNREADABLE
    if size != _STAMP_BYTES or data[at] != 1:
        return
    mark[STAMP] = OURS if _equal(data, at + 1, application, 0, 16) else FOREIGN
    mark[HISTORY] = big_endian(data, at + 17, 4)
    mark[CHECKPOINT] = big_endian(data, at + 21, 8)


@inlined
def _letters(data: Bytes, at: Number, size: Number) -> Number:
    """The letters after `lk-` as a number; 0 for another name."""
    if size < 4 or size > 6 or data[at] != 108 or data[at + 1] != 107 or data[at + 2] != 45:
        return np.int64(0)
    return big_endian(data, at + 3, size - 3)


_T, _CP, _SRC, _IN, _LOW = (int.from_bytes(name, "big") for name in (b"t", b"cp", b"src", b"in", b"low"))


@kernel(lambda _data, spans, *_: 60 * len(spans))
def read_marks(data: Bytes, spans: Ints, application: Bytes, topics: Bytes, ends: Longs, marks: Longs) -> None:
    """Fill one row per record. The records come from `decode_batches`, which checked every length.

    `topics` are the names of topics back to back, `ends` where each ends; `application` has 16 bytes.
    """
    for row in range(spans.shape[0]):
        mark = marks[row]
        mark[:] = 0
        mark[LOW] = -1
        at: Number = np.int64(spans[row, HEADERS_AT])
        end = np.int64(spans[row, END_AT])
        for _ in range(spans[row, HEADERS]):
            size, at = varint32(data, at, end)
            if at < 0 or size < 0 or size > end - at:
                break
            name = _letters(data, at, size)
            size, at = varint32(data, at + size, end)
            if at < 0 or size > end - at:
                break
            if name == _T and mark[KIND] == 0:
                mark[KIND] = data[at] if size == 2 and data[at + 1] == 1 else -1
            elif name == _CP and mark[STAMP] == 0:
                _read_stamp(data, at, size, application, mark)
            elif name == _SRC and mark[SOURCE] == 0:
                _read_source(data, at, size, topics, ends, mark, SOURCE)
            elif name == _IN and mark[INPUT] == 0:
                _read_source(data, at, size, topics, ends, mark, INPUT)
            elif name == _LOW and mark[LOW] == -1 and size == 8:
                mark[LOW] = big_endian(data, at, 8)
            at += max(size, 0)
