"""The directories that a local store needs: its root and `.partial` in it. Created for `init`, removed if unused.

`.partial` has the unfinished files, and the lock of `replace`. A lock file may be removed while another process waits
for it; so a process that gets the lock checks that the file still has a name.
"""

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from logkeep.errors import StoreLocationMissing
from logkeep.store.local.directory import translated
from logkeep.store.local.files import sync_path

PARTIAL = ".partial"
_REPLACE_LOCK = "replace.lock"
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def missing_directories(root: Path) -> list[Path]:
    """The directories of a store that do not exist, innermost first."""
    return [path for path in [root / PARTIAL, root, *root.parents] if not os.path.lexists(path)]


def create_root(root: Path) -> None:
    """Create the root and its parents, durably. Existing ones are not changed."""
    try:
        for path in reversed([path for path in missing_directories(root) if path != root / PARTIAL]):
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
            sync_path(path.parent)
    except (FileNotFoundError, NotADirectoryError) as error:
        what = f"the directory cannot be created: {(error.strerror or 'no such directory').lower()}"
        raise StoreLocationMissing(what, subject=str(root)) from error
    except OSError as error:
        raise translated(error, str(root)) from error


def remove_unused(root: Path, directories: Sequence[Path]) -> None:
    """Remove those of these directories, innermost first, that hold nothing but the lock of `replace`."""
    with suppress(OSError):  # something is in it: then it stays, and those around it
        for path in directories:
            if path == root / PARTIAL:
                _remove_lock(path)
            path.rmdir()


def is_replace_lock(leaf: str) -> bool:
    return leaf == _REPLACE_LOCK


def take_replace_lock(partials: int) -> int:
    """Wait for the lock of `replace` in the directory `partials`; the descriptor holds it until it is closed."""
    while True:
        descriptor = os.open(_REPLACE_LOCK, _LOCK_FLAGS, 0o600, dir_fd=partials)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _remove_lock(partials: Path) -> None:
    """Remove the lock file unless another process holds it."""
    with suppress(FileNotFoundError):
        descriptor = os.open(partials / _REPLACE_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (partials / _REPLACE_LOCK).unlink()
        finally:
            os.close(descriptor)
