"""The index beside an archived log: the fields of its batch headers, so that a range read needs no scan.

It can be rebuilt from the log at any time and proves nothing. One row per batch, stored as columns:

    bytes 0..7    magic "LKBIDX" and the version, two digits
          8..11   number of batches
          12..15  CRC-32C of bytes 0..11 and of everything after byte 15
          16..    the columns of `ROW` one after the other, little-endian, zlib

That is version 01, for a plain log. For one in zstd frames it is version 02: bytes 16..19 hold the
number of frames, the stream begins at byte 20, and after the columns of `ROW` come those of `FRAME`.

Columns compress four to ten times better than rows. `decode` takes any bytes: it raises Damaged or returns an index
whose batches are adjacent with rising offsets, and allocates no more than the bytes can hold.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.columns import checksum, inflate
from logkeep.formats.kafka.batches import (
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
FRAME = np.dtype([("plain_bytes", "<i4"), ("stored_bytes", "<i4")])
"""One row per zstd frame, in order."""
_FAMILY, _PLAIN, _FRAMED = b"LKBIDX", b"01", b"02"
_COUNT = struct.Struct("<I")
_HEAD = struct.Struct("<8sII")
_LEVEL = 6

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class BatchIndex:
    """The batches of one segment, in order."""

    rows: npt.NDArray[np.void]
    frames: npt.NDArray[np.void] = field(default_factory=lambda: np.empty(0, FRAME))
    """The zstd frames, if the log is stored in frames. Positions of batches are those in the plain log."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def codecs(self) -> npt.NDArray[np.int16]:
        """Indexes into `batches.CODECS`."""
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
        """Batches whose base time is when their tombstones may be removed, not a record's time."""
        return self._flag(DELETE_HORIZON)

    @property
    def records(self) -> int:
        return int(self.rows["records"].sum(dtype=np.int64))

    @property
    def base_time_ms(self) -> int:
        """The smallest base time that is a record's time; -1 if there is none."""
        times = np.where(self.append_time, self.rows["max_time_ms"], self.rows["base_time_ms"])
        known = times[~self.delete_horizon & (times >= 0) & (self.rows["records"] > 0)]
        return int(known.min()) if len(known) else -1

    @property
    def max_time_ms(self) -> int:
        return max(int(self.rows["max_time_ms"].max(initial=-1)), -1)

    def at_offset(self, offset: int) -> int:
        """The first batch with this offset or a later one; `len` if there is none."""
        return int(np.searchsorted(self.rows["last_offset"], offset, side="left"))

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
    """Join the indexes of consecutive pieces of one object."""
    return BatchIndex(np.concatenate([p.rows for p in pieces]) if pieces else np.empty(0, ROW))


def encode(index: BatchIndex) -> bytes:
    """Version 01 for a plain log, so that every release reads it; 02 only where there are frames."""
    version = _FRAMED if len(index.frames) else _PLAIN
    columns = zlib.compress(_columns(index.rows) + _columns(index.frames), _LEVEL)
    body = _COUNT.pack(len(index.frames)) + columns if len(index.frames) else columns
    return _HEAD.pack(_FAMILY + version, len(index), checksum(_FAMILY + version, len(index), body)) + body


def decode(data: bytes, subject: str = "batch index") -> BatchIndex:
    """Read an index back. Raises Damaged, or FormatTooNew for a version of a later release."""
    if len(data) < _HEAD.size or data[:6] != _FAMILY:
        raise Damaged("not a batch index", subject=subject)
    version = data[6:8]
    if version not in (_PLAIN, _FRAMED):
        raise FormatTooNew("a batch index of a later version", subject=subject)
    _, count, stored_crc = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if checksum(_FAMILY + version, count, body) != stored_crc or (version == _FRAMED and len(body) < _COUNT.size):
        raise Damaged("the checksum of the batch index is wrong", subject=subject)
    frames, body = (_COUNT.unpack_from(body)[0], body[_COUNT.size :]) if version == _FRAMED else (0, body)
    rows_bytes = count * ROW.itemsize
    plain = inflate(body, rows_bytes + frames * FRAME.itemsize, "batch index", subject)
    index = BatchIndex(_from_columns(plain[:rows_bytes], ROW, count), _from_columns(plain[rows_bytes:], FRAME, frames))
    if not _consistent(index.rows) or (version == _FRAMED and not _framed(index)):
        raise Damaged("the batch index contradicts itself", subject=subject)
    return index


def _columns(rows: npt.NDArray[np.void]) -> bytes:
    return b"".join(np.ascontiguousarray(rows[name]).tobytes() for name in rows.dtype.names or ())


def _from_columns(plain: bytes, shape: np.dtype[np.void], count: int) -> npt.NDArray[np.void]:
    rows = np.empty(count, shape)
    at = 0
    for name in shape.names or ():
        kind = shape[name]
        rows[name] = np.frombuffer(plain, kind, count, at)
        at += count * kind.itemsize
    return rows


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


def _framed(index: BatchIndex) -> bool:
    """Whether every frame holds complete batches, and the frames together all batches."""
    plain, stored = (index.frames[name].astype(np.int64) for name in ("plain_bytes", "stored_bytes"))
    batch_ends = index.rows["position"] + index.rows["size"]
    frame_ends = np.cumsum(plain)
    return bool(
        len(frame_ends)
        and len(batch_ends)
        and (plain > 0).all()
        and (stored > 0).all()
        and np.isin(frame_ends, batch_ends).all()
        and frame_ends[-1] == batch_ends[-1]
    )
