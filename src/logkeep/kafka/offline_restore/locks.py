"""Locks on log directories: against a broker that starts, and against other restores."""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from logkeep.errors import Locked, TargetUnsafe
from logkeep.kafka.disks.directories import share_lock
from logkeep.kafka.disks.segment_windows import opened


@contextmanager
def broker_stopped(roots: Sequence[Path]) -> Iterator[None]:
    """Keep the broker from starting. Raises TargetUnsafe where it runs. Tasks hold the lock too: an attempt that the
    engine has abandoned must end before a broker can start."""
    with ExitStack() as stack:
        for root in roots:
            lock = root / ".lock"
            if lock.exists() and not share_lock(stack.enter_context(opened(lock))):
                raise TargetUnsafe(
                    "a running broker holds its lock",
                    subject=str(root),
                    remedy="stop the broker first (kafka-server-stop.sh), and start it when the restore is done",
                )
        yield


@contextmanager
def exclude_other_restores(roots: Sequence[Path]) -> Iterator[None]:
    """Lock out other restores. Raises Locked. (This kind of lock is independent of the broker's.)"""
    with ExitStack() as stack:
        for root in roots:
            lock = root / ".lock"
            if lock.exists():
                try:
                    fcntl.flock(stack.enter_context(opened(lock)), fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    what, remedy = "another restore is writing there", "wait until it has ended, then run again"
                    raise Locked(what, subject=str(root), remedy=remedy) from error
        yield
