"""A power loss inside a process: what was not synced is gone, then the process dies.

Of a file there is what it had when it was last synced, of a directory the names that it had then. A directory that was
moved has one name: the new one as soon as the place that it was moved to is synced. What SQLite keeps in its
write-ahead log is dropped: it syncs that only before it writes into the file itself.
"""

import os
import resource
import shutil
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

_OTHERS = (".sqlite", ".sqlite-journal", ".sock")
"""Written by SQLite's own calls, which this module does not see; and sockets."""
_LOGS = (".sqlite-wal", ".sqlite-shm")
Inode = int


class PowerLoss:
    """Watches the syncs of this process below some directories; everything there is synced at the beginning."""

    def __init__(self, *roots: Path) -> None:
        self._roots = list(roots)
        self._contents: dict[Inode, bytes] = {}
        self._names: dict[Inode, dict[str, Inode]] = {}
        self._held: dict[Inode, int] = {}
        """Descriptors of everything that was synced: an inode is given to no other file."""
        self._lost, self._thread = False, 0

    def watch(self) -> None:
        self._roots = [root for root in self._roots if root.is_dir()]
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        for root in self._roots:
            for folder, _, files in os.walk(root):
                for path in (folder, *(os.path.join(folder, name) for name in files)):  # noqa: PTH118 - text of walk
                    if not path.endswith(".sock"):
                        self._note(path)
        for name in ("fsync", "fdatasync"):
            setattr(os, name, self._synced(getattr(os, name)))
        for name in ("rename", "replace", "link", "unlink", "rmdir", "mkdir", "ftruncate"):
            setattr(os, name, self._stopped(getattr(os, name)))

    def happen(self) -> None:
        """Drop what is not synced, and die."""
        self._lost, self._thread = True, threading.get_ident()
        for root in self._roots:
            self._drop(root)
        os.kill(os.getpid(), signal.SIGKILL)

    def _note(self, path: str | int) -> None:
        status = os.stat(path)  # noqa: PTH116 - also of a descriptor
        if status.st_ino not in self._held:
            self._held[status.st_ino] = os.open(path, os.O_RDONLY) if isinstance(path, str) else os.dup(path)
        held = self._held[status.st_ino]
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(held) as entries:
                found = list(entries)
            self._names[status.st_ino] = {each.name: each.inode() for each in found}
            for each in found:
                if each.is_dir(follow_symlinks=False):
                    self._names.setdefault(each.inode(), {})  # until it is synced itself, it is empty
                    self._forget_other_names(each.inode(), status.st_ino)
        elif stat.S_ISREG(status.st_mode):
            with open(f"/proc/self/fd/{held}", "rb") as file:  # noqa: PTH123 - the descriptor may be for writing only
                self._contents[status.st_ino] = file.read()

    def _forget_other_names(self, inode: Inode, parent: Inode) -> None:
        """A directory has one name: file systems with a journal move it as a whole, or not at all."""
        for other, names in self._names.items():
            if other != parent and inode in names.values():
                self._names[other] = {name: each for name, each in names.items() if each != inode}

    def _synced(self, call: Callable[[int], None]) -> Callable[[int], None]:
        def synced(descriptor: int) -> None:
            self._wait_if_lost()
            call(descriptor)
            self._note(descriptor)

        return synced

    def _stopped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stopped(*arguments: Any, **named: Any) -> Any:
            self._wait_if_lost()
            return call(*arguments, **named)

        return stopped

    def _wait_if_lost(self) -> None:
        """Other threads change nothing any more."""
        if self._lost and threading.get_ident() != self._thread:
            threading.Event().wait()

    def _drop(self, folder: Path) -> None:
        """Names that were not synced are gone; removed ones whose removal was not synced are there again."""
        durable = self._names.get(folder.stat().st_ino, {})
        for path in list(folder.iterdir()):
            if path.name.endswith(_OTHERS):
                continue
            if path.name.endswith(_LOGS):
                path.unlink()
            elif durable.get(path.name) != path.lstat().st_ino:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, inode in durable.items():
            path = folder / name
            if name.endswith((*_OTHERS, *_LOGS)):
                continue
            if inode in self._names:
                path.mkdir(0o700, exist_ok=True)
                self._names[path.stat().st_ino] = self._names[inode]
                self._drop(path)
            else:
                path.touch(0o600)
                path.write_bytes(self._contents.get(inode, b""))
