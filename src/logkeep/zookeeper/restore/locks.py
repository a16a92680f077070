"""Locks on servers' directories: one restore at a time."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from logkeep.errors import Locked, TargetUnsafe
from logkeep.zookeeper.restore.target_dirs import ServerDirectories, unreadable

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
        for path in sorted({place.data_dir for place in places}):
            descriptor = _open(path)
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


def _open(directory: Path) -> int:
    try:
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        what, remedy = (
            "a directory of the restore is missing",
            "check whether its file system is mounted, and run again",
        )
        raise TargetUnsafe(what, subject=str(directory), remedy=remedy) from error
    except OSError as error:
        raise unreadable(directory, error) from error
