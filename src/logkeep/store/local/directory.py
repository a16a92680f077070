"""Opens directories below a root without ever following a link.

Each step opens one path part relative to the directory before it, with O_NOFOLLOW: if a directory is replaced by a
link, even between two steps, UnsafeName is raised and nothing outside of the root is opened. The root itself is the
user's choice and may be a link. Operating system errors are translated to errors of `logkeep.errors`.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.errors import (
    AlreadyExists,
    LogkeepError,
    ObjectMissing,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreLocationMissing,
    StoreUnreachable,
    UnsafeName,
)

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_KINDS: dict[int, tuple[type[StoreError], str]] = {
    errno.ENOSPC: (StoreFull, "no space left on the device"),
    errno.EDQUOT: (StoreFull, "the disk quota is used up"),
    errno.EFBIG: (StoreFull, "the file is larger than this file system allows"),
    errno.EACCES: (StoreDenied, "permission denied"),
    errno.EPERM: (StoreDenied, "operation not permitted"),
    errno.EROFS: (StoreDenied, "the file system is read-only"),
    errno.ENOENT: (ObjectMissing, "no such object"),
    errno.EEXIST: (AlreadyExists, "the name exists already"),
    errno.ELOOP: (UnsafeName, "it is a link"),
    errno.ENAMETOOLONG: (UnsafeName, "the name is too long for this file system"),
    errno.ESTALE: (StoreUnreachable, "the network file system lost the file handle"),
    errno.ETIMEDOUT: (StoreUnreachable, "the network file system does not answer"),
    errno.EHOSTDOWN: (StoreUnreachable, "the network file system does not answer"),
}
_OTHER = "check the disk, the limits of this process (`ulimit -a`) and the kernel's log, then run again"


def translated(error: OSError, subject: str) -> LogkeepError:
    """Our error for an error of the operating system."""
    kind, what = _KINDS.get(error.errno or 0, (StoreError, error.strerror or "the operating system refused it"))
    return kind(what.lower(), subject=subject, remedy=_OTHER if kind is StoreError else None)


@contextmanager
def os_errors_about(subject: str) -> Iterator[None]:
    """Translate errors of the operating system inside the block."""
    try:
        yield
    except OSError as error:
        raise translated(error, subject) from error


@contextmanager
def opened_root(root: Path) -> Iterator[int]:
    """A descriptor of the root directory, or StoreLocationMissing."""
    try:
        descriptor = os.open(root, _DIRECTORY)
    except FileNotFoundError as error:
        raise StoreLocationMissing("no such directory", subject=str(root)) from error
    except NotADirectoryError as error:
        raise StoreLocationMissing("it is not a directory", subject=str(root)) from error
    except OSError as error:
        raise translated(error, str(root)) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_below(base: int, parts: list[str], *, create: bool = False) -> Iterator[int]:
    """A descriptor of the directory `parts` below `base`; with `create`, missing ones are created durably."""
    current = os.dup(base)
    try:
        for depth, part in enumerate(parts):
            below = _step(current, part, "/".join(parts[: depth + 1]), create=create)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _step(current: int, part: str, path: str, *, create: bool) -> int:
    try:
        if create:
            make_directory(current, part)
        return os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise _not_a_directory(current, part, path, create=create) from error
        raise translated(error, path) from error


def _not_a_directory(current: int, part: str, path: str, *, create: bool) -> LogkeepError:
    """A link is unsafe. A plain file has nothing below it, and nothing can be created there."""
    try:
        plain = stat.S_ISREG(os.stat(part, dir_fd=current, follow_symlinks=False).st_mode)
    except OSError:
        plain = False
    if plain and not create:
        return ObjectMissing("no such object", subject=path)
    return UnsafeName(
        "it is a file where a directory is needed" if plain else "it is a link, not a directory", subject=path
    )


def make_directory(parent: int, name: str) -> None:
    """Create a directory with mode 0700, unless it exists. Its entry is durable when this returns."""
    try:
        os.mkdir(name, mode=0o700, dir_fd=parent)
    except FileExistsError:
        return
    os.fsync(parent)


def require_regular(descriptor: int, name: str) -> os.stat_result:
    """The status of a regular file. Raises UnsafeName for pipes and devices, ObjectMissing for a directory."""
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise ObjectMissing("no such object", subject=name)
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeName("it is not a regular file", subject=name)
    return status
