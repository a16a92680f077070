"""Locks on log directories: against a broker that starts, and against other restores."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from logkeep.directories.folder import Folder
from logkeep.errors import Locked, LogDirUnusable, TargetUnsafe
from logkeep.kafka.disks.directories import share_lock

_LOCK = ".lock"


@contextmanager
def broker_stopped(roots: Sequence[Folder]) -> Iterator[None]:
    """Keep the broker from starting. Raises TargetUnsafe where it runs. Tasks hold the lock too: an attempt that the
    engine has abandoned must end before a broker can start."""
    with ExitStack() as stack:
        for root in roots:
            file = _lock_file(root, stack)
            if file is not None and not share_lock(file):
                raise TargetUnsafe(
                    "a running broker holds its lock",
                    subject=str(root.path),
                    remedy="stop the broker first (kafka-server-stop.sh), and start it when the restore is done",
                )
        yield


@contextmanager
def exclude_other_restores(roots: Sequence[Folder]) -> Iterator[None]:
    """Lock out other restores. Raises Locked. (This kind of lock is independent of the broker's.)"""
    with ExitStack() as stack:
        for root in roots:
            file = _lock_file(root, stack)
            if file is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    what, remedy = "another restore is writing there", "wait until it has ended, then run again"
                    raise Locked(what, subject=str(root.path), remedy=remedy) from error
        yield


def _lock_file(root: Folder, stack: ExitStack) -> int | None:
    """The broker's lock file, open until the stack ends; None if there is none. Raises LogDirUnusable, OtherOwner."""
    try:
        file = root.open_file(_LOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LogDirUnusable(
            f"cannot be read ({error.strerror})",
            subject=str(root.path / _LOCK),
            remedy="run as a user who may read it: the broker's own, or root",
        ) from error
    stack.callback(os.close, file)
    return file
