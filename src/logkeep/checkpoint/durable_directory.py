"""Creates and syncs directories so that a power loss keeps their entries.

Syncing a new file keeps its bytes, not its name: for that its directory is synced too.
"""

import errno
import os
from pathlib import Path


def make_durable_directory(path: Path) -> None:
    """Make a directory and its missing parents, for this user alone. It exists when this returns, also after a power
    loss. Nothing changes if it is there."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
        sync_directory(one.parent)
    if not missing and not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def sync_directory(path: Path) -> None:
    """Make the entries of a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
