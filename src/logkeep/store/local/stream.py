"""Writes large files past the page cache (O_DIRECT) where the file system allows it.

O_DIRECT needs no page-cache memory and evicts no pages of other processes (a broker may run on the same host). It needs
aligned addresses and lengths: bytes are collected in an aligned buffer, an aligned buffer of the caller is written
without a copy (after the bytes that complete the block before it), and the unaligned tail is written after O_DIRECT is
switched off. Where the file system refuses O_DIRECT, space is preallocated and the written pages are dropped from the
cache at the end.
"""

import ctypes
import errno
import fcntl
import mmap
import os
from contextlib import suppress

from logkeep.errors import LogkeepError
from logkeep.store.local.directory import os_errors_about, translated

_BUFFER_BYTES = 4 << 20
_ALIGNMENT = 4096
_WORTH_BYTES = 256 << 10
"""From this size on a piece is written from the caller's buffer, although collected bytes have to be written first."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FALLOCATE = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


class DirectStream:
    """Sequential writes into one new private file, which stays locked while it is open."""

    def __init__(self, leaf: str, directory: int, subject: str, size_hint: int) -> None:
        self._subject = subject
        self._length = 0
        self._filled = 0
        self._failure: LogkeepError | None = None
        with os_errors_about(subject):
            self.descriptor, self._direct = _create(leaf, directory)
        self._buffer = _large_pages(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        try:
            with os_errors_about(subject):
                fcntl.flock(self.descriptor, fcntl.LOCK_EX)
                if not self._direct and size_hint > 0:
                    _preallocate(self.descriptor, size_hint)
        except BaseException:
            os.unlink(leaf, dir_fd=directory)
            self.close()
            raise

    def write(self, data: memoryview | bytes) -> None:
        """Append. After an error the stream can only be discarded: every further call raises the same error."""
        rest = memoryview(data).cast("B")
        self._length += len(rest)
        while len(rest):
            lead = -self._filled % _ALIGNMENT
            if _writable_as_is(rest, lead, _WORTH_BYTES if self._filled else _ALIGNMENT):
                rest = self._put_as_is(rest, lead)
                continue
            taken = min(len(rest), _BUFFER_BYTES - self._filled)
            self._view[self._filled : self._filled + taken] = rest[:taken]
            self._filled += taken
            rest = rest[taken:]
            if self._filled == _BUFFER_BYTES:
                self._put(self._view)
                self._filled = 0

    def _put_as_is(self, data: memoryview, lead: int) -> memoryview:
        """Complete the last block with `lead` bytes and write all whole blocks after it; returns the rest."""
        self._view[self._filled : self._filled + lead] = data[:lead]
        end = lead + (len(data) - lead) // _ALIGNMENT * _ALIGNMENT
        gathered, self._filled = self._filled + lead, 0
        self._put(self._view[:gathered], data[lead:end])
        return data[end:]

    def finish(self) -> int:
        """Write the tail; the file then has exactly the written bytes. They are not synced yet."""
        aligned = self._filled // _ALIGNMENT * _ALIGNMENT
        self._put(self._view[:aligned])
        if aligned != self._filled:
            self._stop_direct()
            self._put(self._view[aligned : self._filled])
        self._filled = 0
        with os_errors_about(self._subject):
            os.ftruncate(self.descriptor, self._length)
        return self._length

    def close(self) -> None:
        """Free everything. Harmless a second time."""
        if self.descriptor >= 0:
            with suppress(OSError):  # advice only
                os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(self.descriptor)
            self.descriptor = -1
            self._view.release()
            with suppress(BufferError):  # the traceback of a failed write still refers to a piece
                self._buffer.close()

    def _put(self, *pieces: memoryview) -> None:
        if self._failure is not None:
            raise self._failure
        left = [piece for piece in pieces if len(piece)]
        try:
            while left:
                left = _behind(left, self._write_some(left))
        except OSError as error:
            self._failure = translated(error, self._subject)
            raise self._failure from error

    def _write_some(self, pieces: list[memoryview]) -> int:
        try:
            written = os.writev(self.descriptor, pieces)
        except OSError as error:
            if not (self._direct and error.errno == errno.EINVAL):
                raise
            self._stop_direct()  # opened with O_DIRECT, but refuses this alignment
            return os.writev(self.descriptor, pieces)
        if self._direct and written % _ALIGNMENT:
            self._stop_direct()  # a short write left the position unaligned
        return written

    def _stop_direct(self) -> None:
        if self._direct:
            flags = fcntl.fcntl(self.descriptor, fcntl.F_GETFL)
            fcntl.fcntl(self.descriptor, fcntl.F_SETFL, flags & ~os.O_DIRECT)
            self._direct = False


def _large_pages(size_bytes: int) -> mmap.mmap:
    """Aligned memory, in large pages where available: O_DIRECT pins every page for every write."""
    memory = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # advice only
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _create(leaf: str, directory: int) -> tuple[int, bool]:
    try:
        return os.open(leaf, _NEW | os.O_DIRECT, 0o600, dir_fd=directory), True
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    with suppress(FileNotFoundError):  # some kernels create the file before they refuse the flag
        os.unlink(leaf, dir_fd=directory)
    return os.open(leaf, _NEW, 0o600, dir_fd=directory), False


def _preallocate(descriptor: int, size_bytes: int) -> None:
    try:
        os.posix_fallocate(descriptor, 0, size_bytes)
    except OSError as error:
        if error.errno not in _NO_FALLOCATE:
            raise


def _behind(pieces: list[memoryview], written: int) -> list[memoryview]:
    """What is left when `written` bytes are gone."""
    left = []
    for piece in pieces:
        gone = min(written, len(piece))
        written -= gone
        if gone < len(piece):
            left.append(piece[gone:])
    return left


def _writable_as_is(data: memoryview, lead: int, least: int) -> bool:
    """Whether O_DIRECT can write that many bytes from the caller's buffer, after the first `lead` ones."""
    if len(data) < lead + least or data.readonly:
        return False
    return (ctypes.addressof(ctypes.c_char.from_buffer(data)) + lead) % _ALIGNMENT == 0
