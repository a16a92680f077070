"""Kafka's log format, RecordBatch version 2: finds batches and checks their headers and CRCs.

A log is a sequence of batches without gaps. All numbers are big-endian:

    bytes   field              why it matters here
     0..7   base offset        offset of the first record; compaction keeps it even if that record is gone
     8..11  length             of what follows, so the next batch begins at 12 + length
    12..15  leader epoch       written by the leader; distinguishes histories of a log
    16      magic              2; versions 0 and 1 have the same byte here and another layout after it
    17..20  CRC-32C            of bytes 21 to the end: the two fields a broker assigns are outside
    21..22  attributes         bits 0-2 codec, 3 append time, 4 transactional, 5 control, 6 delete horizon
    23..26  last offset delta  base + this = last offset, also kept by compaction
    27..34  base timestamp     of the first record; under bit 6 the delete horizon instead
    35..42  max timestamp      of all records; under bit 3 the append time of all of them
    43..56  producer id, its epoch, base sequence
    57..60  record count       smaller than delta + 1 after compaction; 0 in a batch kept for its producer's state
    61..    records            compressed as one block

`walk` finds the complete batches of a buffer: one step of Python per batch, never per record; checks work on columns.
It distinguishes a tail that is cut off (a full reply, a crash) from damage, and damage from old formats. It does not
check record bytes: `first_broken` does, by the CRC.
"""

import struct
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import google_crc32c
import numpy as np
import numpy.typing as npt

HEADER_BYTES = 61
OVERHEAD_BYTES = 12
"""Base offset and length: what the length does not count."""
CRC_FROM = 21
_MAGIC_AT = 16
_MIN_RECORD_BYTES = 7
_MAX_OFFSET = 2**63 - 1

CODEC_MASK, APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
XERIAL_MAGIC = b"\x82SNAPPY\x00"
"""How Java's library begins its framing of snappy blocks."""
SNAPPY_RATIO = 22
"""A block of snappy unpacks to less than this many times its size: three bytes copy 64 at most. It states its length,
and memory is allocated by that."""

HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_time_ms", ">i8"),
        ("max_time_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("records", ">i4"),
    ]
)
_COLUMNS = np.arange(HEADER_BYTES)
_length_at = struct.Struct(">i").unpack_from

Bytes = memoryview | bytes | bytearray
Headers = npt.NDArray[np.void]
Longs = npt.NDArray[np.int64]


class WalkEnd(StrEnum):
    """Why a walk ended."""

    END = "end"
    TORN = "torn"
    DAMAGED = "damaged"
    OLD_FORMAT = "old-format"


@dataclass(frozen=True)
class Batches:
    """Complete batches in one buffer, as columns; each column is made once."""

    headers: Headers
    positions: Longs
    """The position of each in the buffer."""

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, chosen: slice) -> "Batches":
        if chosen.indices(len(self)) == (0, len(self), 1):
            return self  # with its cached columns
        return Batches(self.headers[chosen], self.positions[chosen])

    @cached_property
    def base_offsets(self) -> Longs:
        return self.headers["base_offset"].astype(np.int64)

    @cached_property
    def last_offsets(self) -> Longs:
        return self.base_offsets + self.headers["last_offset_delta"].astype(np.int64)

    @cached_property
    def sizes(self) -> Longs:
        """Total size of each, in bytes."""
        return self.headers["length"].astype(np.int64) + OVERHEAD_BYTES

    @property
    def start(self) -> int:
        return int(self.positions[0]) if len(self) else 0

    @property
    def end(self) -> int:
        """The byte after the last batch."""
        return int(self.positions[-1]) + int(self.sizes[-1]) if len(self) else 0


@dataclass(frozen=True)
class Walk:
    """The good batches at the beginning of a buffer, and why the walk ended there."""

    batches: Batches
    stop: WalkEnd
    stopped_at: int
    """The byte after the last good batch."""
    reason: str = ""


def walk(buffer: Bytes, after: int = -1) -> Walk:
    """All complete batches of a buffer with rising offsets greater than `after`. Never raises."""
    positions, at = _positions(buffer)
    batches = _gather(buffer, positions)
    wrong = _first_wrong(batches, after)
    if wrong is not None:
        index, reason = wrong
        return _stopped(buffer, batches[:index], int(positions[index]), reason)
    if at == len(buffer):
        return Walk(batches, WalkEnd.END, at)
    if _too_short(buffer, at):
        return _stopped(buffer, batches, at, "a batch length is impossible")
    if len(buffer) - at > _MAGIC_AT and buffer[at + _MAGIC_AT] != 2:
        return _stopped(buffer, batches, at, "a batch has an unknown version")
    return Walk(batches, WalkEnd.TORN, at)


def first_broken(buffer: Bytes, batches: Batches) -> int | None:
    """The index of the first batch with a wrong CRC-32C, or None. Copies nothing."""
    plain = np.frombuffer(buffer, np.uint8)
    crc_of = google_crc32c.value
    starts, ends = batches.positions.tolist(), (batches.positions + batches.sizes).tolist()
    for index, (start, end, crc) in enumerate(zip(starts, ends, batches.headers["crc"].tolist(), strict=True)):
        if crc_of(plain[start + CRC_FROM : end]) != crc:
            return index
    return None


def _positions(buffer: Bytes) -> tuple[Longs, int]:
    """Positions of complete batches, by their lengths alone, and the byte after the last one."""
    found: list[int] = []
    at, size = 0, len(buffer)
    while at + OVERHEAD_BYTES <= size:
        end = at + OVERHEAD_BYTES + _length_at(buffer, at + 8)[0]
        if end > size or end - at < HEADER_BYTES:
            break
        found.append(at)
        at = end
    return np.array(found, np.int64), at


def _too_short(buffer: Bytes, at: int) -> bool:
    """Whether the length there is smaller than a header: a torn batch has a possible length."""
    return len(buffer) - at >= OVERHEAD_BYTES and _length_at(buffer, at + 8)[0] < HEADER_BYTES - OVERHEAD_BYTES


def _gather(buffer: Bytes, positions: Longs) -> Batches:
    plain = np.frombuffer(buffer, np.uint8)
    rows = plain[positions[:, None] + _COLUMNS]
    return Batches(np.ascontiguousarray(rows).view(HEADER).reshape(-1), positions)


def _first_wrong(batches: Batches, after: int) -> tuple[int, str] | None:
    """The first batch with an impossible header, and why."""
    headers, bases = batches.headers, batches.base_offsets
    deltas, counts = headers["last_offset_delta"].astype(np.int64), headers["records"].astype(np.int64)
    plain = (headers["attributes"] & CODEC_MASK) == 0
    room = (headers["length"].astype(np.int64) - (HEADER_BYTES - OVERHEAD_BYTES)) // _MIN_RECORD_BYTES
    before = np.concatenate(([np.int64(after)], bases[:-1] + deltas[:-1])) if len(batches) else bases
    checks = (
        ("a batch has an unknown version", headers["magic"] != 2),
        ("an offset is impossible", (bases < 0) | (deltas < 0) | (bases > _MAX_OFFSET - deltas)),
        ("offsets do not rise", bases <= before),
        ("a record count is impossible", (counts < 0) | (counts > deltas + 1) | (plain & (counts > room))),
    )
    wrong = [(int(np.argmax(bad)), reason) for reason, bad in checks if bad.any()]
    return min(wrong, key=lambda each: each[0]) if wrong else None


def _stopped(buffer: Bytes, good: Batches, at: int, reason: str) -> Walk:
    """Damage, unless the magic byte says that this is a message of an old version."""
    if len(buffer) - at > _MAGIC_AT and buffer[at + _MAGIC_AT] in (0, 1):
        version = buffer[at + _MAGIC_AT]
        offset = int.from_bytes(buffer[at : at + 8], "big", signed=True)
        if _looks_old(buffer, at):
            return Walk(good, WalkEnd.OLD_FORMAT, at, f"message format version {version} at offset {offset}")
    return Walk(good, WalkEnd.DAMAGED, at, reason)


def _looks_old(buffer: Bytes, at: int) -> bool:
    """Old messages have at least 14 bytes after their length; a preallocated file has only zeros."""
    return bool(_length_at(buffer, at + 8)[0] >= 14)


@dataclass(frozen=True)
class BatchStretch:
    """Batches of a log in a buffer."""

    buffer: Bytes
    batches: Batches

    @property
    def last(self) -> int:
        """The last offset that it covers; an empty stretch covers everything that follows."""
        return int(self.batches.last_offsets[-1]) if len(self.batches) else _MAX_OFFSET

    def touching(self, start: int, end: int) -> "BatchStretch":
        """The batches with an offset of `[start, end)` between their first and last."""
        first = int(np.searchsorted(self.batches.last_offsets, start))
        last = int(np.searchsorted(self.batches.base_offsets, end))
        return BatchStretch(self.buffer, self.batches[first : max(first, last)])
