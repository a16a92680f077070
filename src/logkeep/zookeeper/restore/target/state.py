"""The state of a target before it is changed: its files, zxids, epochs and owner. Only reads."""

import hashlib
import os
import stat
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from logkeep.directories.folder import Folder
from logkeep.errors import TargetUnsafe
from logkeep.formats.zookeeper.names import FileKind, FileName, epoch_of, hex_zxid, parse_name
from logkeep.formats.zookeeper.txnlog import scan
from logkeep.zookeeper.restore.target.directories import (
    MARKER,
    LiveDirectory,
    ServerDirectories,
    server_name,
    unreadable,
)
from logkeep.zookeeper.restore.values import HIGHEST_EPOCH, FileOwner, TargetContents

EPOCH_FILES = ("currentEpoch", "acceptedEpoch")
NO_FILES_FINGERPRINT = hashlib.sha256().hexdigest()
"""The fingerprint of a server's directories that hold no file."""
_SMALLEST_RECORD = 45
_MAX_FILE_MODE, _MAX_DIRECTORY_MODE = 0o640, 0o750
_LONGEST_NUMBER = 20


class TargetFile(NamedTuple):
    """A file in one of the directories."""

    folder: Folder
    name: str
    status: os.stat_result

    @property
    def path(self) -> Path:
        return self.folder.path / self.name


def read_contents(place: ServerDirectories) -> TargetContents:
    """Raises TargetUnsafe for a file that cannot be read, or lies in the wrong directory."""
    folders = [live.folder for live in place.lives]
    entries = [entry for folder in folders for entry in _entries(folder)]
    named = list(_named_files(folders))
    _check_kinds(place, named)
    snapshots = [name for _, name in named if name.kind is FileKind.SNAPSHOT]
    logs = [(entry, name) for entry, name in named if name.kind is FileKind.LOG]
    highest, exactly, _ = _highest_in_logs(logs)
    epochs, no_numbers = epochs_in(place.data.folder)
    beside_zxid, beside_epochs, beside_files = _beside(place)
    return TargetContents(
        snapshots=len(snapshots),
        logs=len(logs),
        size_bytes=sum(min(entry.status.st_size, entry.status.st_blocks * 512) for entry in entries),
        highest_zxid=max([highest, *(name.zxid for name in snapshots)]),
        exactly=exactly,
        epochs=epochs,
        beside_zxid=beside_zxid,
        beside_epochs=beside_epochs,
        beside_files=beside_files,
        strays=(*(entry.name for entry, name in named if name.stray), *no_numbers),
        myid=place.data_folder.find("myid") is not None,
        fingerprint=fingerprint_of(place),
    )


def fingerprint_of(place: ServerDirectories) -> str:
    """Changes when a file is added, removed or written to."""
    found = hashlib.sha256()
    for number, live in enumerate(place.lives):
        for entry in _entries(live.folder):
            found.update(repr((number, entry.name, entry.status.st_size, entry.status.st_mtime_ns)).encode())
    return found.hexdigest()


def highest_zxid(folders: Iterable[Folder | None], kinds: Container[FileKind] = tuple(FileKind)) -> int:
    """By the names of files and the records of logs, 0 for none. Raises TargetUnsafe for files that cannot be read."""
    return _highest_with_file(folders, kinds)[0]


def _highest_with_file(
    folders: Iterable[Folder | None], kinds: Container[FileKind] = tuple(FileKind)
) -> tuple[int, Path | None]:
    """The highest zxid and the file that holds it."""
    named = [(entry, name) for entry, name in _named_files(folders) if name.kind in kinds]
    zxid, _, file = _highest_in_logs((entry, name) for entry, name in named if name.kind is FileKind.LOG)
    tops = [(zxid, file), *((name.zxid, entry.path) for entry, name in named)]
    return max(tops, key=lambda top: top[0])


def _beside(place: ServerDirectories) -> tuple[int, tuple[int, ...], tuple[str, str]]:
    """The highest zxid and all epochs of the directories beside, and the files that hold the highest of both."""
    left = [folder for live in place.lives for folder in live.left_beside()]
    zxid, file = max((_highest_with_file([folder]) for folder in left), key=lambda top: top[0], default=(0, None))
    epochs = [(number, path) for folder in left for path, number in _epoch_files(folder) if number is not None]
    highest = max(epochs, default=None)
    return zxid, tuple(number for number, _ in epochs), (str(file or ""), str(highest[1]) if highest else "")


def is_empty(live: LiveDirectory) -> bool:
    return not _entries(live.folder)


def owner_of(live: LiveDirectory) -> FileOwner:
    """Owner and modes of the replaced files; of the parent directory where there are none."""
    owner = owner_like(live.folder or live.above)
    file_mode = owner.file_mode
    for entry in _entries(live.folder):
        if stat.S_ISREG(entry.status.st_mode):
            file_mode &= stat.S_IMODE(entry.status.st_mode) | stat.S_IRUSR | stat.S_IWUSR
    return FileOwner(owner.uid, owner.gid, file_mode, owner.directory_mode)


def journal_owner(place: ServerDirectories) -> FileOwner:
    """The owner of dataDir, whose journals count there; the modes of the replaced files.

    A user who is neither root nor that owner, but may write there, keeps what it makes.
    """
    modes, owner, uid = owner_of(place.data), owner_like(place.data_folder), place.data_folder.worker.uid
    return FileOwner(uid or owner.uid, owner.gid, modes.file_mode, modes.directory_mode)


def owner_like(folder: Folder) -> FileOwner:
    status = os.fstat(folder.descriptor)
    directory_mode = stat.S_IMODE(status.st_mode) & _MAX_DIRECTORY_MODE | stat.S_IRWXU
    return FileOwner(status.st_uid, status.st_gid, _MAX_FILE_MODE, directory_mode)


def same_bytes(folder: Folder, name: str, content: bytes) -> bool:
    """Whether there is such a file with this content."""
    if folder.find(name) is None:
        return False
    try:
        with folder.opened(name) as file:
            return os.pread(file, len(content) + 1, 0) == content
    except OSError:
        return False


def _entries(folder: Folder | None) -> list[TargetFile]:
    """All files except the marker."""
    if folder is None:
        return []
    try:
        return [TargetFile(folder, name, status) for name, status in folder.entries() if name != MARKER]
    except OSError as error:
        raise unreadable(folder.path, error) from error


def _named_files(folders: Iterable[Folder | None]) -> Iterator[tuple[TargetFile, FileName]]:
    """Snapshots and logs."""
    for folder in folders:
        for entry in _entries(folder):
            name = parse_name(server_name(entry.folder, entry.name))
            if name is not None:
                if epoch_of(name.zxid) >= HIGHEST_EPOCH:
                    raise _impossible_number(entry.path, f"zxid {hex_zxid(name.zxid)}")
                yield entry, name


def _check_kinds(place: ServerDirectories, named: Iterable[tuple[TargetFile, FileName]]) -> None:
    """With separate directories a server refuses to start when one holds files of the other."""
    if not place.separate:
        return
    for entry, name in named:
        right = place.log.path if name.kind is FileKind.LOG else place.data.path
        if entry.folder.path != right:
            raise TargetUnsafe(
                f"a {name.kind} lies in the directory that was named for the other files",
                subject=str(entry.path),
                remedy="check whether dataDir and dataLogDir were exchanged",
            )


def _impossible_number(file: Path, number: str) -> TargetUnsafe:
    """The restore must choose numbers above all known ones, and there is none above this one."""
    return TargetUnsafe(
        f"according to it {number} was in use, and no server ever reaches such a number",
        subject=str(file),
        remedy=f"find out what wrote it, move it out of {file.parent}, and run again",
    )


def _highest_in_logs(logs: Iterable[tuple[TargetFile, FileName]]) -> tuple[int, bool, Path | None]:
    """The newest log that has a record decides; a damaged log is counted as full after its damage."""
    highest, exactly, file = 0, True, None
    for entry, name in sorted(logs, key=lambda log: log[1].zxid, reverse=True):
        last, whole = _last_zxid(entry)
        reached = max(name.zxid, last if whole else last + entry.status.st_size // _SMALLEST_RECORD)
        if reached > highest:
            highest, file = reached, entry.path
        exactly = exactly and whole
        if last and whole:
            break
    return highest, exactly, file


def _last_zxid(log: TargetFile) -> tuple[int, bool]:
    """The last zxid that can be read, and whether the log is undamaged."""
    try:
        with os.fdopen(log.folder.open_file(log.name), "rb") as source:
            scanned = scan(source, deep=True)
    except OSError as error:
        raise unreadable(log.path, error) from error
    resumed = [each.resumes_zxid for each in scanned.damage if each.resumes_zxid is not None]
    return max([scanned.last_zxid or 0, *resumed]), not scanned.damage


def epochs_in(folder: Folder | None) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The epochs, and the names of epoch files that hold no number."""
    files = list(_epoch_files(folder))
    return tuple(n for _, n in files if n is not None), tuple(path.name for path, n in files if n is None)


def _epoch_files(folder: Folder | None) -> Iterator[tuple[Path, int | None]]:
    for entry in _entries(folder):
        if server_name(entry.folder, entry.name) in EPOCH_FILES and stat.S_ISREG(entry.status.st_mode):
            number = _read_number(entry)
            if number is not None and number >= HIGHEST_EPOCH:
                raise _impossible_number(entry.path, f"epoch {number}")
            yield entry.path, number


def _read_number(entry: TargetFile) -> int | None:
    try:
        with entry.folder.opened(entry.name) as file:
            text = os.pread(file, _LONGEST_NUMBER, 0).strip()
    except OSError as error:
        raise unreadable(entry.path, error) from error
    return int(text) if text.isdigit() else None
