"""Lists a directory tree in the order of full names, as object stores do.

`a-b` comes before `a/b`: a directory sorts with its slash. Links, other special files and unsafe names are skipped
and added to `foreign`.
"""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from logkeep.errors import UnsafeName
from logkeep.store.base import ObjectInfo, safe_name
from logkeep.store.local.directory import translated

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def info_of(name: str, status: os.stat_result) -> ObjectInfo:
    """The metadata of an object from the status of its file."""
    return ObjectInfo(
        name=name,
        size=status.st_size,
        modified=_EPOCH + timedelta(microseconds=status.st_mtime_ns // 1000),
        version=f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}",
    )


def walk(
    directory: int, prefix: str, after: str, foreign: list[str], skipped: frozenset[str] = frozenset()
) -> Iterator[ObjectInfo]:
    """Every object below an open directory whose name is greater than `after`; `skipped` names are left out."""
    for entry, is_directory in _entries(directory, prefix, skipped):
        name = prefix + entry
        if not _is_safe(name):
            foreign.append(_printable(name))
        elif is_directory:
            below = f"{name}/"
            if below > after or after.startswith(below):
                yield from _walk_below(directory, entry, below, after, foreign)
        elif name > after:
            yield from _object(directory, entry, name, foreign)


def _entries(directory: int, prefix: str, skipped: frozenset[str]) -> list[tuple[str, bool]]:
    try:
        with os.scandir(directory) as found:
            entries = [(e.name, e.is_dir(follow_symlinks=False)) for e in found if e.name not in skipped]
    except OSError as error:
        raise translated(error, prefix) from error
    return sorted(entries, key=lambda entry: f"{entry[0]}/" if entry[1] else entry[0])


def _walk_below(directory: int, entry: str, below: str, after: str, foreign: list[str]) -> Iterator[ObjectInfo]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(entry, flags, dir_fd=directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise translated(error, below) from error
    try:
        yield from walk(descriptor, below, after, foreign)
    finally:
        os.close(descriptor)


def _object(directory: int, entry: str, name: str, foreign: list[str]) -> Iterator[ObjectInfo]:
    try:
        status = os.stat(entry, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return  # deleted since the directory was read
    if stat.S_ISREG(status.st_mode):
        yield info_of(name, status)
    else:
        foreign.append(name)


def _is_safe(name: str) -> bool:
    try:
        safe_name(name)
    except UnsafeName:
        return False
    return True


def _printable(name: str) -> str:
    """A name as text that is safe in a terminal and in JSON, also if it is not UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
