"""One segment file of a log: batches back to back, named after its first position in 20 digits.

The places of batches are read from their headers when a position is first looked for, and kept. Reads check the
CRC-32C of every batch.
"""

import os
import re
import weakref
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from logkeep.errors import Damaged
from logkeep.formats.plain_batches import HEADER_BYTES, BatchHeader, header_alone, is_whole, read_header, walk

NAME = re.compile(r"(\d{20})\.log")
_PIECE_BYTES = 1 << 20


class LogFile:
    """A segment that may grow at its end. Readers may use it while the writer appends."""

    def __init__(self, path: Path, base: int) -> None:
        self.path, self.base = path, base
        self.descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        # Closed with the last reference: a reader may still use a segment that was compacted.
        self.close = weakref.finalize(self, os.close, self.descriptor)
        self.size_bytes = os.fstat(self.descriptor).st_size
        self.end, self.epoch = base, 0
        self._bases: list[int] = []
        self._places: list[int] = []
        self._indexed_bytes = 0

    def recover(self) -> int:
        """Find the end by checking every batch; how many bytes are after it.

        Raises Damaged if a whole batch follows after bytes that are none: then they were once durable.
        """
        data = self._read(0, self.size_bytes)
        for at, header in walk(data):
            self._require(header, at)
            self._add(header, at)
        rest = self.size_bytes - self._indexed_bytes
        if rest and _has_batch(data, self._indexed_bytes, self.end):
            raise Damaged(f"the batch at position {self.end} is damaged", subject=str(self.path))
        return rest

    def index(self, end: int) -> None:
        """Read the places of all batches of a segment that ends at `end`."""
        while self._indexed_bytes < self.size_bytes:
            header = header_alone(self._read(self._indexed_bytes, HEADER_BYTES))
            if header is None:
                raise Damaged(f"there is no batch at byte {self._indexed_bytes}", subject=str(self.path))
            self._require(header, self._indexed_bytes)
            self._add(header, self._indexed_bytes)
        if self.end != end:
            raise Damaged(f"it ends at position {self.end} instead of {end}", subject=str(self.path))

    def grew(self, header: BatchHeader) -> None:
        """A batch was appended and is durable."""
        self._add(header, self._indexed_bytes)
        self.size_bytes = self._indexed_bytes

    def size_from(self, position: int) -> int:
        number = max(bisect_right(self._bases, position) - 1, 0)
        return self._indexed_bytes - self._place(number)

    def batch_start(self, position: int) -> int:
        return self._bases[bisect_right(self._bases, position) - 1]

    def pieces(self, start: int, end: int) -> Iterator[tuple[bytes, int]]:
        """Whole batches from the one that contains `start` up to `end`, checked, in pieces of about a mebibyte, and the
        position after each piece."""
        number = bisect_right(self._bases, start) - 1
        last = bisect_right(self._bases, end - 1) - 1
        while number <= last:
            until, begin = number + 1, self._places[number]
            while until <= last and self._place(until + 1) - begin <= _PIECE_BYTES:
                until += 1
            piece = self._read(begin, self._place(until) - begin)
            self._check(piece, begin)
            header = read_header(piece, self._places[until - 1] - begin)
            assert header is not None  # noqa: S101 - it was checked
            yield piece, header.end_offset
            number = until

    def batch(self, position: int) -> bytes:
        """The batch that contains a position."""
        number = bisect_right(self._bases, position) - 1
        data = self._read(self._places[number], self._place(number + 1) - self._places[number])
        self._check(data, self._places[number])
        return data

    def _place(self, number: int) -> int:
        return self._places[number] if number < len(self._places) else self._indexed_bytes

    def _add(self, header: BatchHeader, at: int) -> None:
        # The place first: a reader that sees the base must find its place.
        self._indexed_bytes = at + header.size_bytes
        self._places.append(at)
        self._bases.append(header.base_offset)
        self.end, self.epoch = header.end_offset, header.epoch

    def _require(self, header: BatchHeader, at: int) -> None:
        if header.base_offset != self.end or at + header.size_bytes > self.size_bytes:
            what = f"the batch at byte {at} has position {header.base_offset} instead of {self.end}, or is cut off"
            raise Damaged(what, subject=str(self.path))

    def _check(self, data: bytes, begin: int) -> None:
        whole = sum(header.size_bytes for _, header in walk(data))
        if whole != len(data):
            raise Damaged(f"the batch at byte {begin + whole} fails its checksum", subject=str(self.path))

    def _read(self, at: int, size: int) -> bytes:
        data = os.pread(self.descriptor, size, at)
        if len(data) != size:
            raise Damaged(f"it ends after {at + len(data)} bytes", subject=str(self.path))
        return data


def _has_batch(data: bytes, start: int, least: int) -> bool:
    """Whether a whole batch of a position from `least` on begins anywhere after `start`."""
    at = start
    while (at := data.find(b"\x02", at + 1)) != -1:
        begin = at - 16
        if begin <= start:
            continue
        header = read_header(data, begin)
        if header is not None and header.base_offset >= least and is_whole(data, begin, header):
            return True
    return False
