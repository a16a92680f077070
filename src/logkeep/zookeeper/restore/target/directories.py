"""The directories of a target on disk, each opened once; the names of files in them; whether they can be swapped.

`version-2` itself is never renamed: without it a server would start empty. Its files are moved to a directory beside
it, and staged files are moved in from another directory beside it. So both must be on the same file system, and
`version-2` cannot be a mount point.
"""

import os
import re
import shlex
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from logkeep.directories.folder import Folder, open_folder
from logkeep.directories.owner_process import OwnerProcess
from logkeep.directories.path_walk import user_name
from logkeep.errors import OtherOwner, TargetUnsafe, UsageError
from logkeep.zookeeper.restore.values import ServerTarget

VERSION = "version-2"
JOURNAL = "logkeep-restore.json"
MARKER = "log.7fffffffffffffff"
"""The file that keeps a server of any version from starting while its directory is between two states.

It has the highest name that a log can have, and is no log: a server reads the newest log first, and exits. It lies in
the log directory from before the first file is moved until after the last.
"""
_KINDS = _NEW, _BEFORE, _STRANGE = "new", "before", "strange"
_NUMBERED = re.compile(r"^[0-9]+\.")
_MOST_LINKS = 8


@dataclass(frozen=True)
class LiveDirectory:
    """One `version-2`, and the directories beside it that a restore uses. Each is opened once."""

    above: Folder = field(compare=False)
    path: Path
    _folders: dict[str, Folder] = field(default_factory=dict, compare=False, repr=False)

    @property
    def folder(self) -> Folder | None:
        """`version-2` itself; None if there is none. Raises OtherOwner."""
        return self.beside(self.path)

    def beside(self, path: Path) -> Folder | None:
        """One of them; None if there is none. Raises TargetUnsafe; OtherOwner for a link or another user's."""
        name = path.name
        try:
            found = self._folders.get(name) or self.above.folder(name)
        except OSError as error:
            raise unreadable(path, error) from error
        if found is not None:
            self._folders[name] = found
        return found

    def forget(self, path: Path) -> None:
        """It was removed."""
        self._folders.pop(path.name, None)

    def staged(self, restore: str) -> Path:
        return self._beside(_NEW, restore)

    def kept(self, restore: str) -> Path:
        return self._beside(_BEFORE, restore)

    def strange(self, restore: str) -> Path:
        """For files that belong to neither side, each with a number before its name: see `set_apart`."""
        return self._beside(_STRANGE, restore)

    def left_beside(self) -> list[Folder]:
        """Directories that any earlier restores and rollbacks have left. Raises TargetUnsafe, OtherOwner."""
        begins = tuple(f"{self.path.name}.{what}-" for what in _KINDS)
        try:
            named = [entry for entry in self.above.entries() if entry.name.startswith(begins)]
            for entry in named:
                self.above.refuse_link(entry.name)
            found = [self.beside(self.path.with_name(e.name)) for e in named if stat.S_ISDIR(e.status.st_mode)]
        except OSError as error:
            raise unreadable(self.above.path, error) from error
        return [folder for folder in found if folder is not None]

    def _beside(self, what: str, restore: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{what}-{restore}")


def server_name(folder: Folder, name: str) -> str:
    """The name of a file when a server wrote it."""
    return _NUMBERED.sub("", name) if f".{_STRANGE}-" in folder.path.name else name


@dataclass(frozen=True)
class ServerDirectories:
    """The directories of one server, real paths. They are opened when they are needed first, and stay open."""

    data_dir: Path
    log_dir: Path
    host: str = ""
    log_dir_named: bool = True
    """False: no log directory was named, the logs are expected beside the snapshots."""
    host_from: str = ""
    """See `ServerTarget`."""
    opened: dict[Path, Folder | LiveDirectory] = field(default_factory=dict, compare=False, repr=False)
    """By path; several servers may share it, so that each directory is opened once."""

    @property
    def separate(self) -> bool:
        return self.data.path != self.log.path

    @property
    def data_folder(self) -> Folder:
        return self._folder(self.data_dir)

    @property
    def log_folder(self) -> Folder:
        return self._folder(self.log_dir)

    @property
    def data(self) -> LiveDirectory:
        return self._live(self.data_dir)

    @property
    def log(self) -> LiveDirectory:
        return self._live(self.log_dir)

    @property
    def lives(self) -> tuple[LiveDirectory, ...]:
        return (self.data, self.log) if self.separate else (self.data,)

    def _folder(self, directory: Path) -> Folder:
        if directory not in self.opened:
            self.opened[directory] = named_folder(directory)
        found = self.opened[directory]
        assert isinstance(found, Folder)  # noqa: S101 - the keys differ
        return found

    def _live(self, directory: Path) -> LiveDirectory:
        key = directory / VERSION
        if key not in self.opened:
            self.opened[key] = _live(self._folder(directory))
        found = self.opened[key]
        assert isinstance(found, LiveDirectory)  # noqa: S101 - the keys differ
        return found


def marker_text(restore: str, data_dir: str) -> bytes:
    """Not empty: some versions delete an empty last log."""
    return (
        f"A restore ({restore}) of this server's data was interrupted. This file keeps the server from starting.\n"
        f"Do not delete it: end the restore of {data_dir} by continuing it or by rolling it back.\n"
    ).encode()


def set_apart(strange: Folder, name: str) -> str:
    """A free name in `strange` for a file of this name, with a number before it: several files may have the same name.

    Never an existing one, also when the user has removed some of the files.
    """
    numbered = (f"{number}.{name}" for number in count(len(strange.names())))
    return next(free for free in numbered if strange.find(free) is None)


def unreadable(path: Path, error: OSError | RuntimeError) -> TargetUnsafe:
    what = (getattr(error, "strerror", None) or "it cannot be read").lower()
    return TargetUnsafe(what, subject=str(path), remedy="run as the user that owns it, or as root")


def place_of(target: ServerTarget) -> ServerDirectories:
    """Raises UsageError for a directory that does not exist, TargetUnsafe or OtherOwner for one that cannot be used."""
    data = _server_directory(target.data_dir)
    log = data if target.log_dir is None else _server_directory(target.log_dir)
    opened: dict[Path, Folder | LiveDirectory] = {log.path: log, data.path: data}
    return ServerDirectories(
        data.path, log.path, target.host, target.log_dir is not None, target.host_from, opened=opened
    )


NAME_THEM = "name dataDir (and dataLogDir) as the server's zoo.cfg has them"


def named_folder(directory: Path, missing: Callable[[Path], Exception] | None = None) -> Folder:
    """Open a directory that a user or a journal names. Raises TargetUnsafe, OtherOwner."""
    try:
        return open_folder(directory)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise (missing or _missing)(directory) from error
    except (OSError, RuntimeError) as error:  # no permission; a link to itself
        raise unreadable(directory, error) from error


def _missing(directory: Path) -> TargetUnsafe:
    what, remedy = "a directory of the restore is missing", "check whether its file system is mounted, and run again"
    return TargetUnsafe(what, subject=str(directory), remedy=remedy)


def _live(directory: Folder) -> LiveDirectory:
    """Of a link its target: the link stays as it is. Raises OtherOwner for a link to another user's directory."""
    above, name = directory, VERSION
    try:
        for _ in range(_MOST_LINKS):
            status = above.find(name)
            if status is None or not stat.S_ISLNK(status.st_mode):
                break
            _check_link_owner(directory, above, name, status)
            target = above.path / os.readlink(name, dir_fd=above.descriptor)
            above, name = named_folder(target.parent), target.name
    except OSError as error:
        raise unreadable(directory.path / VERSION, error) from error
    live = LiveDirectory(above, above.path / name)
    if above is not directory:
        _check_link(directory, live)
    return live


def _check_link_owner(directory: Folder, above: Folder, name: str, link: os.stat_result) -> None:
    """In a directory that others can write to, a link may be theirs, although another user owns the directory."""
    if link.st_uid not in {0, directory.owner, os.geteuid()}:
        raise OtherOwner(
            f"it is a link that {user_name(link.st_uid)} made",
            subject=str(above.path / name),
            remedy=f"check where it leads; make {VERSION} a directory, or make the link again yourself",
        )


def _check_link(directory: Folder, live: LiveDirectory) -> None:
    """The owner of the link must own its target. For root, the directory above too: files are staged there."""
    status = live.above.find(live.path.name)
    owners = {status.st_uid} if status is not None else set[int]()
    if isinstance(directory.worker, OwnerProcess):
        owners.add(live.above.owner)
    if owners - {directory.owner} and (os.geteuid() != 0 or directory.owner != 0):
        raise OtherOwner(
            f"it is a link to {live.path}, which does not belong to {user_name(directory.owner)} together with the "
            "directory that it is in",
            subject=str(directory.path / VERSION),
            remedy=f"make {VERSION} a directory; or: chown {directory.owner} {shlex.quote(str(live.path.parent))} "
            f"{shlex.quote(str(live.path))}",
        )


def _server_directory(path: Path) -> Folder:
    if ".." in path.parts:
        raise UsageError("a path with .. in it is not allowed", subject=str(path), remedy="name the directory itself")
    found = named_folder(path.parent if path.name == VERSION else path, _no_such_directory)
    try:
        found.find(VERSION)
    except OSError as error:
        raise unreadable(found.path, error) from error
    return found


def _no_such_directory(path: Path) -> UsageError:
    return UsageError("there is no such directory", subject=str(path), remedy=NAME_THEM)
