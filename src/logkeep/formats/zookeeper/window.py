"""A forward-moving buffer over a file: memory stays small, and holes are not read.

A log is a few megabytes of records in a file of 64 MiB whose rest was never written. Where the file system reports
holes, that rest is skipped. The buffer grows only for a larger record, and only as far as there are bytes for it. Bytes
keep their offset within a page of memory, so they can be written to another file without a copy.
"""

import errno
import io
import os
import stat
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt

CHUNK_BYTES: Final = 4 << 20
_PAGE_BYTES: Final = 4096
_ZEROS_BEFORE: Final = 11
"""A record can begin with this many zeros, in its checksum and length: they may be in a hole, or look like padding."""


class ByteWindow:
    """`buffer[at:end]` are bytes of the source, the first of them at `position`."""

    def __init__(self, source: BinaryIO, most_bytes: int | None = None, chunk_bytes: int = CHUNK_BYTES) -> None:
        """At most `most_bytes` are read, as if the source ended there."""
        self._source, self._chunk = source, chunk_bytes
        self._page = _PAGE_BYTES if chunk_bytes > _PAGE_BYTES else 1
        self.buffer = _aligned(chunk_bytes + self._page)
        self.at = self.end = self._before = 0
        self._file, self._base = _plain_file(source)
        size = None if self._file is None else max(os.fstat(self._file).st_size - self._base, 0)
        limits = [limit for limit in (most_bytes, size) if limit is not None]
        self._limit = min(limits) if limits else None
        self._hole = 0

    @property
    def position(self) -> int:
        return self._before + self.at

    @property
    def left(self) -> int:
        """How many bytes there can be from here on; unlimited for a stream before its end."""
        return (1 << 62 if self._limit is None else self._limit) - self.position

    @property
    def held(self) -> memoryview:
        return self.buffer.data[self.at : self.end]

    def fill(self, size: int) -> bool:
        """Have `size` bytes in the buffer; False if the source has fewer."""
        possible = size if size <= self.left else min(self.left, self._chunk)
        while self.end - self.at < possible:
            self._make_room()
            if not self._read(possible - (self.end - self.at)):
                return False
        return possible == size

    def go_to(self, position: int) -> bool:
        """Go forward to a byte; False if the source ends before."""
        if self._file is not None and position > self._before + self.end:
            self._source.seek(self._base + position)
            self._before, self.at, self.end = position, 0, 0
        while self.position < position and self.fill(1):
            self.at = min(self.end, self.at + position - self.position)
        return self.position == position and self.left >= 0

    def ends_in(self, size: int, mark: int) -> bool:
        """Whether the last of the next `size` bytes is this one; True also if only reading them all would tell."""
        if self._file is None or self.end - self.at >= size:
            return True
        return os.pread(self._file, 1, self._base + self.position + size - 1) == bytes((mark,))

    def again(self, position: int, size: int) -> bytes | None:
        """The bytes there now, in a file that can be read twice."""
        return None if self._file is None else os.pread(self._file, size, self._base + position)

    def only_zeros(self) -> bool:
        """Go forward to the possible record of the first byte that is not zero; True if all are zeros."""
        while True:
            rest = self.buffer[self.at : self.end]
            if rest.any():
                self.at += max(int(np.argmax(rest != 0)) - _ZEROS_BEFORE, 0)
                return False
            if not self.next_data(_ZEROS_BEFORE):
                return True

    def next_data(self, keep: int) -> bool:
        """Continue after the buffer, except its last `keep` bytes, or after the hole there. False at the end."""
        self.at = max(self.at, self.end - keep)
        self._over_hole()
        self._make_room()
        return self._read(2 * _ZEROS_BEFORE)

    def _make_room(self) -> None:
        held, slot = self.end - self.at, self.position % self._page
        if self.at > slot:
            apart = held <= self.at - slot
            self.buffer[slot : slot + held] = self.held if apart else self.buffer[self.at : self.end].copy()
            self._before, self.at, self.end = self.position - slot, slot, slot + held
        if self.end == len(self.buffer):
            larger = _aligned(2 * self.end)
            larger[: self.end] = self.buffer
            self.buffer = larger

    def _read(self, needed: int) -> bool:
        """Into the free part; in a hole no more than is needed."""
        position = self._before + self.end
        size = min(len(self.buffer) - self.end, self._chunk)
        if self._limit is not None:
            size = min(size, self._limit - position)
        if size > 0:
            size = min(size, self._until_hole(position) or needed)
        got = self._read_some(size) if size > 0 else 0
        if not got:
            self._limit = position
            return False
        self.end += got
        return True

    def _read_some(self, size: int) -> int:
        """Directly into the buffer, if the source can. One read at a time: an error in a second one would lose the
        bytes of the first."""
        free = self.buffer.data[self.end : self.end + size]
        if isinstance(self._source, io.BufferedIOBase):
            return self._source.readinto1(free)
        if isinstance(self._source, io.RawIOBase):
            return self._source.readinto(free) or 0
        piece = self._source.read(size)
        self.buffer[self.end : self.end + len(piece)] = np.frombuffer(piece, np.uint8)
        return len(piece)

    def _until_hole(self, position: int) -> int:
        """How many bytes are before the next hole; 0 within one."""
        if self._file is None:
            return 1 << 62
        if position >= self._hole:
            self._hole = self._seek_to(position, os.SEEK_HOLE)
        return self._hole - position

    def _over_hole(self) -> None:
        """Drop the buffer and go to the end of a hole: a record that extends into one was found by its frame."""
        position = self._before + self.end
        if self._file is None or self._limit is None or position >= self._limit or self._until_hole(position):
            return
        target = self._seek_to(position, os.SEEK_DATA) - _ZEROS_BEFORE
        if target > position:
            self._source.seek(self._base + target)
            self._before, self.at, self.end = target, 0, 0

    def _seek_to(self, position: int, whence: int) -> int:
        """The next hole, or the next data; the end of the file if there is none. Keeps the file position."""
        assert self._file is not None  # noqa: S101 - checked by the callers
        was = os.lseek(self._file, 0, os.SEEK_CUR)
        try:
            return os.lseek(self._file, self._base + position, whence) - self._base
        except OSError as error:
            if error.errno != errno.ENXIO:
                return 1 << 62 if whence == os.SEEK_HOLE else position
            return os.fstat(self._file).st_size - self._base
        finally:
            os.lseek(self._file, was, os.SEEK_SET)


def _aligned(size: int) -> npt.NDArray[np.uint8]:
    """Memory aligned to a page."""
    memory = np.empty(size + _PAGE_BYTES, np.uint8)
    start = -memory.ctypes.data % _PAGE_BYTES
    return memory[start : start + size]


def _plain_file(source: BinaryIO) -> tuple[int | None, int]:
    """Descriptor and position of a regular file; None for any other stream."""
    raw = source.raw if isinstance(source, io.BufferedReader) else source
    if not isinstance(raw, io.FileIO) or not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return None, 0
    return raw.fileno(), source.tell()
