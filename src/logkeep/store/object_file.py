"""A stored object as a file for reading. Reads are ranges of the object; only a buffer is kept in memory."""

import io

from logkeep.store.base import Store

_BUFFER_BYTES = 1 << 20


def open_object(store: Store, name: str, size: int) -> io.BufferedReader:
    """Open an object for reading. `size` must be the size that the store reports."""
    return io.BufferedReader(_ObjectRanges(store, name, size), _BUFFER_BYTES)


class _ObjectRanges(io.RawIOBase):
    def __init__(self, store: Store, name: str, size: int) -> None:
        self._store, self._name, self._size = store, name, size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # it is always one
        wanted = min(len(buffer), max(self._size - self._at, 0))
        if wanted:
            buffer[:wanted] = self._store.get_range(self._name, self._at, wanted)
        self._at += wanted
        return wanted
