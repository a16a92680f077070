"""The directories of a target on disk, the names of files in them, and whether they can be swapped. Reads names only.

`version-2` itself is never renamed: without it a server would start empty. Its files are moved to a directory beside
it, and staged files are moved in from another directory beside it. So both must be on the same file system, and
`version-2` cannot be a mount point.
"""

import os
import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.zookeeper.restore.values import ServerTarget

VERSION = "version-2"
JOURNAL = "logkeep-restore.json"
MARKER = "log.7fffffffffffffff"
"""The file that keeps a server of any version from starting while its directory is between two states.

It has the highest name that a log can have, and is no log: a server reads the newest log first, and exits. It lies in
the log directory from before the first file is moved until after the last.
"""
_USUAL = {"myid", "initialize", "zookeeper_server.pid", "lost+found", JOURNAL}
_MOUNTS = Path("/proc/self/mountinfo")
_KINDS = _NEW, _BEFORE, _STRANGE = "new", "before", "strange"
_NUMBERED = re.compile(r"^[0-9]+\.")


@dataclass(frozen=True)
class LiveDirectory:
    """One `version-2`, and the directories beside it that a restore uses."""

    path: Path

    def staged(self, restore: str) -> Path:
        return self._beside(_NEW, restore)

    def kept(self, restore: str) -> Path:
        return self._beside(_BEFORE, restore)

    def strange(self, restore: str) -> Path:
        """For files that belong to neither side, each with a number before its name: see `set_apart`."""
        return self._beside(_STRANGE, restore)

    def name_of(self, entry: Path) -> str:
        """The name of a file when a server wrote it."""
        apart = f".{_STRANGE}-" in self.path.name
        return _NUMBERED.sub("", entry.name) if apart else entry.name

    def left_beside(self) -> list[Path]:
        """Directories that any earlier restores and rollbacks have left."""
        above, begins = self.path.parent, tuple(f"{self.path.name}.{what}-" for what in _KINDS)
        try:
            found = list(above.iterdir()) if above.is_dir() else []
        except OSError as error:
            raise unreadable(above, error) from error
        return sorted(path for path in found if path.name.startswith(begins) and path.is_dir())

    def _beside(self, what: str, restore: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{what}-{restore}")


@dataclass(frozen=True)
class ServerDirectories:
    """The directories of one server, real paths."""

    data_dir: Path
    log_dir: Path
    host: str = ""
    log_dir_named: bool = True
    """False: no log directory was named, the logs are expected beside the snapshots."""
    host_from: str = ""
    """See `ServerTarget`."""

    @property
    def separate(self) -> bool:
        return self.data.path != self.log.path

    @property
    def data(self) -> LiveDirectory:
        return _live(self.data_dir)

    @property
    def log(self) -> LiveDirectory:
        return _live(self.log_dir)

    @property
    def lives(self) -> tuple[LiveDirectory, ...]:
        return (self.data, self.log) if self.separate else (self.data,)

    @property
    def journal(self) -> Path:
        return self.data_dir / JOURNAL


def marker_text(restore: str, data_dir: str) -> bytes:
    """Not empty: some versions delete an empty last log."""
    return (
        f"A restore ({restore}) of this server's data was interrupted. This file keeps the server from starting.\n"
        f"Do not delete it: end the restore of {data_dir} by continuing it or by rolling it back.\n"
    ).encode()


def set_apart(strange: Path, name: str) -> Path:
    """A free path in `strange` for a file of this name, with a number before it: several files may have the same name.

    Never an existing path, also when the user has removed some of the files.
    """
    numbered = (strange / f"{number}.{name}" for number in count(sum(1 for _ in strange.iterdir())))
    return next(path for path in numbered if not os.path.lexists(path))


def unreadable(path: Path, error: OSError) -> TargetUnsafe:
    what = (error.strerror or "it cannot be read").lower()
    return TargetUnsafe(what, subject=str(path), remedy="run as the user that owns it, or as root")


def place_of(target: ServerTarget) -> ServerDirectories:
    """Raises UsageError for a directory that does not exist, TargetUnsafe for one that cannot be read."""
    data_dir = _server_directory(target.data_dir)
    log_dir = data_dir if target.log_dir is None else _server_directory(target.log_dir)
    return ServerDirectories(data_dir, log_dir, target.host, target.log_dir is not None, target.host_from)


def check_swappable(place: ServerDirectories) -> None:
    """Raises UsageError or TargetUnsafe, before anything is read or written there."""
    for directory, live in ((place.data_dir, place.data), (place.log_dir, place.log)):
        if not live.path.exists():
            _check_known(directory)
        elif not live.path.is_dir():
            raise UsageError("it is not a directory", subject=str(live.path), remedy=_NAME_THEM)
        elif _is_mount_point(live.path):
            raise TargetUnsafe(
                "it is a mount point: nothing can be staged beside it on the same file system",
                subject=str(live.path),
                remedy=f"mount the volume at {live.path.parent} and make {VERSION} a directory in it; or restore to "
                "another directory and copy the files while the server is stopped",
            )


_NAME_THEM = "name dataDir (and dataLogDir) as the server's zoo.cfg has them"


def _live(directory: Path) -> LiveDirectory:
    """Of a link its target: the link stays as it is."""
    return LiveDirectory((directory / VERSION).resolve())


def _server_directory(path: Path) -> Path:
    if ".." in path.parts:
        raise UsageError("a path with .. in it is not allowed", subject=str(path), remedy="name the directory itself")
    above = path.parent if path.name == VERSION else path
    try:
        found = above.resolve()
        if not found.is_dir():
            raise UsageError("there is no such directory", subject=str(above), remedy=_NAME_THEM)
        (found / VERSION).exists()
    except (OSError, RuntimeError) as error:  # no permission; a link to itself
        what = getattr(error, "strerror", None) or "it cannot be read"
        raise TargetUnsafe(
            what.lower(), subject=str(above), remedy="run as the user that owns it, or as root"
        ) from error
    return found


def _check_known(directory: Path) -> None:
    """A directory without `version-2` belongs to a new server, or is the wrong one."""
    try:
        found = sorted(entry.name for entry in directory.iterdir())
    except OSError as error:
        raise unreadable(directory, error) from error
    unexpected = [n for n in found if n not in _USUAL and not n.startswith((".", f"{VERSION}.", "zoo.cfg"))]
    if unexpected:
        what = f"it has no {VERSION}, but it has {unexpected[0]}: it does not look like the directory of a server"
        raise UsageError(what, subject=str(directory), remedy=_NAME_THEM)


def _is_mount_point(path: Path) -> bool:
    """Also a bind mount of a directory of the same file system."""
    if os.path.ismount(path):
        return True
    try:
        rows = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    return str(path) in {_unescaped(row.split()[4]) for row in rows}


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
