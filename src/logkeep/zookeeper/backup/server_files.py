"""Lists the directories of one server: snapshots, logs, epochs, and files that do not belong there.

This reads names, sizes and two small files, never data. The directories of a running server change meanwhile: a file
that vanishes between two calls was purged, and is left out.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import DataDirUnusable
from logkeep.formats.zookeeper.names import FileKind, FileName, SnapshotPacking, parse_name
from logkeep.zookeeper.model.archived import FileOrigin

VERSION_2 = "version-2"
_SMALL_FILE_BYTES = 64
_BEFORE_VERSION_2 = (
    "since ZooKeeper 3.0 data is in `version-2`; these files are older, and no current server reads them"
)


@dataclass(frozen=True)
class MemberPlace:
    """The directories of one server, and its address. Directories may be given with their `version-2`."""

    name: str
    data_dir: Path
    log_dir: Path
    host: str = ""
    """`host:port` for clients; empty if the server is not to be asked."""
    origin: FileOrigin = FileOrigin.DISK
    """How the files were obtained."""


@dataclass(frozen=True)
class FoundFile:
    path: Path
    name: FileName
    size_bytes: int
    """Size of the file, with padding."""
    used_bytes: int
    """Upper limit of the bytes that are not holes."""
    changed_ns: int = 0
    """Time of the last write."""

    @property
    def zxid(self) -> int:
        return self.name.zxid


@dataclass(frozen=True)
class ServerFiles:
    """Files of one server at one moment. Snapshots and logs are in order of zxid."""

    snapshot_dir: Path
    log_dir: Path
    snapshots: tuple[FoundFile, ...]
    logs: tuple[FoundFile, ...]
    strays: tuple[str, ...]
    """Files that a server would read and that no server wrote: they are never copied."""
    my_id: str = ""
    current_epoch: int | None = None
    accepted_epoch: int | None = None


def list_files(place: MemberPlace) -> ServerFiles:
    """Raises DataDirUnusable for a directory that is not ZooKeeper's or cannot be read."""
    snapshot_dir, log_dir = version_2(place.data_dir), version_2(place.log_dir)
    found = list(_files(snapshot_dir)) + (list(_files(log_dir)) if log_dir != snapshot_dir else [])
    ours = [f for f in found if not f.name.stray]
    seen = ServerFiles(
        snapshot_dir,
        log_dir,
        tuple(_of_kind(ours, FileKind.SNAPSHOT)),
        tuple(_of_kind(ours, FileKind.LOG)),
        tuple(sorted(str(f.path) for f in found if f.name.stray and not _is_being_written(f))),
        _text(snapshot_dir.parent / "myid"),
        _number(snapshot_dir / "currentEpoch"),
        _number(snapshot_dir / "acceptedEpoch"),
    )
    if not seen.snapshots and not seen.logs:
        both = str(snapshot_dir) if snapshot_dir == log_dir else f"{snapshot_dir}, {log_dir}"
        raise DataDirUnusable("there is no snapshot and no log", subject=both)
    return seen


def _is_being_written(file: FoundFile) -> bool:
    """Servers since 3.6 write synced snapshots under this name, and leave them when they are killed."""
    return file.name.kind is FileKind.SNAPSHOT and file.path.name.endswith(".tmp")


def version_2(directory: Path) -> Path:
    """The directory that holds the files, whichever of the two was given."""
    inner = directory / VERSION_2
    try:
        if inner.is_dir():
            return inner
        names = [entry.name for entry in directory.iterdir()]
    except OSError as error:
        raise _unusable(error, directory) from error
    if directory.name != VERSION_2 and _is_older(directory, names):
        raise DataDirUnusable(
            "these files are from before ZooKeeper 3", subject=str(directory), remedy=_BEFORE_VERSION_2
        )
    return directory


def _is_older(directory: Path, names: list[str]) -> bool:
    """Current files begin with ZKLG or ZKSN. A copy of `version-2` may have any name, so the name says nothing."""
    known = sorted(name for name in names if (parsed := parse_name(name)) and parsed.packing is SnapshotPacking.PLAIN)
    heads = [head for name in known if (head := _head(directory / name))]
    return bool(heads) and not any(head in {b"ZKLG", b"ZKSN"} for head in heads)


def _head(path: Path) -> bytes:
    with suppress(OSError), path.open("rb") as file:
        return file.read(4)
    return b""


def _files(directory: Path) -> Iterator[FoundFile]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                name = parse_name(entry.name)
                with suppress(FileNotFoundError):  # purged a moment ago
                    if name is not None and entry.is_file(follow_symlinks=True):
                        status = entry.stat()
                        used = min(status.st_size, status.st_blocks * 512)
                        yield FoundFile(Path(entry.path), name, status.st_size, used, status.st_mtime_ns)
    except OSError as error:
        raise _unusable(error, directory) from error


def _of_kind(found: list[FoundFile], kind: FileKind) -> list[FoundFile]:
    return sorted((f for f in found if f.name.kind is kind), key=lambda f: (f.zxid, f.path.name))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_SMALL_FILE_BYTES).decode("ascii", "replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isascii() and text.isdecimal() else None


def _unusable(error: OSError, directory: Path) -> DataDirUnusable:
    texts = {errno.ENOENT: "there is no such directory", errno.ENOTDIR: "this is not a directory"}
    if error.errno in {errno.EACCES, errno.EPERM}:
        return not_allowed(directory)
    return DataDirUnusable(
        texts.get(error.errno or 0, (error.strerror or "unreadable").lower()), subject=str(directory)
    )


def not_allowed(path: Path) -> DataDirUnusable:
    return DataDirUnusable(
        "it cannot be read: permission denied",
        subject=str(path),
        remedy="run as the user of the server, or as a member of a group that may read its directories",
    )
