"""Keeps the server's files open from the moment they are found: a purge removes their names, not their bytes.

A server's purge may be faster than a copy. Tasks on the same machine read an open file through the process that holds
it, after its name is gone; on other machines a purged file is missing. The memory of this process cannot be hidden
meanwhile, even if it holds a secret: the kernel would close that way too.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO

from logkeep.model.process_memory import files_are_pinned, files_are_released
from logkeep.zookeeper.backup.server_files import FoundFile

MOST = 256
"""Number of the newest files of a member that are kept open; a process may open about a thousand."""


@dataclass
class OpenFiles:
    """Close it when the backup is done."""

    _held: dict[str, BinaryIO] = field(default_factory=dict)
    _pinned: bool = False

    def hold(self, files: Iterable[FoundFile]) -> None:
        """Open the files that exist and are not open yet."""
        wanted = list(files)[-MOST:]
        for file in wanted:
            path = str(file.path)
            if path not in self._held and len(self._held) < 2 * MOST:
                with suppress(OSError):  # already purged, or forbidden: the copy task reports it
                    self._held[path] = file.path.open("rb")
        if self._held and not self._pinned:
            files_are_pinned()
            self._pinned = True

    def path_of(self, path: str) -> str:
        """Where the bytes can be read after the name is gone; empty if the file is not open."""
        held = self._held.get(path)
        return "" if held is None else f"/proc/{os.getpid()}/fd/{held.fileno()}"

    def gone(self) -> int:
        """Number of open files whose name is gone."""
        return sum(os.fstat(file.fileno()).st_nlink == 0 for file in self._held.values())

    def close(self) -> None:
        for file in self._held.values():
            file.close()
        self._held.clear()
        if self._pinned:
            files_are_released()
            self._pinned = False
