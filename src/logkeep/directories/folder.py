"""A directory that was opened once. It is read by its descriptor; files are opened and changed by its worker.

The worker is this process, or for root in another user's directory a child with that user's rights. What such a child
opens must belong to that user: a file of another one is never read, moved or replaced on an owner's behalf.
"""

import errno
import os
import shlex
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from logkeep.directories.file_work import is_regular, plain
from logkeep.directories.owner_process import OwnerProcess, Worker, worker_for
from logkeep.directories.path_walk import open_walked, user_name
from logkeep.errors import OtherOwner


class FolderEntry(NamedTuple):
    name: str
    status: os.stat_result
    """Of the entry itself, also if it is a link."""


class Folder:
    """`path` is for messages: it is never opened again."""

    def __init__(self, path: Path, worker: Worker, handle: int, descriptor: int) -> None:
        self.path, self.worker, self.handle, self.descriptor = path, worker, handle, descriptor
        self.status = os.fstat(descriptor)
        weakref.finalize(self, _close, worker, handle, descriptor)

    @property
    def owner(self) -> int:
        return self.status.st_uid

    @property
    def trusted(self) -> frozenset[int]:
        """The users whose documents count here."""
        return frozenset({0, self.worker.uid})

    def names(self) -> list[str]:
        with self._about():
            return sorted(os.listdir(self.descriptor))  # noqa: PTH208 - a descriptor has no path

    def entries(self) -> list[FolderEntry]:
        """Without those that vanish meanwhile."""
        found = [(name, self.find(name)) for name in self.names()]
        return [FolderEntry(name, status) for name, status in found if status is not None]

    def find(self, name: str) -> os.stat_result | None:
        """The status of an entry; None if there is none."""
        with self._about(name):
            try:
                return os.stat(plain(name), dir_fd=self.descriptor, follow_symlinks=False)
            except FileNotFoundError:
                return None

    def folder(self, name: str) -> "Folder | None":
        """A directory in this one; None if there is none. Raises OtherOwner for a link, or another user's directory."""
        try:
            with self._about(name):
                found = self.worker.open_directory(self.handle, name)
        except FileNotFoundError:
            return None
        except OSError:
            self._explain(name)
            raise
        status = os.fstat(found.descriptor)
        worker, handle = self.worker, found.handle
        if isinstance(worker, OwnerProcess):
            self._check_owner(name, status)
        elif isinstance(other := worker_for(status), OwnerProcess):
            worker, handle = other, other.adopt(found.descriptor)
        return Folder(self.path / name, worker, handle, found.descriptor)

    @contextmanager
    def opened(self, name: str) -> Iterator[int]:
        """A descriptor of a regular file, for reading. Raises FileNotFoundError, OSError, OtherOwner."""
        descriptor = self.open_file(name)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def open_file(self, name: str) -> int:
        """As `opened`, for a caller that closes it."""
        try:
            with self._about(name):
                descriptor = self.worker.open_file(self.handle, name).descriptor
        except FileNotFoundError:
            raise
        except OSError:
            self._explain(name)
            raise
        try:
            self._check_file(name, os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def make_folder(self, name: str) -> None:
        with self._about(name):
            self.worker.make_directory(self.handle, name)

    def create(self, name: str, *, direct: bool = False) -> "NewFile":
        with self._about(name):
            return NewFile(self, name, self.worker.create(self.handle, name, direct=direct))

    def set_owner(self, uid: int, gid: int, mode: int) -> None:
        """Of this directory."""
        with self._about():
            self.worker.set_owner(self.handle, uid, gid, mode)
        self.status = os.fstat(self.descriptor)

    def rename(self, name: str, to: "Folder", new_name: str) -> None:
        if to.worker is not self.worker and (
            isinstance(to.worker, OwnerProcess) or isinstance(self.worker, OwnerProcess)
        ):
            raise _other_owner(to.path / new_name, to.owner, self.path, self.owner)
        with self._about(name):
            self.worker.rename(self.handle, name, to.handle, new_name)

    def exchange(self, name: str, other: str) -> None:
        with self._about(name):
            self.worker.exchange(self.handle, name, other)

    def remove(self, name: str) -> None:
        """A file or a link. Raises FileNotFoundError."""
        with self._about(name):
            self.worker.remove(self.handle, name)

    def remove_folder(self, name: str) -> None:
        with self._about(name):
            self.worker.remove_directory(self.handle, name)

    def sync(self) -> None:
        with self._about():
            self.worker.sync(self.handle)

    def check_writable(self) -> None:
        """Raises PermissionError."""
        with self._about():
            self.worker.check_writable(self.handle)

    def check_owner(self, name: str, status: os.stat_result) -> None:
        """Raises OtherOwner for an entry that the owner's child would have to move and another user owns."""
        if isinstance(self.worker, OwnerProcess):
            self._check_owner(name, status)

    def refuse_link(self, name: str) -> None:
        """Raises OtherOwner if the entry is a link."""
        status = self.find(name)
        if status is not None and stat.S_ISLNK(status.st_mode):
            raise OtherOwner(
                "it is a link, and a restore follows none",
                subject=str(self.path / name),
                remedy=f"find out who made it; then: rm {shlex.quote(str(self.path / name))}",
            )

    def _explain(self, name: str) -> None:
        """Raises OtherOwner where that is why an entry cannot be opened."""
        self.refuse_link(name)
        status = self.find(name)
        if status is not None:
            self.check_owner(name, status)

    def _check_file(self, name: str, status: os.stat_result) -> None:
        if not is_regular(status):
            raise OSError(errno.EINVAL, "it is not a regular file", str(self.path / name))
        self.check_owner(name, status)

    def _check_owner(self, name: str, status: os.stat_result) -> None:
        if status.st_uid != self.worker.uid:
            raise _other_owner(self.path / name, status.st_uid, self.path, self.worker.uid)

    @contextmanager
    def _about(self, name: str | None = None) -> Iterator[None]:
        """Errors name the path."""
        try:
            yield
        except OSError as error:
            error.filename, error.filename2 = str(self.path if name is None else self.path / name), None
            raise


class NewFile:
    """A file that is being written."""

    def __init__(self, folder: Folder, name: str, handle: int) -> None:
        self._folder, self._worker, self._name, self._handle = folder, folder.worker, name, handle

    def write(self, data: bytes | memoryview) -> None:
        """An error may come with the next call."""
        with self._folder._about(self._name):
            self._worker.write(self._handle, data)

    def set_owner(self, uid: int, gid: int, mode: int) -> None:
        with self._folder._about(self._name):
            self._worker.set_owner(self._handle, uid, gid, mode)

    def finish(self) -> None:
        """Make the file durable; its entry becomes so with the directory's `sync`."""
        with self._folder._about(self._name):
            self._worker.finish(self._handle)

    def close(self) -> None:
        """Harmless a second time."""
        if self._handle >= 0:
            handle, self._handle = self._handle, -1
            self._worker.close(handle)


def open_folder(path: Path) -> Folder:
    """Open a directory that the user named. Raises OSError; OtherOwner where root cannot work there safely."""
    walked = open_walked(path)
    try:
        worker = worker_for(os.fstat(walked.descriptor))
        handle = worker.adopt(walked.descriptor)
    except BaseException:
        os.close(walked.descriptor)
        raise
    return Folder(walked.path, worker, handle, walked.descriptor)


def _other_owner(path: Path, uid: int, above: Path, owner: int) -> OtherOwner:
    return OtherOwner(
        f"it belongs to {user_name(uid)}, and {above} to {user_name(owner)}",
        subject=str(path),
        remedy=f"check how it came there; if the server wrote it: chown -h {owner} {shlex.quote(str(path))}",
    )


def _close(worker: Worker, handle: int, descriptor: int) -> None:
    os.close(descriptor)
    if isinstance(worker, OwnerProcess):
        worker.close(handle)
