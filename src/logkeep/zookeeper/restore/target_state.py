"""The state of a target before it is changed: its files, zxids, epochs and owner; interrupted restores; old data.

Only reads. A restore is not planned over an interrupted one. A rollback needs the old data beside the restored data:
without it `version-2` would be left empty, and a server would start with an empty tree.
"""

import hashlib
import os
import stat
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from logkeep.errors import TargetUnsafe
from logkeep.formats.zookeeper.names import FileKind, FileName, epoch_of, hex_zxid, parse_name
from logkeep.formats.zookeeper.txnlog import scan
from logkeep.zookeeper.restore.journal import JournalPlace, Phase, RestoreJournal, read_journal
from logkeep.zookeeper.restore.target_dirs import MARKER, LiveDirectory, ServerDirectories, unreadable
from logkeep.zookeeper.restore.values import HIGHEST_EPOCH, FileOwner, TargetContents

EPOCH_FILES = ("currentEpoch", "acceptedEpoch")
NO_FILES_FINGERPRINT = hashlib.sha256().hexdigest()
"""The fingerprint of a server's directories that hold no file."""
_SMALLEST_RECORD = 45
_MAX_FILE_MODE, _MAX_DIRECTORY_MODE = 0o640, 0o750
_LONGEST_NUMBER = 20
_MOUNT = "mount it so that it can be written to, or name another directory"
_AS_OWNER = "run as the user that the server runs as, or as root"


def read_contents(place: ServerDirectories) -> TargetContents:
    """Raises TargetUnsafe for a file that cannot be read, or lies in the wrong directory."""
    entries = [entry for live in place.lives for entry in _entries(live)]
    named = list(_named_files(place.lives))
    _check_kinds(place, named)
    snapshots = [name for _, name in named if name.kind is FileKind.SNAPSHOT]
    logs = [(entry, name) for entry, name in named if name.kind is FileKind.LOG]
    highest, exactly, _ = _highest_in_logs(logs)
    epochs, no_numbers = epochs_in(place.data)
    beside_zxid, beside_epochs, beside_files = _beside(place)
    return TargetContents(
        snapshots=len(snapshots),
        logs=len(logs),
        size_bytes=sum(min((status := entry.lstat()).st_size, status.st_blocks * 512) for entry in entries),
        highest_zxid=max([highest, *(name.zxid for name in snapshots)]),
        exactly=exactly,
        epochs=epochs,
        beside_zxid=beside_zxid,
        beside_epochs=beside_epochs,
        beside_files=beside_files,
        strays=(*(entry.name for entry, name in named if name.stray), *no_numbers),
        myid=(place.data_dir / "myid").exists(),
        fingerprint=fingerprint_of(place),
    )


def fingerprint_of(place: ServerDirectories) -> str:
    """Changes when a file is added, removed or written to."""
    found = hashlib.sha256()
    for number, live in enumerate(place.lives):
        for entry in _entries(live):
            status = entry.lstat()
            found.update(repr((number, entry.name, status.st_size, status.st_mtime_ns)).encode())
    return found.hexdigest()


def highest_zxid(lives: Iterable[LiveDirectory], kinds: Container[FileKind] = tuple(FileKind)) -> int:
    """By the names of files and the records of logs, 0 for none. Raises TargetUnsafe for files that cannot be read."""
    return _highest_with_file(lives, kinds)[0]


def _highest_with_file(
    lives: Iterable[LiveDirectory], kinds: Container[FileKind] = tuple(FileKind)
) -> tuple[int, Path | None]:
    """The highest zxid and the file that holds it."""
    named = [(entry, name) for entry, name in _named_files(lives) if name.kind in kinds]
    zxid, _, file = _highest_in_logs((entry, name) for entry, name in named if name.kind is FileKind.LOG)
    tops = [(zxid, file), *((name.zxid, entry) for entry, name in named)]
    return max(tops, key=lambda top: top[0])


def _beside(place: ServerDirectories) -> tuple[int, tuple[int, ...], tuple[str, str]]:
    """The highest zxid and all epochs of the directories beside, and the files that hold the highest of both."""
    left = [LiveDirectory(path) for live in place.lives for path in live.left_beside()]
    zxid, file = max((_highest_with_file([live]) for live in left), key=lambda top: top[0], default=(0, None))
    epochs = [(number, path) for live in left for path, number in _epoch_files(live) if number is not None]
    highest = max(epochs, default=None)
    return zxid, tuple(number for number, _ in epochs), (str(file or ""), str(highest[1]) if highest else "")


def is_empty(live: LiveDirectory) -> bool:
    return not _entries(live)


def owner_of(live: LiveDirectory) -> FileOwner:
    """Owner and modes of the replaced files; of the parent directory where there are none."""
    like = live.path if live.path.is_dir() else live.path.parent
    status, file_mode = like.stat(), _MAX_FILE_MODE
    for entry in _entries(live):
        if entry.is_file():
            file_mode &= stat.S_IMODE(entry.stat().st_mode) | stat.S_IRUSR | stat.S_IWUSR
    directory_mode = stat.S_IMODE(status.st_mode) & _MAX_DIRECTORY_MODE | stat.S_IRWXU
    return FileOwner(status.st_uid, status.st_gid, file_mode, directory_mode)


def _entries(live: LiveDirectory) -> list[Path]:
    """All files except the marker."""
    try:
        return sorted(e for e in live.path.iterdir() if e.name != MARKER) if live.path.exists() else []
    except OSError as error:
        raise unreadable(live.path, error) from error


def _named_files(lives: Iterable[LiveDirectory]) -> Iterator[tuple[Path, FileName]]:
    """Snapshots and logs."""
    for live in lives:
        for entry in _entries(live):
            name = parse_name(live.name_of(entry))
            if name is not None:
                if epoch_of(name.zxid) >= HIGHEST_EPOCH:
                    raise _impossible_number(entry, f"zxid {hex_zxid(name.zxid)}")
                yield entry, name


def _check_kinds(place: ServerDirectories, named: Iterable[tuple[Path, FileName]]) -> None:
    """With separate directories a server refuses to start when one holds files of the other."""
    if not place.separate:
        return
    for entry, name in named:
        right = place.log.path if name.kind is FileKind.LOG else place.data.path
        if entry.parent != right:
            raise TargetUnsafe(
                f"a {name.kind} lies in the directory that was named for the other files",
                subject=str(entry),
                remedy="check whether dataDir and dataLogDir were exchanged",
            )


def _impossible_number(file: Path, number: str) -> TargetUnsafe:
    """The restore must choose numbers above all known ones, and there is none above this one."""
    return TargetUnsafe(
        f"according to it {number} was in use, and no server ever reaches such a number",
        subject=str(file),
        remedy=f"find out what wrote it, move it out of {file.parent}, and run again",
    )


def _highest_in_logs(logs: Iterable[tuple[Path, FileName]]) -> tuple[int, bool, Path | None]:
    """The newest log that has a record decides; a damaged log is counted as full after its damage."""
    highest, exactly, file = 0, True, None
    for entry, name in sorted(logs, key=lambda log: log[1].zxid, reverse=True):
        last, whole = _last_zxid(entry)
        reached = max(name.zxid, last if whole else last + entry.stat().st_size // _SMALLEST_RECORD)
        if reached > highest:
            highest, file = reached, entry
        exactly = exactly and whole
        if last and whole:
            break
    return highest, exactly, file


def _last_zxid(log: Path) -> tuple[int, bool]:
    """The last zxid that can be read, and whether the log is undamaged."""
    try:
        with log.open("rb") as source:
            scanned = scan(source, deep=True)
    except OSError as error:
        raise unreadable(log, error) from error
    resumed = [each.resumes_zxid for each in scanned.damage if each.resumes_zxid is not None]
    return max([scanned.last_zxid or 0, *resumed]), not scanned.damage


def epochs_in(live: LiveDirectory) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The epochs, and the names of epoch files that hold no number."""
    files = list(_epoch_files(live))
    return tuple(n for _, n in files if n is not None), tuple(path.name for path, n in files if n is None)


def _epoch_files(live: LiveDirectory) -> Iterator[tuple[Path, int | None]]:
    for path in _entries(live):
        if live.name_of(path) in EPOCH_FILES and path.is_file():
            number = _read_number(path)
            if number is not None and number >= HIGHEST_EPOCH:
                raise _impossible_number(path, f"epoch {number}")
            yield path, number


def _read_number(path: Path) -> int | None:
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_NUMBER).strip()
    except OSError as error:
        raise unreadable(path, error) from error
    return int(text) if text.isdigit() else None


def check_writable(places: Iterable[ServerDirectories]) -> None:
    """Raises TargetUnsafe where files could not be created, or could not get the owner of the old ones."""
    for live in (live for place in places for live in place.lives):
        above = live.path.parent
        owner = (live.path if live.path.exists() else above).stat()
        needed = [above, live.path] if live.path.exists() else [above]
        if any(os.statvfs(path).f_flag & os.ST_RDONLY for path in needed):
            raise TargetUnsafe("its file system is mounted read-only", subject=str(above), remedy=_MOUNT)
        if not all(os.access(path, os.W_OK | os.X_OK, effective_ids=True) for path in needed):
            raise TargetUnsafe("this user may not write there", subject=str(above), remedy=_AS_OWNER)
        if os.geteuid() not in (0, owner.st_uid):
            raise TargetUnsafe("it belongs to another user", subject=str(live.path), remedy=_AS_OWNER)


def interrupted_restores(places: Iterable[ServerDirectories]) -> Iterator[TargetUnsafe]:
    for place in places:
        journal = read_journal(place.data_dir)
        if journal is not None and journal.phase in (Phase.OLD, Phase.NEW):
            yield interrupted_error(journal.restore, place)


def interrupted_error(restore: str, place: ServerDirectories) -> TargetUnsafe:
    what = f"restore {restore} was interrupted between the old data and the new"
    return TargetUnsafe(what, subject=str(place.data_dir), remedy="continue it or roll it back first")


def check_old_data(journal: RestoreJournal) -> None:
    """Raises TargetUnsafe if the old data was removed. In the other phases part of it is in `version-2`."""
    if journal.phase not in (Phase.NEW, Phase.DONE):
        return
    missing = [path for place in journal.places for path in _missing(place, journal.restore)]
    if missing:
        raise TargetUnsafe(
            "the old data is missing: there is nothing to roll back to",
            subject=", ".join(map(str, missing)),
            remedy="if it was moved, move it back there and roll back again; if it was deleted, only the restored data "
            "is left: keep it (--continue ends an interrupted restore), or restore a backup",
        )


def _missing(place: JournalPlace, restore: str) -> list[Path]:
    """Directories that must hold old files, and do not."""
    without = {*place.made, *(place.empty or ())}
    wanted = [live.kept(restore) for live in place.place().lives if str(live.path) not in without]
    missing = [path for path in wanted if not (path.is_dir() and any(path.iterdir()))]
    if place.empty is None and (place.fingerprint == NO_FILES_FINGERPRINT or len(missing) < len(wanted)):
        return []  # a journal of an earlier version: the directory may have been empty
    return missing
