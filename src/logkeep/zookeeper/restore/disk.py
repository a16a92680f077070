"""The file system operations of a restore, one method each. Decides nothing.

After each step `after` is called with the step's name: tests end the process there and check what is left.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.errors import RestoreFailed
from logkeep.store.local_files import sync_path, write_all
from logkeep.zookeeper.restore.values import FileOwner, RestoredServerFile

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


class Disk:
    def __init__(self, after: Callable[[str], None] = lambda _step: None) -> None:
        self._after = after

    def make_directory(self, path: Path, owner: FileOwner) -> None:
        """Readable for this process only until its owner is set."""
        with _as_restore_failed(path):
            path.mkdir(mode=0o700)
            self._after("mkdir")
            _set_owner(path, owner, owner.directory_mode)
            self._after("own directory")
            self.sync(path.parent)

    def write(self, path: Path, pieces: Iterable[bytes], owner: FileOwner) -> RestoredServerFile:
        """Create a file and sync it; the caller syncs the directory."""
        sha256, size = hashlib.sha256(), 0
        with _as_restore_failed(path):
            descriptor = os.open(path, _NEW, 0o600)
            try:
                self._after("create")
                for piece in pieces:
                    write_all(descriptor, piece)
                    sha256.update(piece)
                    size += len(piece)
                self._after("write")
                _set_owner(descriptor, owner, owner.file_mode)
                os.fsync(descriptor)
                self._after("sync file")
            finally:
                os.close(descriptor)
        return RestoredServerFile(name=path.name, size_bytes=size, sha256=sha256.hexdigest())

    def replace(self, path: Path, content: bytes, owner: FileOwner) -> None:
        """Replace a small file atomically."""
        beside = path.with_name(f".{path.name}.new")
        self.remove(beside)
        self.write(beside, [content], owner)
        self.move(beside, path)
        self.sync(path.parent)

    def move(self, old: Path, new: Path) -> None:
        with _as_restore_failed(old):
            old.rename(new)
        self._after("move")

    def remove(self, path: Path) -> None:
        with _as_restore_failed(path):
            path.unlink(missing_ok=True)
        self._after("remove")

    def remove_directory(self, path: Path) -> None:
        """Remove a directory with its files. Raises RestoreFailed if it holds directories."""
        with _as_restore_failed(path):
            if not path.is_dir():
                return
            for entry in sorted(path.iterdir()):
                self.remove(entry)
            path.rmdir()
        self._after("rmdir")

    def sync(self, directory: Path) -> None:
        with _as_restore_failed(directory):
            sync_path(directory)
        self._after("sync directory")


def _set_owner(what: Path | int, owner: FileOwner, mode: int) -> None:
    """Owner first, then mode: a change of owner may clear bits of the mode."""
    if (os.geteuid(), os.getegid()) != (owner.uid, owner.gid):
        os.chown(what, owner.uid, owner.gid)
    os.chmod(what, mode)  # noqa: PTH101 - an open file has no path to be changed by


@contextmanager
def _as_restore_failed(path: Path) -> Iterator[None]:
    """Raises RestoreFailed for an OSError."""
    try:
        yield
    except OSError as error:
        what = (error.strerror or "the operating system refused").lower()
        if error.errno in _NO_ROOM:
            remedy = "free space on this file system, then run the restore again"
        elif error.errno in _REFUSED:
            remedy = "run as the user that owns the directory, or as root"
        else:
            remedy = "check the file system, then run the restore again"
        raise RestoreFailed(what, subject=str(error.filename or path), remedy=remedy) from error
