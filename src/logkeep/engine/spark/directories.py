"""Local directories that units use, on a cluster: every worker must see the ones that the driver sees.

A worker with another directory under the same path would find objects missing, or write to a place that nothing reads.
So the driver notes a sign of each directory: the repository's id, a new file with a random name where units write, or
else some entries, of which one must still be there, because a server may remove files meanwhile. Each worker checks the
sign before its first unit, which may be hours later.
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
_ENTRIES = 16


@dataclass(frozen=True)
class SharedDirectory:
    """A directory that units read or write."""

    path: Path
    written: bool = False
    file: str = ""
    """A small document in it that names the repository; empty if there is none."""


class DirectorySign(msgspec.Struct, frozen=True):
    """What a worker must find in the directory."""

    path: str
    marks: tuple[tuple[str, str], ...]
    """Names in it, each with its inode or with the id in it; one must be there. No names: it had no entry."""
    by_id: bool = False
    made: bool = False
    """The file was made for this and is removed at the end."""


class WorkerHost(msgspec.Struct, frozen=True):
    """The host of a worker that sees all directories: the result of a check."""

    host: str


def make_sign(directory: SharedDirectory) -> DirectorySign:
    """The sign of a directory, as the driver sees it. Raises UsageError if the driver itself cannot read it."""
    try:
        return _sign(directory)
    except OSError as error:
        raise UsageError(
            f"the directory cannot be read: {error.strerror}", subject=str(directory.path), remedy="check its path"
        ) from error


def _sign(directory: SharedDirectory) -> DirectorySign:
    path = str(directory.path)
    if directory.file:
        return DirectorySign(path, ((directory.file, _id_in(directory.path / directory.file)),), by_id=True)
    if directory.written and (made := _new_file(directory.path)):
        return DirectorySign(path, ((made, _inode(directory.path / made)),), made=True)
    entries = sorted((entry.inode(), entry.name) for entry in os.scandir(path))
    step = max(len(entries) // _ENTRIES, 1)
    return DirectorySign(path, tuple((name, str(inode)) for inode, name in entries[::step]))


def remove_sign(sign: DirectorySign) -> None:
    if sign.made:
        with suppress(OSError):
            (Path(sign.path) / sign.marks[0][0]).unlink()


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
    if not sign.marks:
        return Path(sign.path).is_dir()
    return any(_mark(Path(sign.path) / name, by_id=sign.by_id) == mark for name, mark in sign.marks)


def _mark(path: Path, *, by_id: bool) -> str | None:
    try:
        return _id_in(path) if by_id else _inode(path)
    except OSError:
        return None


def _inode(path: Path) -> str:
    return str(path.lstat().st_ino)


class _Named(msgspec.Struct):
    repository: str


def _id_in(path: Path) -> str:
    """The repository's id, which never changes; of any other document its hash."""
    with path.open("rb") as file:
        content = file.read(_LARGEST)
    try:
        return msgspec.json.decode(content.partition(b"\n")[0], type=_Named).repository
    except msgspec.DecodeError:
        return hashlib.sha256(content).hexdigest()


def _new_file(directory: Path) -> str:
    """Create a file with a random name; returns the name, or an empty text where none can be created."""
    name = f".logkeep-{secrets.token_hex(8)}"
    try:
        os.close(os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except OSError:
        return ""
    return name
