"""Local directories that units use, on a cluster: every worker must see the ones that the driver sees.

A worker with another directory under the same path would find objects missing, or write to a place that no one reads.
So the driver takes a sign of each directory: the content of a file of known name, a new file of random name where units
write, or else the newest entry. Each worker looks for the sign before its first unit.
"""

import hashlib
import os
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from logkeep.errors import UsageError
from logkeep.model.work import Progress

_LARGEST = 64 * 1024


@dataclass(frozen=True)
class SharedDirectory:
    """A directory that units read or write."""

    path: Path
    written: bool = False
    file: str = ""
    """A small file in it whose content no other directory has; empty if there is none."""


class DirectorySign(msgspec.Struct, frozen=True):
    """What a worker must find in the directory."""

    path: str
    entry: str
    """A name in it; empty where it has no entry."""
    mark: str
    """The inode, or the hash of the content."""
    hashed: bool = False
    made: bool = False
    """The file was made for this and is removed at the end."""


class WorkerHost(msgspec.Struct, frozen=True):
    """The result of a check on one worker."""

    host: str


def make_sign(directory: SharedDirectory) -> DirectorySign:
    """Raises UsageError if the driver itself cannot read the directory."""
    try:
        return _sign(directory)
    except OSError as error:
        raise UsageError(
            f"the directory cannot be read: {error.strerror}", subject=str(directory.path), remedy="check its path"
        ) from error


def _sign(directory: SharedDirectory) -> DirectorySign:
    path = str(directory.path)
    if directory.file:
        return DirectorySign(path, directory.file, _content(directory.path / directory.file), hashed=True)
    if directory.written and (made := _new_file(directory.path)):
        return DirectorySign(path, made, _inode(directory.path / made), made=True)
    entries = [(entry.stat(follow_symlinks=False).st_mtime_ns, entry.name) for entry in os.scandir(path)]
    newest = max(entries)[1] if entries else ""
    return DirectorySign(path, newest, _inode(directory.path / newest))


def remove_sign(sign: DirectorySign) -> None:
    if sign.made:
        with suppress(OSError):
            (Path(sign.path) / sign.entry).unlink()


@cache
def refuse_unseen(signs: tuple[DirectorySign, ...]) -> None:
    """In a worker, once: raises UsageError if a directory is not the driver's."""
    for sign in signs:
        if not _is_seen(sign):
            raise UsageError(
                f"worker {socket.gethostname()} does not see this directory as the driver does",
                subject=sign.path,
                remedy="mount it under the same path on every host of the cluster, or leave --master out",
            )


def report_host(_unit: int, _progress: Progress) -> WorkerHost:
    """The task of a check: its worker looks for the signs before it runs."""
    return WorkerHost(socket.gethostname())


def _is_seen(sign: DirectorySign) -> bool:
    entry = Path(sign.path) / sign.entry
    try:
        return (_content(entry) if sign.hashed else _inode(entry)) == sign.mark
    except OSError:
        return False


def _inode(path: Path) -> str:
    return str(path.lstat().st_ino)


def _content(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.sha256(file.read(_LARGEST)).hexdigest()


def _new_file(directory: Path) -> str:
    """Its name; empty where none can be made."""
    name = f".logkeep-{secrets.token_hex(8)}"
    try:
        os.close(os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except OSError:
        return ""
    return name
