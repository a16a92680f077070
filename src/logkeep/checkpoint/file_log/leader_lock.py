"""The lock of a log's directory, and the number of its leader.

`leader` is a file with the term in decimal. Its lock (flock) ends with the process. The term is durable before the
first append, so that two leaders never have the same one.
"""

import fcntl
import os
from pathlib import Path

from logkeep.errors import Damaged, Locked, PartitionFenced

NAME = "leader"
_MOST_BYTES = 32


class LeaderLock:
    """Held from the beginning to `release`. Raises Locked if another process or object has it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            remedy = "stop the other process of this application, or wait for its end"
            raise Locked("another process leads this partition", subject=str(directory), remedy=remedy) from error
        self._inode = os.fstat(self._file).st_ino
        self.term = 0
        self._held = True

    def stored_term(self) -> int:
        text = os.pread(self._file, _MOST_BYTES, 0).strip()
        if text and not text.isdigit():
            raise Damaged("the number of the last leader is unreadable", subject=str(self._path))
        return int(text or b"0")

    def begin_term(self, term: int) -> None:
        """Store the term of this leader."""
        data = f"{term:020}\n".encode()  # one length for all terms, so that a write in place leaves no rest
        os.pwrite(self._file, data, 0)
        os.fsync(self._file)
        self.term = term

    def check(self) -> None:
        """Raises PartitionFenced if this directory has another lock file now: it was moved away or replaced."""
        try:
            current = self._path.stat().st_ino
        except FileNotFoundError:
            current = -1
        if current != self._inode or not self._held:
            raise PartitionFenced("another leader has this partition", subject=str(self._path.parent))

    def release(self) -> None:
        if self._held:
            self._held = False
            os.close(self._file)
