"""Whether the file systems of the targets can take what is written: snapshots where those go, logs where those go.

What is replaced stays, so nothing becomes free. Staged files lie beside `version-2`, or beside what it is a link to.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from logkeep.errors import TargetUnsafe
from logkeep.zookeeper.restore.target_dirs import ServerDirectories


class Sizes(NamedTuple):
    """Bytes that are written for each member."""

    data: int
    logs: int = 0
    """Files that go to `dataLogDir`."""


class FileSystem(NamedTuple):
    device: int
    free: int


def file_system_of(directory: Path) -> FileSystem:
    told = os.statvfs(directory)
    return FileSystem(directory.stat().st_dev, told.f_bavail * told.f_frsize)


def check_room(
    places: Sequence[ServerDirectories], sizes: Sizes, look: Callable[[Path], FileSystem] = file_system_of
) -> None:
    """Raises TargetUnsafe when a file system cannot take all that goes there, for all members together."""
    wanted: dict[int, tuple[Path, int, int]] = {}
    for place in places:
        for live, size in ((place.data, sizes.data), (place.log, sizes.logs)):
            device, free = look(live.path.parent)
            first, before, _ = wanted.get(device, (live.path.parent, 0, 0))
            wanted[device] = (first, before + size, free)
    for directory, size, free in wanted.values():
        if free < size:
            what = f"{size} bytes are to be written, and {free} are free"
            raise TargetUnsafe(what, subject=str(directory), remedy="make room; what is replaced stays there too")
