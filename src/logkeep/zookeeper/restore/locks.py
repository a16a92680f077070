"""One restore at a time in a server's directories."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from logkeep.errors import Locked
from logkeep.zookeeper.restore.places import Place


@contextmanager
def alone(places: Sequence[Place]) -> Iterator[None]:
    """Locks the directories themselves, which a server never does. Raises Locked."""
    with ExitStack() as stack:
        for path in sorted({place.data_dir for place in places}):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                what, remedy = "another restore is at work there", "wait until it has ended, then run again"
                raise Locked(what, subject=str(path), remedy=remedy) from error
        yield
