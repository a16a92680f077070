"""A repository for one run: below a directory of the user's choice, only for its owner, removed at the end.

A run that was killed leaves its directory. The next run removes those whose lock no process holds.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from logkeep.errors import StoreFull, UsageError
from logkeep.model.time import TokenSource
from logkeep.repository.access import Repository, create_repository
from logkeep.repository.chain.format import StoreFacts
from logkeep.store.local.files import locked_by_another
from logkeep.store.local.store import LocalStore

_PREFIX, _LOCK, _ALL = "logkeep-scratch-", "lock", "logkeep-scratch.lock"
_SPARE_BYTES = 64 << 20


@contextmanager
def scratch_repository(parent: Path, dataset_bytes: int, now: datetime, tokens: TokenSource) -> Iterator[Repository]:
    """An empty repository with room for a dataset of this size. Raises StoreFull or UsageError."""
    folder, held = _begin(parent, dataset_bytes, tokens())
    try:
        store = LocalStore(str(folder / "repo"))
        yield create_repository(store, StoreFacts(put_new=True, replace=True, durable=True), now, tokens)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _begin(parent: Path, dataset_bytes: int, token: str) -> tuple[Path, int]:
    """Make the directory and lock it, with no other run between the two; remove what killed runs left."""
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        alone = os.open(parent / _ALL, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise UsageError(f"it cannot be used: {error.strerror}", subject=f"--scratch {parent}") from error
    try:
        fcntl.flock(alone, fcntl.LOCK_EX)
        remove_abandoned(parent)
        _refuse_full(parent, dataset_bytes)
        folder = parent / f"{_PREFIX}{token}"
        (folder / "repo").mkdir(mode=0o700, parents=True)
        folder.chmod(0o700)
        held = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX)
        return folder, held
    finally:
        os.close(alone)


def remove_abandoned(parent: Path) -> int:
    """Remove the directories of runs that have ended; returns how many. Only this user's own are removed."""
    removed = 0
    for folder in sorted(parent.glob(f"{_PREFIX}*")):
        if folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != os.geteuid():
            continue
        if not _in_use(folder / _LOCK):
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed


def _in_use(lock: Path) -> bool:
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return locked_by_another(descriptor)


def _refuse_full(parent: Path, dataset_bytes: int) -> None:
    needed, free = dataset_bytes * 3 // 2 + _SPARE_BYTES, shutil.disk_usage(parent).free
    if free < needed:
        raise StoreFull(
            f"{free >> 20} MiB are free, and the import may need {needed >> 20} MiB",
            subject=str(parent),
            remedy="name a directory with more space with --scratch, or import into a repository first",
        )
