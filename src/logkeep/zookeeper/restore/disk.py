"""The file system operations of a restore, one method each, on directories that are open already. Decides nothing.

After each step `after` is called with the step's name: tests end the process there and check what is left.
"""

import errno
import hashlib
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from logkeep.directories.folder import Folder
from logkeep.errors import RestoreFailed
from logkeep.zookeeper.restore.values import FileOwner, RestoredServerFile

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


class Disk:
    def __init__(self, after: Callable[[str], None] = lambda _step: None) -> None:
        self._after = after

    def make_directory(self, above: Folder, name: str, owner: FileOwner) -> None:
        """Readable for this process only until its owner is set."""
        with _as_restore_failed(above.path / name):
            above.make_folder(name)
            self._after("mkdir")
            made = above.folder(name)
            if made is None:
                raise FileNotFoundError(errno.ENOENT, "it was removed at once", str(above.path / name))
            made.set_owner(owner.uid, owner.gid, owner.directory_mode)
            self._after("own directory")
            self.sync(above)

    def write(self, folder: Folder, name: str, pieces: Iterable[bytes], owner: FileOwner) -> RestoredServerFile:
        """Create a file and sync it; the caller syncs the directory."""
        sha256, size = hashlib.sha256(), 0
        with _as_restore_failed(folder.path / name):
            file = folder.create(name)
            try:
                self._after("create")
                for piece in pieces:
                    file.write(piece)
                    sha256.update(piece)
                    size += len(piece)
                self._after("write")
                file.set_owner(owner.uid, owner.gid, owner.file_mode)
                file.finish()
                self._after("sync file")
            finally:
                file.close()
        return RestoredServerFile(name=name, size_bytes=size, sha256=sha256.hexdigest())

    def replace(self, folder: Folder, name: str, content: bytes, owner: FileOwner) -> None:
        """Replace a small file atomically."""
        beside = f".{name}.new"
        self.remove(folder, beside)
        self.write(folder, beside, [content], owner)
        self.move(folder, beside, folder, name)
        self.sync(folder)

    def move(self, folder: Folder, name: str, to: Folder, new_name: str) -> None:
        with _as_restore_failed(folder.path / name):
            folder.rename(name, to, new_name)
        self._after("move")

    def remove(self, folder: Folder, name: str) -> None:
        with _as_restore_failed(folder.path / name), suppress(FileNotFoundError):
            folder.remove(name)
        self._after("remove")

    def remove_directory(self, above: Folder, folder: Folder, removable: Container[str]) -> bool:
        """Remove these files from a directory, and then the directory if nothing else is in it."""
        names = self.names(folder)
        for name in names:
            if name in removable:
                self.remove(folder, name)
        if not all(name in removable for name in names):
            return False
        with _as_restore_failed(folder.path):
            above.remove_folder(folder.path.name)
        self._after("rmdir")
        return True

    def names(self, folder: Folder) -> list[str]:
        with _as_restore_failed(folder.path):
            return folder.names()

    def sync(self, folder: Folder) -> None:
        with _as_restore_failed(folder.path):
            folder.sync()
        self._after("sync directory")


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
