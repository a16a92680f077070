"""Directories of a broker that must not start while they are written."""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from logkeep.errors import Locked, TargetUnsafe
from logkeep.kafka.disks.directories import share_lock
from logkeep.kafka.disks.segment_windows import opened


@contextmanager
def broker_stopped(roots: Sequence[Path]) -> Iterator[None]:
    """Keep the broker from starting. Raises TargetUnsafe where it runs. Tasks hold it too: one that is given up and
    works on for a while must be gone before a broker can start."""
    with ExitStack() as stack:
        for root in roots:
            lock = root / ".lock"
            if lock.exists() and not share_lock(stack.enter_context(opened(lock))):
                raise TargetUnsafe(
                    "a running broker holds it",
                    subject=str(root),
                    remedy="stop the broker first (kafka-server-stop.sh), and start it when the restore is done",
                )
        yield


@contextmanager
def alone(roots: Sequence[Path]) -> Iterator[None]:
    """Keep other restores out. Raises Locked. (This kind of lock and a broker's do not see each other.)"""
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
