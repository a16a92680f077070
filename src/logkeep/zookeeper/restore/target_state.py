"""What the directories of a server hold before they are replaced: counts, highest zxid, epochs, owner. Only reads.

Whether the data that a rollback puts back is still beside the restored one: before anything is moved. Reads names.

Without it a rollback would leave an empty `version-2`, on which a server starts with an empty tree.

A restore that was interrupted between the old data and the new: nothing is planned on top of it. Reads journals.
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
from logkeep.zookeeper.restore.marker import MARKER
from logkeep.zookeeper.restore.numbers import is_absurd
from logkeep.zookeeper.restore.target_dirs import LiveDirectory, ServerDirectories, unreadable
from logkeep.zookeeper.restore.values import FileOwner, TargetContents

EPOCH_FILES = ("currentEpoch", "acceptedEpoch")
_SMALLEST_RECORD = 45
_MOST_FILE_MODE, _MOST_DIRECTORY_MODE = 0o640, 0o750
_LONGEST_NUMBER = 20


def held_by(place: ServerDirectories) -> TargetContents:
    """Raises TargetUnsafe for what cannot be read, or is not where a server would have it."""
    entries = [entry for live in place.lives for entry in _entries(live)]
    named = list(_named(place.lives))
    _check_kinds(place, named)
    snapshots = [name for _, name in named if name.kind is FileKind.SNAPSHOT]
    logs = [(entry, name) for entry, name in named if name.kind is FileKind.LOG]
    highest, exactly, _ = _highest(logs)
    epochs, no_numbers = epochs_in(place.data)
    beside_zxid, beside_epochs, beside_files = _beside(place)
    return TargetContents(
        snapshots=len(snapshots),
        logs=len(logs),
        size_bytes=sum(_size(entry) for entry in entries),
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
    """Changes when a file comes, goes, grows or is written to."""
    found = hashlib.sha256()
    for number, live in enumerate(place.lives):
        for entry in _entries(live):
            told = entry.lstat()
            found.update(repr((number, entry.name, told.st_size, told.st_mtime_ns)).encode())
    return found.hexdigest()


OF_NOTHING = hashlib.sha256().hexdigest()
"""The fingerprint of a server's directories that hold no file."""


def highest_zxid(lives: Iterable[LiveDirectory], kinds: Container[FileKind] = tuple(FileKind)) -> int:
    """By the names of files and the records of logs, 0 for none. Raises TargetUnsafe for what cannot be read."""
    return _top(lives, kinds)[0]


def _top(lives: Iterable[LiveDirectory], kinds: Container[FileKind] = tuple(FileKind)) -> tuple[int, Path | None]:
    """With the file that says so."""
    named = [(entry, name) for entry, name in _named(lives) if name.kind in kinds]
    zxid, _, file = _highest((entry, name) for entry, name in named if name.kind is FileKind.LOG)
    tops = [(zxid, file), *((name.zxid, entry) for entry, name in named)]
    return max(tops, key=lambda top: top[0])


def _beside(place: ServerDirectories) -> tuple[int, tuple[int, ...], tuple[str, str]]:
    """The highest zxid and all epochs of what lies beside, and the files that hold the highest of both, if any."""
    left = [LiveDirectory(path) for live in place.lives for path in live.left_beside()]
    zxid, file = max((_top([live]) for live in left), key=lambda top: top[0], default=(0, None))
    epochs = [(number, path) for live in left for path, number in _epoch_files(live) if number is not None]
    highest = max(epochs, default=None)
    return zxid, tuple(number for number, _ in epochs), (str(file or ""), str(highest[1]) if highest else "")


def holds_nothing(live: LiveDirectory) -> bool:
    return not _entries(live)


def owner_of(live: LiveDirectory) -> FileOwner:
    """As what is replaced; where there is nothing, as the directory above."""
    like = live.path if live.path.is_dir() else live.path.parent
    told, of_files = like.stat(), [entry.stat().st_mode for entry in _entries(live) if entry.is_file()]
    file_mode = _MOST_FILE_MODE
    for mode in of_files:
        file_mode &= stat.S_IMODE(mode) | stat.S_IRUSR | stat.S_IWUSR
    return FileOwner(
        told.st_uid, told.st_gid, file_mode, stat.S_IMODE(told.st_mode) & _MOST_DIRECTORY_MODE | stat.S_IRWXU
    )


def _entries(live: LiveDirectory) -> list[Path]:
    """All but our own marker."""
    try:
        return sorted(e for e in live.path.iterdir() if e.name != MARKER) if live.path.exists() else []
    except OSError as error:
        raise unreadable(live.path, error) from error


def _named(lives: Iterable[LiveDirectory]) -> Iterator[tuple[Path, FileName]]:
    """Snapshots and logs."""
    for live in lives:
        for entry in _entries(live):
            name = parse_name(live.name_of(entry))
            if name is not None:
                if is_absurd(epoch_of(name.zxid)):
                    raise _absurd(entry, f"zxid {hex_zxid(name.zxid)}")
                yield entry, name


def _size(entry: Path) -> int:
    return min((told := entry.lstat()).st_size, told.st_blocks * 512)


def _check_kinds(place: ServerDirectories, named: Iterable[tuple[Path, FileName]]) -> None:
    """With separate directories a server refuses to start when one holds what belongs into the other."""
    if not place.separate:
        return
    for entry, name in named:
        right = place.log.path if name.kind is FileKind.LOG else place.data.path
        if entry.parent != right:
            raise TargetUnsafe(
                f"a {name.kind} lies in the directory that is said to hold the other files",
                subject=str(entry),
                remedy="look whether dataDir and dataLogDir were named the wrong way round",
            )


def _absurd(file: Path, number: str) -> TargetUnsafe:
    """Rubbish: all numbers that are chosen would have to lie above it, and none do."""
    return TargetUnsafe(
        f"it says that {number} was in use, and no server ever gets to such a number",
        subject=str(file),
        remedy=f"find out who wrote it, move it out of {file.parent}, and run again",
    )


def _highest(logs: Iterable[tuple[Path, FileName]]) -> tuple[int, bool, Path | None]:
    """The newest log that has a record decides; one that is damaged is counted as full behind its damage."""
    highest, exactly, file = 0, True, None
    for entry, name in sorted(logs, key=lambda log: log[1].zxid, reverse=True):
        last, whole = _last_zxid(entry)
        reached = max(name.zxid, last if whole else last + _size_told(entry) // _SMALLEST_RECORD)
        if reached > highest:
            highest, file = reached, entry
        exactly = exactly and whole
        if last and whole:
            break
    return highest, exactly, file


def _last_zxid(log: Path) -> tuple[int, bool]:
    """The last zxid that can be read, and whether nothing else can be in the log."""
    try:
        with log.open("rb") as source:
            scanned = scan(source, deep=True)
    except OSError as error:
        raise unreadable(log, error) from error
    resumed = [each.resumes_zxid for each in scanned.damage if each.resumes_zxid is not None]
    return max([scanned.last_zxid or 0, *resumed]), not scanned.damage


def _size_told(entry: Path) -> int:
    return entry.stat().st_size


def epochs_in(live: LiveDirectory) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers, and names of the files that hold none."""
    files = list(_epoch_files(live))
    return tuple(n for _, n in files if n is not None), tuple(path.name for path, n in files if n is None)


def _epoch_files(live: LiveDirectory) -> Iterator[tuple[Path, int | None]]:
    for path in _entries(live):
        if live.name_of(path) in EPOCH_FILES and path.is_file():
            number = _number(path)
            if number is not None and is_absurd(number):
                raise _absurd(path, f"epoch {number}")
            yield path, number


def _number(path: Path) -> int | None:
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_NUMBER).strip()
    except OSError as error:
        raise unreadable(path, error) from error
    return int(text) if text.isdigit() else None


def check_writable(places: Iterable[ServerDirectories]) -> None:
    """Raises TargetUnsafe where files could not be made, or could not be given to who owns the old ones."""
    for live in _each(places):
        above = live.path.parent
        owner = (live.path if live.path.exists() else above).stat()
        needed = [above, live.path] if live.path.exists() else [above]
        if any(os.statvfs(path).f_flag & os.ST_RDONLY for path in needed):
            raise TargetUnsafe("its file system is mounted read-only", subject=str(above), remedy=_MOUNT)
        if not all(os.access(path, os.W_OK | os.X_OK, effective_ids=True) for path in needed):
            raise TargetUnsafe("this user may not write there", subject=str(above), remedy=_AS_OWNER)
        if os.geteuid() not in (0, owner.st_uid):
            raise TargetUnsafe("it belongs to another user", subject=str(live.path), remedy=_AS_OWNER)


_MOUNT = "mount it so that it can be written to, or name another directory"
_AS_OWNER = "run as the user that the server runs as, or as root"


def _each(places: Iterable[ServerDirectories]) -> Iterator[LiveDirectory]:
    return (live for place in places for live in place.lives)


def unfinished(places: Iterable[ServerDirectories]) -> Iterator[TargetUnsafe]:
    for place in places:
        journal = read_journal(place.data_dir)
        if journal is not None and journal.phase in (Phase.OLD, Phase.NEW):
            yield interrupted(journal.restore, place)


def interrupted(restore: str, place: ServerDirectories) -> TargetUnsafe:
    what = f"restore {restore} was interrupted between the old data and the new"
    return TargetUnsafe(what, subject=str(place.data_dir), remedy="continue it or roll it back first")


def check_old_data(journal: RestoreJournal) -> None:
    """Raises TargetUnsafe where somebody took it away. In the other phases part of it is in `version-2`."""
    if journal.phase not in (Phase.NEW, Phase.DONE):
        return
    gone = [path for place in journal.places for path in _gone(place, journal.restore)]
    if gone:
        raise TargetUnsafe(
            "the old data is gone: nothing is there to put back in place",
            subject=", ".join(map(str, gone)),
            remedy="if it was moved, move it back there and roll back again; if it was deleted, the restored data is "
            "all there is: leave it (--continue ends an interrupted restore), or restore a backup",
        )


def _gone(place: JournalPlace, restore: str) -> list[Path]:
    """Directories that must hold old files, and do not."""
    without = {*place.made, *(place.empty or ())}
    wanted = [live.kept(restore) for live in place.place().lives if str(live.path) not in without]
    gone = [path for path in wanted if not (path.is_dir() and any(path.iterdir()))]
    if place.empty is None and (place.fingerprint == OF_NOTHING or len(gone) < len(wanted)):
        return []  # a journal that does not tell: a directory of which nothing is left may have been empty
    return gone
