"""Which directories on disk a target means, and whether they can be swapped at all. Reads names only.

`version-2` itself is never renamed: a moment without it is a moment in which every server starts empty. What is in it
is moved to a directory beside it, and what was staged in another one beside it is moved in; so both must be on the
same file system, and a `version-2` that is a mount point has nothing beside it.
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
        """For files that neither side wrote, each with a number before its name: see `set_apart`."""
        return self._beside(_STRANGE, restore)

    def name_of(self, entry: Path) -> str:
        """What a file in it was called when a server wrote it."""
        apart = f".{_STRANGE}-" in self.path.name
        return _NUMBERED.sub("", entry.name) if apart else entry.name

    def left_beside(self) -> list[Path]:
        """Directories that restores and rollbacks have left, whichever they were."""
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
    """False: nobody said where its logs are, they are looked for beside the snapshots."""
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


def set_apart(strange: Path, name: str) -> Path:
    """Where a file of this name goes in a directory for such: under a number, for others may have the same name.

    Never where one lies already, also when somebody took some of them away.
    """
    numbered = (strange / f"{number}.{name}" for number in count(sum(1 for _ in strange.iterdir())))
    return next(path for path in numbered if not os.path.lexists(path))


def unreadable(path: Path, error: OSError) -> TargetUnsafe:
    what = (error.strerror or "it cannot be read").lower()
    return TargetUnsafe(what, subject=str(path), remedy="run as the user that owns it, or as root")


def place_of(target: ServerTarget) -> ServerDirectories:
    """Raises UsageError for what is no server's directory, TargetUnsafe for one that cannot be swapped."""
    data_dir = _server_directory(target.data_dir)
    log_dir = data_dir if target.log_dir is None else _server_directory(target.log_dir)
    return ServerDirectories(data_dir, log_dir, target.host, target.log_dir is not None, target.host_from)


def check_swappable(place: ServerDirectories) -> None:
    """Raises UsageError or TargetUnsafe, before anything is read or written there."""
    for directory, live in ((place.data_dir, place.data), (place.log_dir, place.log)):
        if not live.path.exists():
            _check_known(directory)
        elif not live.path.is_dir():
            raise UsageError("it is no directory", subject=str(live.path), remedy=_NAME_THEM)
        elif _is_mount_point(live.path):
            raise TargetUnsafe(
                "it is a mount point: nothing can be staged beside it on the same file system",
                subject=str(live.path),
                remedy=f"mount the volume at {live.path.parent} and make {VERSION} a directory in it, or name another "
                "directory, restore there, and copy the files while the server is stopped",
            )


_NAME_THEM = "name dataDir (and dataLogDir) as the server's zoo.cfg has them"


def _live(directory: Path) -> LiveDirectory:
    """Behind a link its directory: the link stays as it is."""
    return LiveDirectory((directory / VERSION).resolve())


def _server_directory(path: Path) -> Path:
    if ".." in path.parts:
        raise UsageError("a path with .. in it is not taken", subject=str(path), remedy="name the directory itself")
    above = path.parent if path.name == VERSION else path
    try:
        found = above.resolve()
        if not found.is_dir():
            raise UsageError("there is no such directory", subject=str(above), remedy=_NAME_THEM)
        (found / VERSION).exists()
    except (OSError, RuntimeError) as error:  # not to be entered; a link to itself
        what = getattr(error, "strerror", None) or "it cannot be looked at"
        raise TargetUnsafe(
            what.lower(), subject=str(above), remedy="run as the user that owns it, or as root"
        ) from error
    return found


def _check_known(directory: Path) -> None:
    """A directory without `version-2` is a new server's, or a wrong one."""
    try:
        found = sorted(entry.name for entry in directory.iterdir())
    except OSError as error:
        what = (error.strerror or "it cannot be listed").lower()
        raise TargetUnsafe(what, subject=str(directory), remedy="run as the user that owns it, or as root") from error
    strange = [n for n in found if n not in _USUAL and not n.startswith((".", f"{VERSION}.", "zoo.cfg"))]
    if strange:
        what = f"it has no {VERSION}, but it has {strange[0]}: it does not look like the directory of a server"
        raise UsageError(what, subject=str(directory), remedy=_NAME_THEM)


def _is_mount_point(path: Path) -> bool:
    """Also where a directory of the same file system is mounted."""
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
