"""Locks on servers' directories: one restore at a time."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from logkeep.directories.folder import Folder
from logkeep.errors import Locked, TargetUnsafe
from logkeep.zookeeper.restore.target.directories import ServerDirectories, unreadable

_ELSEWHERE: Final = (
    "restore to a directory on a local file system, and copy its version-2 while the server is stopped; NFS supports "
    "locks when it is mounted with local_lock=flock"
)


@contextmanager
def locked(places: Sequence[ServerDirectories]) -> Iterator[None]:
    """Locks the directories themselves, which a server never does. Raises Locked.

    Raises TargetUnsafe where locks are not supported: two restores at once would move each other's files.
    """
    with ExitStack() as stack:
        folders = {place.data_dir: place.data_folder for place in places}
        for path in sorted(folders):
            descriptor = _opened_again(folders[path])
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                what, remedy = "another restore is running there", "wait until it has ended, then run again"
                raise Locked(what, subject=str(path), remedy=remedy) from error
            except OSError as error:
                what = f"its file system has no locks, so a second restore could run at once: {error.strerror}"
                raise TargetUnsafe(what, subject=str(path), remedy=_ELSEWHERE) from error
        yield


def _opened_again(folder: Folder) -> int:
    """The same directory, for this process alone: a lock on a descriptor that a child has too would outlive us."""
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder.descriptor)
    except OSError as error:
        raise unreadable(folder.path, error) from error
