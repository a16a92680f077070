"""Files that are held open from the moment they were seen: a purge removes their names, not their bytes.

A server's purge may be faster than a copy. Whoever runs on the same machine reads a pinned file through the process
that holds it, after its name is gone; elsewhere a file that vanished is simply not there.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO

from logkeep.zookeeper.backup.server_files import FoundFile

MOST = 256
"""So many of the newest files of a member are held; processes may open a thousand."""


@dataclass
class Pins:
    """Close it when the backup is done."""

    _held: dict[str, BinaryIO] = field(default_factory=dict)

    def hold(self, files: Iterable[FoundFile]) -> None:
        """Those that are not held yet and still there."""
        wanted = list(files)[-MOST:]
        for file in wanted:
            path = str(file.path)
            if path not in self._held and len(self._held) < 2 * MOST:
                with suppress(OSError):  # purged already, or not ours to read: who copies it will tell
                    self._held[path] = file.path.open("rb")

    def path_of(self, path: str) -> str:
        """Where the bytes can be read when the name is gone; empty where they are not held."""
        held = self._held.get(path)
        return "" if held is None else f"/proc/{os.getpid()}/fd/{held.fileno()}"

    def gone(self) -> int:
        """How many held files have no name any more."""
        return sum(os.fstat(file.fileno()).st_nlink == 0 for file in self._held.values())

    def close(self) -> None:
        for file in self._held.values():
            file.close()
        self._held.clear()
