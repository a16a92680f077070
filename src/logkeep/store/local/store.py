"""The store in a local directory: objects are files, durable when acknowledged, complete or absent.

A new object is written to a private file in `.partial/`, synced, and linked to its name: a link fails if the name
exists, and no reader sees an incomplete file. Directories are synced too, so a name survives a power loss.
Objects never change in place: `replace` renames a new file over the old one while it holds a lock.
Files are 0600, directories 0700. Links are never followed below the root.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path

from logkeep.errors import Damaged, ObjectMissing, StoreError, UnsafeName, VersionMismatch
from logkeep.model.time import TokenSource, random_token
from logkeep.store.base import Abilities, ObjectInfo, ObjectMetadata, ObjectWriter, safe_name, safe_prefix
from logkeep.store.local.directory import opened_below, opened_root, os_errors_about, require_regular
from logkeep.store.local.files import (
    READ_FLAGS,
    SyncedDirectories,
    is_held,
    read_exactly,
    remove_if_empty,
    write_all,
)
from logkeep.store.local.listing import info_of, walk
from logkeep.store.local.root import PARTIAL, create_root, is_replace_lock, take_replace_lock
from logkeep.store.local.stream import DirectStream

Infos = list[ObjectInfo]  # inside the class `list` is the method
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class LocalStore:
    """A directory. Picklable: it holds no open file between calls."""

    abilities = Abilities(put_new=True, replace=True, durable=True)

    def __init__(self, root: Path | str, token: TokenSource = random_token) -> None:
        self.root = Path(root).absolute()
        self._token = token
        self._synced = SyncedDirectories()

    @property
    def url(self) -> str:
        return self.root.as_uri()

    def create(self) -> None:
        """Create the root directory and its parents; only `init` does. An existing one is not changed."""
        create_root(self.root)

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        with self._parent(name, create=True) as (root, parent, leaf), self._partial(root) as (partials, temp, fd):
            write_all(fd, data)
            self._publish(fd, name)
            os.link(temp, leaf, src_dir_fd=partials, dst_dir_fd=parent, follow_symlinks=False)
            os.fsync(parent)

    def replace(self, name: str, data: bytes, version: str) -> None:
        """The lock covers only comparison and rename. A process that is stopped while it holds the lock stops all
        others, and a disk needs time to sync."""
        with self._parent(name) as (root, parent, leaf):
            old = self._expected(parent, leaf, name, version)
            with self._partial(root) as (partials, temp, fd):
                write_all(fd, data)
                self._publish(fd, name, later_than=old.modified)
                with self._locked(root):
                    self._expected(parent, leaf, name, version)
                    os.rename(temp, leaf, src_dir_fd=partials, dst_dir_fd=parent)
                os.fsync(parent)

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        with self._parent(name, create=True) as (root, _, _):
            temp = self._token()
            with opened_below(root, [PARTIAL], create=True) as partials:
                return LocalWriter(self, name, temp, DirectStream(temp, partials, name, size_hint))

    def copy_new(self, name: str, to: str) -> None:
        """A second name of the same file: objects never change in place."""
        with self._parent(name) as (_, parent, leaf), self._parent(to, create=True) as (_, other, new):
            try:
                os.link(leaf, new, src_dir_fd=parent, dst_dir_fd=other, follow_symlinks=False)
            except FileExistsError:  # of an earlier attempt
                os.unlink(new, dir_fd=other)
                os.link(leaf, new, src_dir_fd=parent, dst_dir_fd=other, follow_symlinks=False)
            os.fsync(other)

    def get(self, name: str, limit: int) -> bytes:
        return self.get_with_info(name, limit)[0]

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        with self._reading(name) as (fd, status):
            if status.st_size > limit:
                raise Damaged(f"it has {status.st_size} bytes; at most {limit} are allowed", subject=name)
            return read_exactly(fd, 0, status.st_size, name), info_of(name, status)

    def get_range(self, name: str, start: int, length: int) -> bytes:
        with self._reading(name) as (fd, status):
            if start + length > status.st_size:
                raise Damaged(f"it ends before byte {start + length}", subject=name)
            return read_exactly(fd, start, length, name)

    def head(self, name: str) -> ObjectInfo:
        with self._parent(name) as (_, parent, leaf):
            return self._head(parent, leaf, name)

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        parts = safe_prefix(prefix).split("/")[:-1]
        if parts[:1] == [PARTIAL]:
            return
        with opened_root(self.root) as root:
            try:
                with opened_below(root, parts) as start:
                    skipped = frozenset() if parts else frozenset({PARTIAL})
                    yield from walk(start, prefix, after, [] if foreign is None else foreign, skipped)
            except ObjectMissing:
                return

    def some(self, prefix: str, most: int) -> Infos:
        return [*islice(self.list(prefix), most)]

    def delete(self, name: str) -> None:
        with (
            suppress(ObjectMissing),
            self._parent(name) as (_, parent, leaf),
            suppress(FileNotFoundError, IsADirectoryError),
        ):
            os.unlink(leaf, dir_fd=parent)

    def stale_partials(self, older_than: datetime) -> Infos:
        with suppress(ObjectMissing), opened_root(self.root) as root, opened_below(root, [PARTIAL]) as partials:
            found = walk(partials, f"{PARTIAL}/", "", [])
            return [info for info in found if self._is_stale(partials, info, older_than)]
        return []

    def sweep_partials(self, older_than: datetime) -> int:
        stale = self.stale_partials(older_than)
        for info in stale:
            self.discard(info.name.removeprefix(f"{PARTIAL}/"), info.name)
        return len(stale)

    def remove_empty(self, prefix: str) -> None:
        *above, leaf = safe_prefix(prefix).removesuffix("/").split("/")
        with (
            suppress(ObjectMissing),
            os_errors_about(prefix),
            opened_root(self.root) as root,
            opened_below(root, above) as parent,
        ):
            for _, directories, _, current in os.fwalk(leaf, topdown=False, dir_fd=parent):
                for name in directories:
                    remove_if_empty(name, current)
            remove_if_empty(leaf, parent)

    def finish(self, temp: str, descriptor: int, name: str) -> None:
        """Give a finished stream its name; called by `LocalWriter`."""
        with self._parent(name, create=True) as (root, parent, leaf), opened_below(root, [PARTIAL]) as partials:
            self._publish(descriptor, name)
            os.link(temp, leaf, src_dir_fd=partials, dst_dir_fd=parent, follow_symlinks=False)
            os.fsync(parent)
            os.unlink(temp, dir_fd=partials)

    def discard(self, temp: str, name: str) -> None:
        """Remove an unfinished stream."""
        with (
            os_errors_about(name),
            opened_root(self.root) as root,
            opened_below(root, [PARTIAL]) as partials,
            suppress(FileNotFoundError),
        ):
            os.unlink(temp, dir_fd=partials)

    def _is_stale(self, partials: int, info: ObjectInfo, older_than: datetime) -> bool:
        leaf = info.name.removeprefix(f"{PARTIAL}/")
        return not is_replace_lock(leaf) and info.modified < older_than and not is_held(partials, leaf)

    def _publish(self, descriptor: int, name: str, later_than: datetime | None = None) -> None:
        """Make the bytes durable, with a time stamp that distinguishes this file from others of the same name.

        The version is inode, size and time. The kernel's clock ticks every few milliseconds and inodes are reused, so
        random nanoseconds are added, and a replacement is always later than what it replaces.
        """
        status = os.fstat(descriptor)
        moment_ns = status.st_mtime_ns + int(self._token(), 16) % 1_000_000
        if later_than is not None:
            moment_ns = max(moment_ns, int(later_than.timestamp() * 1_000_000) * 1000 + 2_000)
        with os_errors_about(name):
            os.utime(descriptor, ns=(moment_ns, moment_ns))
            os.fsync(descriptor)

    @contextmanager
    def _parent(self, name: str, *, create: bool = False) -> Iterator[tuple[int, int, str]]:
        """Descriptors of the root and of the object's directory, and its file name."""
        *parts, leaf = safe_name(name).split("/")
        if (parts or [leaf])[0] == PARTIAL:
            raise UnsafeName(f"names below {PARTIAL}/ are reserved for the store", subject=name)
        with os_errors_about(name), opened_root(self.root) as root, opened_below(root, parts, create=create) as parent:
            if create:
                self._synced.ensure(root, parts)
            yield root, parent, leaf

    @contextmanager
    def _partial(self, root: int) -> Iterator[tuple[int, str, int]]:
        """A new private file: descriptor of its directory, its name and its own descriptor. Removed at the end."""
        temp = self._token()
        with opened_below(root, [PARTIAL], create=True) as partials:
            descriptor = os.open(temp, _CREATE, 0o600, dir_fd=partials)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield partials, temp, descriptor
            finally:
                os.close(descriptor)
                with suppress(FileNotFoundError):
                    os.unlink(temp, dir_fd=partials)

    @contextmanager
    def _locked(self, root: int) -> Iterator[None]:
        """One replacement at a time in this directory, among all processes. The kernel releases locks of dead ones."""
        with opened_below(root, [PARTIAL], create=True) as partials:
            descriptor = take_replace_lock(partials)
        try:
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _reading(self, name: str) -> Iterator[tuple[int, os.stat_result]]:
        with self._parent(name) as (_, parent, leaf):
            descriptor = os.open(leaf, READ_FLAGS, dir_fd=parent)
            try:
                yield descriptor, require_regular(descriptor, name)
            finally:
                os.close(descriptor)

    def _expected(self, parent: int, leaf: str, name: str, version: str) -> ObjectInfo:
        found = self._head(parent, leaf, name)
        if found.version != version:
            raise VersionMismatch("the object changed since it was read", subject=name)
        return found

    def _head(self, parent: int, leaf: str, name: str) -> ObjectInfo:
        status = os.stat(leaf, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            raise ObjectMissing("no such object", subject=name)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeName("it is a link or not a regular file", subject=name)
        return info_of(name, status)


class LocalWriter:
    """A stream into a LocalStore; the private file is locked while the writer lives."""

    def __init__(self, store: LocalStore, name: str, temp: str, stream: DirectStream) -> None:
        self._store = store
        self._name = name
        self._temp = temp
        self._stream: DirectStream | None = stream

    def write(self, data: memoryview | bytes) -> None:
        self._open().write(data)

    def close(self) -> int:
        stream = self._open()
        length = stream.finish()
        self._store.finish(self._temp, stream.descriptor, self._name)
        self._stream = None
        stream.close()
        return length

    def abort(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
            self._store.discard(self._temp, self._name)

    def _open(self) -> DirectStream:
        if self._stream is None:
            raise StoreError("the stream is closed", subject=self._name)
        return self._stream
