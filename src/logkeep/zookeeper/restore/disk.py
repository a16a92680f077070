"""Every step that a restore takes on the file system, one method each. Decides nothing.

After each step `after` is called with its name: a test ends the process there, and looks at what is left.
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
        """Only for its owner until it is known whose it is."""
        with _telling(path):
            path.mkdir(mode=0o700)
            self._after("mkdir")
            _give(path, owner, owner.directory_mode)
            self._after("own directory")
            self.sync(path.parent)

    def write(self, path: Path, pieces: Iterable[bytes], owner: FileOwner) -> RestoredServerFile:
        """A file that was not there, synced; its entry in the directory is not yet."""
        sha256, size = hashlib.sha256(), 0
        with _telling(path):
            descriptor = os.open(path, _NEW, 0o600)
            try:
                self._after("create")
                for piece in pieces:
                    write_all(descriptor, piece)
                    sha256.update(piece)
                    size += len(piece)
                self._after("write")
                _give(descriptor, owner, owner.file_mode)
                os.fsync(descriptor)
                self._after("sync file")
            finally:
                os.close(descriptor)
        return RestoredServerFile(name=path.name, size_bytes=size, sha256=sha256.hexdigest())

    def replace(self, path: Path, content: bytes, owner: FileOwner) -> None:
        """A small file, old or new as a whole."""
        beside = path.with_name(f".{path.name}.new")
        self.remove(beside)
        self.write(beside, [content], owner)
        self.move(beside, path)
        self.sync(path.parent)

    def move(self, old: Path, new: Path) -> None:
        with _telling(old):
            old.rename(new)
        self._after("move")

    def remove(self, path: Path) -> None:
        with _telling(path):
            path.unlink(missing_ok=True)
        self._after("remove")

    def remove_directory(self, path: Path) -> None:
        """With the files in it; what is no file keeps it."""
        with _telling(path):
            if not path.is_dir():
                return
            for entry in sorted(path.iterdir()):
                self.remove(entry)
            path.rmdir()
        self._after("rmdir")

    def sync(self, directory: Path) -> None:
        with _telling(directory):
            sync_path(directory)
        self._after("sync directory")


def _give(what: Path | int, owner: FileOwner, mode: int) -> None:
    """To its owner first: a change of owner may take bits of the mode away, and must never come after they matter."""
    if (os.geteuid(), os.getegid()) != (owner.uid, owner.gid):
        os.chown(what, owner.uid, owner.gid)
    os.chmod(what, mode)  # noqa: PTH101 - an open file has no path to be changed by


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """What the operating system refuses there ends the restore."""
    try:
        yield
    except OSError as error:
        raise _failed(path, error) from error


def _failed(path: Path, error: OSError) -> RestoreFailed:
    what = (error.strerror or "the operating system refused").lower()
    where = str(error.filename or path)
    if error.errno in _NO_ROOM:
        remedy = "make room on this file system, then run the restore again"
    elif error.errno in _REFUSED:
        remedy = "run as the user that owns the directory, or as root"
    else:
        remedy = "see to the file system, then run the restore again"
    return RestoreFailed(what, subject=where, remedy=remedy)
