"""Directories and files of servers and Spark that only this user can enter or read."""

import os
from pathlib import Path
from typing import BinaryIO


def make_private(path: Path) -> None:
    """Make the directory with mode 0700. An earlier one of this user gets that mode too. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.fstat(opened)
        if found.st_uid == os.geteuid() and found.st_mode & 0o077:
            os.fchmod(opened, 0o700)
    finally:
        os.close(opened)


def append_private(path: Path) -> BinaryIO:
    """Open a file with mode 0600 for appending; a link in its place is refused. Raises OSError."""
    opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.fchmod(opened, 0o600)
    return os.fdopen(opened, "ab")
