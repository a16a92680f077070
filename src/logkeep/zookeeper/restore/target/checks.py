"""Whether a target can be restored to, continued or rolled back: its directories, owners, rights and old data.

Only reads. A restore is not planned over an interrupted one. A rollback needs the old data beside the restored data:
without it `version-2` would be left empty, and a server would start with an empty tree.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from logkeep.directories.folder import Folder
from logkeep.errors import TargetUnsafe, UsageError
from logkeep.zookeeper.restore.target.directories import (
    JOURNAL,
    MARKER,
    NAME_THEM,
    VERSION,
    LiveDirectory,
    ServerDirectories,
    unreadable,
)
from logkeep.zookeeper.restore.target.journal import JournalPlace, Phase, RestoreJournal, journal_of
from logkeep.zookeeper.restore.target.state import NO_FILES_FINGERPRINT

_USUAL = {"myid", "initialize", "zookeeper_server.pid", "lost+found", JOURNAL}
_MOUNTS = Path("/proc/self/mountinfo")
_MOUNT = "mount it so that it can be written to, or name another directory"
_AS_OWNER = "run as the user that the server runs as, or as root"


def check_swappable(place: ServerDirectories) -> None:
    """Raises UsageError, TargetUnsafe or OtherOwner, before anything is read or written there."""
    for directory, live in ((place.data_folder, place.data), (place.log_folder, place.log)):
        status = live.above.find(live.path.name)
        if status is None:
            _check_known(directory)
        elif not stat.S_ISDIR(status.st_mode):
            raise UsageError("it is not a directory", subject=str(live.path), remedy=NAME_THEM)
        elif _is_mount_point(live, status):
            raise TargetUnsafe(
                "it is a mount point: nothing can be staged beside it on the same file system",
                subject=str(live.path),
                remedy=f"mount the volume at {live.path.parent} and make {VERSION} a directory in it; or restore to "
                "another directory and copy the files while the server is stopped",
            )


def check_writable(places: Iterable[ServerDirectories]) -> None:
    """Raises TargetUnsafe where files could not be created, or could not get the owner of the old ones; OtherOwner for
    a file of another user."""
    for live in (live for place in places for live in place.lives):
        folder = live.folder
        needed = [live.above] if folder is None else [live.above, folder]
        if any(os.fstatvfs(each.descriptor).f_flag & os.ST_RDONLY for each in needed):
            raise TargetUnsafe("its file system is mounted read-only", subject=str(live.above.path), remedy=_MOUNT)
        try:
            for each in needed:
                each.check_writable()
        except OSError as error:
            what = "this user may not write there"
            raise TargetUnsafe(what, subject=str(live.above.path), remedy=_AS_OWNER) from error
        if os.geteuid() not in (0, needed[-1].owner):
            raise TargetUnsafe("it belongs to another user", subject=str(live.path), remedy=_AS_OWNER)


def check_owners(places: Sequence[ServerDirectories], restore: str = "") -> None:
    """Raises OtherOwner if a file that would be read or moved does not belong to the owner of its directory, or if
    anything beside `version-2` is a link. `restore`: one that may have left files beside."""
    for place in places:
        for folder in {place.data_dir: place.data_folder, place.log_dir: place.log_folder}.values():
            folder.refuse_link(JOURNAL)
        for live in place.lives:
            left = [folder for folder in live.left_beside() if folder.path.name.endswith(restore)]
            for folder in [*left, *([] if live.folder is None else [live.folder])]:
                folder.refuse_link(MARKER)
                for entry in folder.entries():
                    folder.check_owner(entry.name, entry.status)


def interrupted_restores(places: Iterable[ServerDirectories]) -> Iterator[TargetUnsafe]:
    for place in places:
        journal = journal_of(place.data_folder, place.opened)
        if journal is not None and journal.phase in (Phase.OLD, Phase.NEW):
            yield interrupted_error(journal.restore, place)


def interrupted_error(restore: str, place: ServerDirectories) -> TargetUnsafe:
    what = f"restore {restore} was interrupted between the old data and the new"
    return TargetUnsafe(what, subject=str(place.data_dir), remedy="continue it or roll it back first")


def check_old_data(journal: RestoreJournal, places: Sequence[ServerDirectories]) -> None:
    """Raises TargetUnsafe if the old data was removed. In the other phases part of it is in `version-2`."""
    if journal.phase not in (Phase.NEW, Phase.DONE):
        return
    both = zip(journal.places, places, strict=True)
    missing = [path for noted, place in both for path in _missing(noted, place, journal.restore)]
    if missing:
        raise TargetUnsafe(
            "the old data is missing: there is nothing to roll back to",
            subject=", ".join(map(str, missing)),
            remedy="if it was moved, move it back there and roll back again; if it was deleted, only the restored data "
            "is left: keep it (--continue ends an interrupted restore), or restore a backup",
        )


def _missing(noted: JournalPlace, place: ServerDirectories, restore: str) -> list[Path]:
    """Directories that must hold old files, and do not."""
    without = {*noted.made, *(noted.empty or ())}
    wanted = [(live, live.kept(restore)) for live in place.lives if str(live.path) not in without]
    found = [(path, live.beside(path)) for live, path in wanted]
    missing = [path for path, folder in found if folder is None or not folder.names()]
    if noted.empty is None and (noted.fingerprint == NO_FILES_FINGERPRINT or len(missing) < len(wanted)):
        return []  # a journal of an earlier version: the directory may have been empty
    return missing


def _check_known(directory: Folder) -> None:
    """A directory without `version-2` belongs to a new server, or is the wrong one."""
    try:
        found = directory.names()
    except OSError as error:
        raise unreadable(directory.path, error) from error
    unexpected = [n for n in found if n not in _USUAL and not n.startswith((".", f"{VERSION}.", "zoo.cfg"))]
    if unexpected:
        what = f"it has no {VERSION}, but it has {unexpected[0]}: it does not look like the directory of a server"
        raise UsageError(what, subject=str(directory.path), remedy=NAME_THEM)


def _is_mount_point(live: LiveDirectory, status: os.stat_result) -> bool:
    """Also a bind mount of a directory of the same file system."""
    if status.st_dev != live.above.status.st_dev:
        return True
    try:
        rows = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    return str(live.path) in {_unescaped(row.split()[4]) for row in rows}


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
