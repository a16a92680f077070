"""Steps on open files and directories, for the store in a local directory."""

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path

from logkeep.errors import Damaged
from logkeep.store.local.directory import opened_below

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # opening a pipe must not wait for its writer


class SyncedDirectories:
    """The directories that this process has made durable.

    A directory that exists already may have been created by another process that has not synced it yet. So each is
    synced once in the directory above it, whichever process created it.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def ensure(self, root: int, parts: list[str]) -> None:
        for depth in range(len(parts)):
            path = "/".join(parts[: depth + 1])
            if path not in self._known:
                with opened_below(root, parts[:depth]) as above:
                    os.fsync(above)
                with self._lock:
                    self._known.add(path)

    def __reduce__(self) -> tuple[type["SyncedDirectories"], tuple[()]]:
        return SyncedDirectories, ()  # a copy in another process knows nothing yet


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all bytes: one call may write only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_exactly(descriptor: int, start: int, length: int, name: str) -> bytes:
    """Exactly `length` bytes from `start`. Raises Damaged for a file that ends early: objects do not change, so another
    program has truncated it."""
    chunks: list[bytes] = []
    end = start + length
    while start < end:
        chunk = os.pread(descriptor, min(end - start, 1 << 30), start)
        if not chunk:
            raise Damaged(f"ends before byte {end}", subject=name)
        chunks.append(chunk)
        start += len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def locked_by_another(descriptor: int) -> bool:
    """Whether another process has this file locked. Closes the descriptor, which releases the lock that this test may
    have taken."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_held(directory: int, leaf: str) -> bool:
    """Whether a writer still has this private file locked."""
    try:
        descriptor = os.open(leaf, READ_FLAGS, dir_fd=directory)
    except OSError:
        return True
    return locked_by_another(descriptor)


def remove_if_empty(name: str, parent: int) -> None:
    """Remove a directory if it is empty."""
    with suppress(OSError):  # something is in it, or it is a link: then it stays
        os.rmdir(name, dir_fd=parent)


def sync_path(path: Path) -> None:
    """Make the entries of a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
