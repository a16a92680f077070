"""One run at a time writes a dataset in a directory. In a bucket, two runs notice each other by names and indexes."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from logkeep.errors import Locked
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_version import FOLDER
from logkeep.store.directory import opened_below, opened_root, os_errors_about

_LOCK = "lock"
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def locked(target: DatasetTarget) -> Iterator[None]:
    """Raises Locked. The kernel releases the lock of a dead process."""
    if target.directory is None:
        yield
        return
    with (
        os_errors_about(f"{FOLDER}/{_LOCK}"),
        opened_root(target.directory) as root,
        opened_below(root, [FOLDER], create=True) as folder,
    ):
        descriptor = os.open(_LOCK, _FLAGS, 0o600, dir_fd=folder)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Locked("another run writes this dataset", subject=target.url) from error
        yield
    finally:
        os.close(descriptor)
