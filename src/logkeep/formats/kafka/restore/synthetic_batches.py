"""Batches that no producer sent: abort markers, empty batches, the first part of a batch, and fillers.

All have a correct CRC-32C; brokers and consumers read them like any other. Fillers are records that only take up
offsets. A filler has the key `logkeep`, no value, no headers and no time (-1). It has a key because compacted topics
refuse records without one. Batches of fillers are compressed with zstd and hold up to a million records, less than a
byte each. Their bytes depend on the number of records alone.
"""

import struct
from collections.abc import Iterator
from functools import lru_cache

import google_crc32c
import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.kafka import record_kernels as kernels
from logkeep.formats.kafka.batches import (
    APPEND_TIME,
    CODEC_MASK,
    CODECS,
    CONTROL,
    CRC_FROM,
    HEADER,
    HEADER_BYTES,
    OVERHEAD_BYTES,
    TRANSACTIONAL,
    Batches,
    Bytes,
)
from logkeep.formats.kafka.buried_offsets import BuriedOffsets
from logkeep.formats.kafka.compression import Unreadable, pack, sections
from logkeep.formats.kafka.encode import encode
from logkeep.formats.kafka.producer_stamp import Outgoing
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode

_CHECKED = struct.Struct(">hiqqqhii")
"""Attributes, last offset delta, base and largest time, producer, its epoch, sequence, records."""
_OUTSIDE = struct.Struct(">qiibI")
"""Base offset, length, leader epoch, version, CRC."""
_ABORT = struct.Struct(">hh").pack(0, 0)
"""The key of a marker: its version, and 0 for an abort."""
_COORDINATOR = struct.Struct(">hi").pack(0, 0)
"""The value of a marker: its version, and the lowest possible epoch of a coordinator."""
_MOST_DELTA = 2**31 - 1
MOST_RECORDS = 1_000_000
KEY = b"logkeep"
_BODY = bytes([2 * len(KEY)]) + KEY + b"\x01\x00"
"""The key with its length, the length of a null value, no headers."""
_NO_TIME = -1


def abort_marker(offset: int, producer: int, epoch: int, time_ms: int) -> bytes:
    """The control batch that aborts a producer's transaction."""
    fields = bytes([0, 0, 0, 2 * len(_ABORT)]) + _ABORT + bytes([2 * len(_COORDINATOR)]) + _COORDINATOR + b"\0"
    record = bytes([2 * len(fields)]) + fields
    checked = _CHECKED.pack(TRANSACTIONAL | CONTROL, 0, time_ms, time_ms, producer, epoch, -1, 1)
    return _with_header(offset, checked + record)


def empty_batches(start: int, end: int) -> bytes:
    """Batches without records for the offsets `[start, end)`, as compaction leaves them."""
    made = bytearray()
    while start < end:
        delta = min(end - start - 1, _MOST_DELTA)
        made += _with_header(start, _CHECKED.pack(0, delta, -1, -1, -1, -1, -1, 0))
        start += delta + 1
    return bytes(made)


def cut_batch(buffer: Bytes, batch: Batches, end: int) -> bytes:
    """A batch with only those of its records that are before `end`; empty if there are none.

    The records keep their bytes and are compressed again with the same codec. Raises Damaged if they are unreadable.
    """
    if not batch.headers["records"][0]:
        return b""
    records, plain, start = _decode_one(buffer, batch)
    kept = records.within(0, end)
    if not len(kept):
        return b""
    last_delta = end - 1 - int(batch.headers[0]["base_offset"])
    return _packed_again(buffer, batch, kept, plain[start : int(kept.spans[-1, kernels.END_AT])], last_delta)


def thinned_batch(buffer: Bytes, batch: Batches, buried: BuriedOffsets) -> bytes:
    """A batch without its buried records, whose offsets stay holes, as after compaction; empty if none is left.

    The records keep their bytes and are compressed again with the same codec. Raises Damaged if they are unreadable.
    """
    header = batch.headers[0]
    if not header["records"] or int(header["attributes"]) & CONTROL:
        return bytes(buffer[batch.start : batch.end])
    records, plain, start = _decode_one(buffer, batch)
    left = ~buried.hides(records.offsets)
    if not left.any():
        return b""
    if left.all():
        return bytes(buffer[batch.start : batch.end])
    ends = records.spans[:, kernels.END_AT].astype(np.int64)
    starts = np.concatenate(([start], ends[:-1]))
    section = np.concatenate([plain[a:b] for a, b in zip(starts[left].tolist(), ends[left].tolist(), strict=True)])
    return _packed_again(buffer, batch, records.chosen(left), section, int(header["last_offset_delta"]))


def _packed_again(buffer: Bytes, batch: Batches, kept: RecordColumns, section: kernels.Bytes, last_delta: int) -> bytes:
    """A batch with these of its records, whose bytes are `section`."""
    header, position = batch.headers[0], batch.start
    attributes = int(header["attributes"])
    checked = bytearray(buffer[position + CRC_FROM : position + HEADER_BYTES])
    latest = int(header["max_time_ms"] if attributes & APPEND_TIME else kept.times_ms.max())
    struct.pack_into(">i", checked, 2, last_delta)
    struct.pack_into(">q", checked, 14, latest)
    struct.pack_into(">i", checked, 36, len(kept))
    packed = pack(attributes & CODEC_MASK, np.ascontiguousarray(section))
    return _with_header(int(header["base_offset"]), bytes(checked) + packed.tobytes())


def _decode_one(buffer: Bytes, batch: Batches) -> tuple[RecordColumns, kernels.Bytes, int]:
    """The records of one batch, its decompressed bytes, and the position of the first record in them."""
    part = next(sections(buffer, batch))
    found = next(decode(buffer, batch))
    if isinstance(part, Unreadable):
        raise Damaged(f"a batch cannot be cut: {part.reason}")
    if isinstance(found, Malformed):
        raise Damaged(f"a batch cannot be cut: {found}")
    return found, part.data, int(part.starts[0])


def _with_header(base: int, checked: bytes) -> bytes:
    length = _OUTSIDE.size - OVERHEAD_BYTES + len(checked)
    return _OUTSIDE.pack(base, length, 0, 2, google_crc32c.value(checked)) + checked


def filler_batches(count: int, most: int = MOST_RECORDS) -> Iterator[Outgoing]:
    """`count` fillers in batches of up to `most` records, one batch at a time, to be stamped like others."""
    if not 0 < most <= MOST_RECORDS:
        raise ValueError(f"a batch of {most} fillers")
    while count > 0:
        records = min(count, most)
        yield _outgoing(_filler(records), records)
        count -= records


def _outgoing(batch: bytes, records: int) -> Outgoing:
    buffer = np.frombuffer(batch, np.uint8)
    one, none = np.array([records]), np.array([-1])
    return Outgoing(buffer, np.array([0]), np.array([len(batch)]), one, none, np.empty((0, 2), np.int64))


@lru_cache(maxsize=2)
def _filler(count: int) -> bytes:
    """A batch of `count` fillers; the last two are cached."""
    spans = np.zeros((count, kernels.SPAN_COLUMNS), np.int32)
    spans[:, kernels.END_AT] = len(_BODY)
    header = np.zeros(1, HEADER)
    header["attributes"], header["length"] = CODECS.index("zstd"), 2**31 - 1  # so that it is never split
    source = Batches(header, np.zeros(1, np.int64))
    times = np.full(count, _NO_TIME, np.int64)
    records = RecordColumns(np.frombuffer(_BODY, np.uint8), source, np.arange(count), times, spans)
    return encode(records, np.array([[0, count]])).buffer.tobytes()
