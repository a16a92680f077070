"""One run at a time writes a dataset: the lock of a directory is a file, that of a bucket the journal."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from logkeep.errors import Locked
from logkeep.kafka.datasets.bucket_journal import HeldJournal
from logkeep.kafka.datasets.bucket_rewrite import exchanged_now, hold_journal
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_version import FOLDER
from logkeep.store.local.directory import opened_below, opened_root, os_errors_about

_LOCK = "lock"
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class HeldDataset:
    target: DatasetTarget
    """The dataset for changes by this process. In a bucket, a change is refused once another run has the journal."""
    files: DatasetTarget
    """The same dataset for tasks: it can be pickled."""
    journal: HeldJournal | None = None
    """The journal of a dataset in a bucket; None in a directory."""


@contextmanager
def lock_dataset(target: DatasetTarget) -> Iterator[HeldDataset]:
    """Lock a dataset for one run. Raises Locked. The kernel releases the file lock of a dead process; the next run
    acquires the journal of a dead one.

    What a killed run left in a bucket is completed or removed first, so plan only under the lock.
    """
    if target.directory is None:
        with hold_journal(target) as journal:
            yield HeldDataset(journal.checked(target), DatasetTarget(journal.owned()), journal)
        return
    with (
        os_errors_about(f"{FOLDER}/{_LOCK}"),
        opened_root(target.directory) as root,
        opened_below(root, [FOLDER], create=True) as folder,
    ):
        descriptor = os.open(_LOCK, _FLAGS, 0o600, dir_fd=folder)
    try:
        with os_errors_about(f"{FOLDER}/{_LOCK}"):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Locked("another run writes this dataset", subject=target.url) from error
        if exchanged_now(target) is not None:
            with hold_journal(target):
                pass  # it was copied from a bucket in the middle of an exchange, which is completed
        yield HeldDataset(target, target)
    finally:
        os.close(descriptor)
