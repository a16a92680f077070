"""A file of a dataset in a directory that grows: cut to what is known to be whole, then appended to.

No link is followed below the root. One process writes a file at a time: the file is locked while it is open.
"""

import fcntl
import os
from contextlib import ExitStack, suppress
from pathlib import Path

from logkeep.errors import Locked
from logkeep.store.base import safe_name
from logkeep.store.local.directory import opened_below, opened_root, os_errors_about, require_regular
from logkeep.store.local.files import write_all

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # opening a pipe must not wait for its writer


class AppendedFile:
    """A file that one writer keeps open for its whole run. Raises errors of stores, and Locked if another process
    writes the file."""

    def __init__(self, root: Path, name: str, keep_bytes: int) -> None:
        """Create the file if it is missing; keep its first bytes, and remove what follows."""
        self.name, self.size = name, keep_bytes
        *parts, leaf = safe_name(name).split("/")
        with os_errors_about(name), opened_root(root) as top, opened_below(top, parts, create=True) as folder:
            self._descriptor = self._opened(folder, leaf)
            with ExitStack() as failed:
                failed.callback(self.close)
                self._take()
                if os.fstat(self._descriptor).st_size != keep_bytes:
                    os.ftruncate(self._descriptor, keep_bytes)
                    os.fsync(self._descriptor)
                os.lseek(self._descriptor, keep_bytes, os.SEEK_SET)
                failed.pop_all()

    def append(self, data: bytes | memoryview) -> None:
        with os_errors_about(self.name):
            write_all(self._descriptor, data)
        self.size += len(data)

    def sync(self) -> None:
        with os_errors_about(self.name):
            os.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _opened(self, folder: int, leaf: str) -> int:
        with suppress(FileNotFoundError):
            return os.open(leaf, _FLAGS, dir_fd=folder)
        made = os.open(leaf, _FLAGS | os.O_CREAT, 0o600, dir_fd=folder)
        os.fsync(folder)
        return made

    def _take(self) -> None:
        require_regular(self._descriptor, self.name)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Locked("another process writes this file", subject=self.name) from error
