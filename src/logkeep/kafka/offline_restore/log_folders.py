"""The directories of a stopped broker, each opened once. Root works in another user's directories as that user."""

import os
from collections.abc import Iterable
from pathlib import Path

from logkeep.directories.folder import Folder, open_folder
from logkeep.errors import LogDirUnusable

_SMALL_FILES = (
    ".lock", "meta.properties", "log-start-offset-checkpoint", "replication-offset-checkpoint",
)  # fmt: skip
_LARGEST = 64 << 20


def open_root(root: Path) -> Folder:
    """Open one of `log.dirs`. Raises LogDirUnusable, OtherOwner."""
    try:
        return open_folder(root)
    except FileNotFoundError as error:
        raise LogDirUnusable("there is no such directory", subject=str(root)) from error
    except (OSError, RuntimeError) as error:
        what = getattr(error, "strerror", None) or "it cannot be opened"
        raise LogDirUnusable(what.lower(), subject=str(root)) from error


def partition_folder(root: Folder, name: str) -> Folder:
    """Open the directory of a partition. Raises LogDirUnusable, and OtherOwner for a link or for a directory that does
    not belong to the owner of the directory above."""
    try:
        found = root.folder(name)
    except OSError as error:
        raise LogDirUnusable(f"cannot be opened ({error.strerror})", subject=str(root.path / name)) from error
    if found is None:
        raise LogDirUnusable("there is no such directory", subject=str(root.path / name))
    return found


def check_owners(root: Folder, partitions: Iterable[str]) -> None:
    """Raise OtherOwner, before anything is changed, for a link or for another user's file in a directory that will be
    replaced."""
    for name in root.names():
        if name.endswith("-delete"):
            root.refuse_link(name)
    for name in _SMALL_FILES:
        status = root.find(name)
        if status is not None:
            root.refuse_link(name)
            root.check_owner(name, status)
    for name in partitions:
        folder = partition_folder(root, name)
        for entry in folder.entries():
            folder.refuse_link(entry.name)
            folder.check_owner(entry.name, entry.status)
    try:
        root.check_writable()
    except OSError as error:
        remedy = "run as the broker's user, or as root"
        raise LogDirUnusable("this user may not write there", subject=str(root.path), remedy=remedy) from error


def read_small(folder: Folder, name: str) -> bytes:
    """The content of a small file. Raises OSError, OtherOwner."""
    with folder.opened(name) as file:
        return os.pread(file, _LARGEST, 0)
