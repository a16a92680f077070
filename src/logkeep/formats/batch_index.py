"""The small index beside an archived log: what its batch headers say, so that a range read needs no scan.

It can be rebuilt from the log at any time and proves nothing by itself. One row per batch, stored as columns:

    bytes 0..7    magic "LKBIDX" and the version, two digits
          8..11   number of batches
          12..15  CRC-32C of bytes 0..11 and of everything after byte 15
          16..    the columns of `ROW` one after the other, little-endian, zlib

Columns of one kind of number compress four to ten times better than rows. `decode` takes any bytes: it raises Damaged
or returns an index whose batches lie back to back with rising offsets, and allocates no more than the bytes can hold.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import google_crc32c
import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.kafka_log import (
    APPEND_TIME,
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    TRANSACTIONAL,
    Batches,
    Longs,
)

ROW = np.dtype(
    [
        ("base_offset", "<i8"),
        ("last_offset", "<i8"),
        ("position", "<i8"),
        ("size", "<i4"),
        ("base_time_ms", "<i8"),
        ("max_time_ms", "<i8"),
        ("records", "<i4"),
        ("attributes", "<i2"),
        ("producer_id", "<i8"),
        ("leader_epoch", "<i4"),
    ]
)
_FAMILY, _VERSION = b"LKBIDX", b"01"
_HEAD = struct.Struct("<8sII")
_LEVEL = 6
_MAX_RATIO = 1100
"""zlib cannot shrink anything more than 1,032 times: a count beyond that is a lie, found before memory is taken."""
_MAX_OFFSET = 2**63 - 1

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class BatchIndex:
    """The batches of one segment, in order."""

    rows: npt.NDArray[np.void]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def codecs(self) -> npt.NDArray[np.int16]:
        """Numbers of `kafka_log.CODECS`."""
        return self.rows["attributes"] & np.int16(CODEC_MASK)

    @property
    def append_time(self) -> Flags:
        return self._flag(APPEND_TIME)

    @property
    def transactional(self) -> Flags:
        return self._flag(TRANSACTIONAL)

    @property
    def control(self) -> Flags:
        return self._flag(CONTROL)

    @property
    def delete_horizon(self) -> Flags:
        """Batches whose base time is the moment their tombstones may go, not a record's time."""
        return self._flag(DELETE_HORIZON)

    @property
    def records(self) -> int:
        return int(self.rows["records"].sum(dtype=np.int64))

    @property
    def base_time_ms(self) -> int:
        """The smallest base time that is a record's time; -1 when no batch has one."""
        times = np.where(self.append_time, self.rows["max_time_ms"], self.rows["base_time_ms"])
        known = times[~self.delete_horizon & (times >= 0) & (self.rows["records"] > 0)]
        return int(known.min()) if len(known) else -1

    @property
    def max_time_ms(self) -> int:
        return max(int(self.rows["max_time_ms"].max(initial=-1)), -1)

    def at_offset(self, offset: int) -> int:
        """The first batch that holds this offset or a later one; `len` when there is none."""
        return int(np.searchsorted(self.rows["last_offset"], offset, side="left"))

    def at_time(self, time_ms: int) -> int:
        """The first batch with a record at or after this time; `len` when there is none.

        Producers choose times, so they need not rise: the answer is the first such batch in offset order, which is
        what Kafka's own lookup by time means.
        """
        so_far = np.maximum.accumulate(self.rows["max_time_ms"])
        return int(np.searchsorted(so_far, time_ms, side="left"))

    def _flag(self, bit: int) -> Flags:
        flags: Flags = (self.rows["attributes"] & np.int16(bit)) != 0
        return flags


def index_of(batches: Batches, position: int = 0) -> BatchIndex:
    """The index of batches that are stored back to back from `position` on."""
    rows = np.empty(len(batches), ROW)
    sizes, headers = batches.sizes, batches.headers
    rows["base_offset"], rows["last_offset"] = batches.base_offsets, batches.last_offsets
    rows["position"] = position + np.cumsum(sizes) - sizes
    rows["size"] = sizes
    for name in ("base_time_ms", "max_time_ms", "records", "attributes", "producer_id", "leader_epoch"):
        rows[name] = headers[name]
    return BatchIndex(rows)


def join(pieces: Sequence[BatchIndex]) -> BatchIndex:
    """Indexes of neighbouring pieces of one object as one."""
    return BatchIndex(np.concatenate([p.rows for p in pieces]) if pieces else np.empty(0, ROW))


def encode(index: BatchIndex) -> bytes:
    columns = b"".join(np.ascontiguousarray(index.rows[name]).tobytes() for name in _names())
    body = zlib.compress(columns, _LEVEL)
    return _HEAD.pack(_FAMILY + _VERSION, len(index), _checksum(len(index), body)) + body


def decode(data: bytes, subject: str = "batch index") -> BatchIndex:
    """Read an index back. Raises Damaged, or FormatTooNew for a version of a later release."""
    if len(data) < _HEAD.size or data[:6] != _FAMILY:
        raise Damaged("not a batch index", subject=subject)
    if data[6:8] != _VERSION:
        raise FormatTooNew("a batch index of a later version", subject=subject)
    _, count, checksum = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if _checksum(count, body) != checksum:
        raise Damaged("the checksum of the batch index is wrong", subject=subject)
    index = _from_columns(_inflate(body, count * ROW.itemsize, subject), count)
    if not _consistent(index.rows):
        raise Damaged("the batch index contradicts itself", subject=subject)
    return index


def _names() -> tuple[str, ...]:
    return ROW.names or ()


def _checksum(count: int, body: bytes) -> int:
    head = _FAMILY + _VERSION + struct.pack("<I", count)
    return int(google_crc32c.extend(google_crc32c.value(head), body))


def _inflate(body: bytes, size: int, subject: str) -> bytes:
    if size > len(body) * _MAX_RATIO:
        raise Damaged("the batch index promises more than it can hold", subject=subject)
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(body, size + 1)
    except zlib.error as error:
        raise Damaged("the batch index cannot be unpacked", subject=subject) from error
    if len(plain) != size or not stream.eof or stream.unused_data:
        raise Damaged("the batch index has another size than it says", subject=subject)
    return plain


def _from_columns(plain: bytes, count: int) -> BatchIndex:
    rows = np.empty(count, ROW)
    at = 0
    for name in _names():
        kind = ROW[name]
        rows[name] = np.frombuffer(plain, kind, count, at)
        at += count * kind.itemsize
    return BatchIndex(rows)


def _consistent(rows: npt.NDArray[np.void]) -> bool:
    sizes: Longs = rows["size"].astype(np.int64)
    ends = np.cumsum(sizes)
    return bool(
        (sizes > 0).all()
        and (rows["position"] == ends - sizes).all()
        and (rows["base_offset"] >= 0).all()
        and (rows["last_offset"] >= rows["base_offset"]).all()
        and (rows["base_offset"][1:] > rows["last_offset"][:-1]).all()
        and (rows["records"] >= 0).all()
    )
