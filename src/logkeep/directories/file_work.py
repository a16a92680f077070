"""The closed list of changes to files, each relative to an open directory. No link is followed.

`FileWork` works with the rights of its process. The child of `owner_process` runs the same class with the rights of a
directory's owner, so this module imports nothing that the child must not have. A handle is a descriptor of the process
that works. Raises OSError.
"""

import ctypes
import errno
import os
import stat
from typing import Final, NamedTuple

from logkeep.errors import StoreError
from logkeep.store.local.files import write_all
from logkeep.store.local.stream import DirectStream

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # opening a pipe must not wait for its writer
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_GROUP_BITS: Final = 0o070
_EXCHANGE: Final = 2


class OpenHandle(NamedTuple):
    """An open file or directory: the worker's handle, and a descriptor of this process to read from."""

    handle: int
    descriptor: int


class FileWork:
    """In this process: handles are its own descriptors."""

    def __init__(self) -> None:
        self._streams: dict[int, DirectStream] = {}

    @property
    def uid(self) -> int:
        """Files of this user and of root are trusted."""
        return os.geteuid()

    def gives_group(self, gid: int) -> bool:
        """Whether `set_owner` can give a file to this group."""
        return os.geteuid() == 0 or gid in {os.getegid(), *os.getgroups()}

    def adopt(self, descriptor: int) -> int:
        """The handle of a descriptor that the caller opened and keeps open."""
        return descriptor

    def open_directory(self, at: int, name: str) -> OpenHandle:
        return _handle_of(os.open(plain(name), _DIRECTORY, dir_fd=at))

    def open_file(self, at: int, name: str) -> OpenHandle:
        return _handle_of(os.open(plain(name), _READ, dir_fd=at))

    def make_directory(self, at: int, name: str) -> None:
        """For its owner alone, until `set_owner`."""
        os.mkdir(plain(name), mode=0o700, dir_fd=at)

    def create(self, at: int, name: str, *, direct: bool = False) -> int:
        """A new file, for its owner alone. `direct`: written past the page cache, and locked while it is open."""
        if not direct:
            return os.open(plain(name), _NEW, 0o600, dir_fd=at)
        with _store_errors():
            stream = DirectStream(plain(name), at, name, 0)
        self._streams[stream.descriptor] = stream
        return stream.descriptor

    def write(self, handle: int, data: bytes | memoryview) -> None:
        """Append."""
        stream = self._streams.get(handle)
        if stream is None:
            write_all(handle, data)
            return
        with _store_errors():
            stream.write(data)

    def finish(self, handle: int) -> None:
        """Make the written bytes durable."""
        if handle in self._streams:
            with _store_errors():
                self._streams[handle].finish()
        os.fsync(handle)

    def sync(self, at: int) -> None:
        """Make the entries of a directory durable."""
        os.fsync(at)

    def set_owner(self, handle: int, uid: int, gid: int, mode: int) -> None:
        """Owner first, then mode: a change of owner may clear bits of the mode.

        An owner who may not give the file to its group gets a file that no group can use.
        """
        known = os.fstat(handle)
        if (known.st_uid, known.st_gid) != (uid, gid):
            try:
                os.fchown(handle, uid, gid)
            except PermissionError:
                if known.st_uid != uid:
                    raise
                mode &= ~_GROUP_BITS
        os.fchmod(handle, mode)

    def close(self, handle: int) -> None:
        stream = self._streams.pop(handle, None)
        if stream is not None:
            stream.close()
        else:
            os.close(handle)

    def rename(self, at: int, name: str, to: int, new_name: str) -> None:
        os.rename(plain(name), plain(new_name), src_dir_fd=at, dst_dir_fd=to)

    def exchange(self, at: int, name: str, other: str) -> None:
        """Two names of one directory in one step. Raises OSError with ENOSYS or EINVAL where that is not possible."""
        rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
        if rename is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        if rename(at, os.fsencode(plain(name)), at, os.fsencode(plain(other)), _EXCHANGE):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def remove(self, at: int, name: str) -> None:
        os.unlink(plain(name), dir_fd=at)

    def remove_directory(self, at: int, name: str) -> None:
        os.rmdir(plain(name), dir_fd=at)

    def check_writable(self, at: int) -> None:
        """Raises PermissionError."""
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=at, effective_ids=True):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def plain(name: str) -> str:
    """The name of an entry, never a path."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise OSError(errno.EINVAL, "this is not the name of a file")
    return name


def is_regular(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)


def _handle_of(descriptor: int) -> OpenHandle:
    return OpenHandle(descriptor, descriptor)


class _store_errors:  # noqa: N801 - reads as a statement
    """The error of the operating system behind an error of the stream."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StoreError):
            cause = error.__cause__
            raise cause if isinstance(cause, OSError) else OSError(errno.EIO, error.what)
