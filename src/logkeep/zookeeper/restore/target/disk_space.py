"""Check that the targets' file systems have enough free space for the snapshots and the logs.

Replaced data is kept, so a restore frees no space. Staged files lie beside `version-2`, or beside what it links to.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from logkeep.directories.folder import Folder
from logkeep.errors import TargetUnsafe
from logkeep.zookeeper.restore.target.directories import ServerDirectories


class Sizes(NamedTuple):
    """Bytes that are written for each member."""

    data: int
    logs: int = 0
    """Files that go to `dataLogDir`."""


class FileSystem(NamedTuple):
    device: int
    free: int


def file_system_of(folder: Folder) -> FileSystem:
    stat = os.fstatvfs(folder.descriptor)
    return FileSystem(folder.status.st_dev, stat.f_bavail * stat.f_frsize)


def check_free_space(
    places: Sequence[ServerDirectories], sizes: Sizes, read: Callable[[Folder], FileSystem] = file_system_of
) -> None:
    """Raises TargetUnsafe when a file system has too little space for all members together."""
    wanted: dict[int, tuple[Path, int, int]] = {}
    for place in places:
        for live, size in ((place.data, sizes.data), (place.log, sizes.logs)):
            device, free = read(live.above)
            first, before, _ = wanted.get(device, (live.path.parent, 0, 0))
            wanted[device] = (first, before + size, free)
    for directory, size, free in wanted.values():
        if free < size:
            what = f"{size} bytes are to be written, and {free} are free"
            raise TargetUnsafe(what, subject=str(directory), remedy="free space; replaced data is kept there too")
