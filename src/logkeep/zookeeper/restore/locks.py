"""One restore at a time in a server's directories."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from logkeep.errors import Locked, TargetUnsafe
from logkeep.zookeeper.restore.target_dirs import ServerDirectories, unreadable

_ELSEWHERE: Final = (
    "restore to a directory on a local file system, and copy its version-2 while the server is stopped; NFS gives "
    "locks when it is mounted with local_lock=flock"
)


@contextmanager
def alone(places: Sequence[ServerDirectories]) -> Iterator[None]:
    """Locks the directories themselves, which a server never does. Raises Locked.

    Raises TargetUnsafe where there are no locks: two restores at once would move each other's files.
    """
    with ExitStack() as stack:
        for path in sorted({place.data_dir for place in places}):
            descriptor = _opened(path)
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                what, remedy = "another restore is at work there", "wait until it has ended, then run again"
                raise Locked(what, subject=str(path), remedy=remedy) from error
            except OSError as error:
                what = f"its file system gives no locks, which keep a second restore away: {error.strerror}"
                raise TargetUnsafe(what, subject=str(path), remedy=_ELSEWHERE) from error
        yield


def _opened(directory: Path) -> int:
    try:
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        what, remedy = "this directory of the restore is gone", "look whether its file system is mounted, and run again"
        raise TargetUnsafe(what, subject=str(directory), remedy=remedy) from error
    except OSError as error:
        raise unreadable(directory, error) from error
