"""The stored form of run maps: one map, and a file of many.

One map:

    bytes 0..7    magic "LKRMAP" and the version, two digits
          8..11   number of runs
          12..15  CRC-32C of bytes 0..11 and of everything after byte 15
          16..39  start, end (source offsets) and target end, 8 bytes each
          40..    three columns one after the other, 8 bytes per number, zlib:
                  distance of each run's source offset from the end of the run before (the first: from start),
                  distance of its target offset from the end of the run before (the first: from 0), and its length

A file of many:

    bytes 0..7    magic "LKRMAS" and the version, two digits
          8..11   number of maps
          12..15  CRC-32C of bytes 0..11 and of everything after byte 15
          16..    for each map, in order of its route: length of the source topic's name (2 bytes), the name, source
                  partition (4), length of the target topic's name (2), the name, target partition (4), length of the
                  map (4), the map

All numbers are little-endian and not negative. `decode` and `unbundle` accept any bytes: they raise Damaged, or return
maps whose offsets rise, and allocate no more than the bytes can hold.
"""

import struct
import zlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.columns import checksum, inflate
from logkeep.formats.kafka.batches import Longs
from logkeep.formats.run_map.runs import RunMap

MAX_RUNS = 2**27
"""Of one map: 3 GiB in memory."""
_ONE, _MANY, _VERSION = b"LKRMAP", b"LKRMAS", b"01"
_HEAD = struct.Struct("<8sII")
_BOUNDS = struct.Struct("<qqq")
_NAME = struct.Struct("<H")
_NUMBER = struct.Struct("<I")
_LEVEL = 6
_COLUMN = np.dtype("<i8")


class Route(NamedTuple):
    """The source partition and the target partition of one map."""

    topic: str
    partition: int
    target_topic: str
    target_partition: int


def encode(runs: RunMap) -> bytes:
    if len(runs) > MAX_RUNS:
        raise Damaged("more runs than a map can hold", subject=f"{len(runs):,} runs")
    gaps = (_gaps(runs.source, runs.n, runs.start), _gaps(runs.target, runs.n, 0), runs.n)
    columns = zlib.compress(b"".join(column.astype(_COLUMN).tobytes() for column in gaps), _LEVEL)
    return _with_head(_ONE, len(runs), _BOUNDS.pack(runs.start, runs.end, runs.target_end) + columns)


def decode(data: bytes, subject: str = "run map") -> RunMap:
    """Read a map back. Raises Damaged, or FormatTooNew for a version of a later release."""
    count, body = _check_head(_ONE, data, subject)
    if len(body) < _BOUNDS.size or count > MAX_RUNS:
        raise Damaged("the run map has another size than it claims", subject=subject)
    start, end, target_end = _BOUNDS.unpack_from(body)
    plain = inflate(body[_BOUNDS.size :], 3 * count * _COLUMN.itemsize, "run map", subject)
    gaps = np.frombuffer(plain, _COLUMN).astype(np.int64).reshape(3, count)
    if not 0 <= start <= end or target_end < 0 or (gaps < 0).any() or (gaps[2] < 1).any():
        raise Damaged("the run map contradicts itself", subject=subject)
    source, target = (_firsts(gaps[row], gaps[2], first, subject) for row, first in ((0, start), (1, 0)))
    if count and (int(source[-1] + gaps[2, -1]) > end or int(target[-1] + gaps[2, -1]) > target_end):
        raise Damaged("the run map contradicts itself", subject=subject)
    return RunMap(source, target, gaps[2], start, end, target_end)


def decode_all(data: bytes) -> dict[Route, RunMap]:
    return {route: decode(one, f"run maps, {_route_text(route)}") for route, one in unbundle(data).items()}


def bundle(maps: Mapping[Route, bytes]) -> bytes:
    """A file of encoded maps."""
    return _with_head(_MANY, len(maps), b"".join(_entry(route, maps[route]) for route in sorted(maps)))


def unbundle(data: bytes, subject: str = "run maps") -> dict[Route, bytes]:
    """The encoded maps of a file: a reader of one map need not decode all."""
    count, body = _check_head(_MANY, data, subject)
    maps: dict[Route, bytes] = {}
    cursor = _Cursor(body, subject)
    for _ in range(count):
        route = Route(cursor.name(), cursor.number(), cursor.name(), cursor.number())
        maps[route] = cursor.take(cursor.number())
    if cursor.left or len(maps) != count:
        raise Damaged("the file of run maps has another size than it claims", subject=subject)
    return maps


class _Cursor:
    def __init__(self, body: bytes, subject: str) -> None:
        self._body, self._at, self._subject = body, 0, subject

    @property
    def left(self) -> int:
        return len(self._body) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise Damaged("the file of run maps ends too early", subject=self._subject)
        self._at += size
        return self._body[self._at - size : self._at]

    def number(self) -> int:
        return int(_NUMBER.unpack(self.take(_NUMBER.size))[0])

    def name(self) -> str:
        try:
            return self.take(_NAME.unpack(self.take(_NAME.size))[0]).decode()
        except UnicodeDecodeError as error:
            raise Damaged("a topic's name is not UTF-8", subject=self._subject) from error


def _entry(route: Route, one: bytes) -> bytes:
    name, target = route.topic.encode(), route.target_topic.encode()
    source_end = _NAME.pack(len(name)) + name + _NUMBER.pack(route.partition)
    target_end = _NAME.pack(len(target)) + target + _NUMBER.pack(route.target_partition)
    return source_end + target_end + _NUMBER.pack(len(one)) + one


def _route_text(route: Route) -> str:
    return f"{route.topic}/{route.partition} to {route.target_topic}/{route.target_partition}"


def _gaps(firsts: Longs, n: Longs, first: int) -> Longs:
    """The distance of each run from the end of the one before."""
    ends = np.append(first, firsts[:-1] + n[:-1])
    gaps: Longs = firsts - ends[: len(firsts)]
    return gaps


def _firsts(gaps: Longs, n: Longs, first: int, subject: str) -> Longs:
    """The first offset of each run. A sum beyond 63 bits shows as a falling one, since every step is smaller."""
    steps = np.empty(2 * len(gaps) + 1, np.int64)
    steps[0], steps[1::2], steps[2::2] = first, gaps, n
    sums = np.cumsum(steps)
    if (sums < 0).any() or (np.diff(sums) < 0).any():
        raise Damaged("the run map contradicts itself", subject=subject)
    return np.ascontiguousarray(sums[1::2])


def _with_head(family: bytes, count: int, body: bytes) -> bytes:
    return _HEAD.pack(family + _VERSION, count, checksum(family + _VERSION, count, body)) + body


def _check_head(family: bytes, data: bytes, subject: str) -> tuple[int, bytes]:
    if len(data) < _HEAD.size or data[:6] != family:
        raise Damaged("not a run map", subject=subject)
    if data[6:8] != _VERSION:
        raise FormatTooNew("a run map of a later version", subject=subject)
    _, count, stored_crc = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if checksum(family + _VERSION, count, body) != stored_crc:
        raise Damaged("the checksum of the run map is wrong", subject=subject)
    return count, body
