"""What lies in the directories of one server: its snapshots, its logs, its epochs, and what does not belong there.

Looking reads names, sizes and two tiny files, never data. The directories of a running server change while one looks:
what vanishes between two calls was purged, and is simply not there.
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
    "since ZooKeeper 3.0 data lies in `version-2`; these files are older, and no server of today reads them"
)


@dataclass(frozen=True)
class MemberPlace:
    """Where one server keeps its files, and where it can be asked. Directories may be named with their `version-2`."""

    name: str
    data_dir: Path
    log_dir: Path
    host: str = ""
    """`host:port` for clients; empty when the server shall not be asked."""
    origin: FileOrigin = FileOrigin.DISK
    """Where the files come from; nobody but who fetched them can tell."""


@dataclass(frozen=True)
class FoundFile:
    path: Path
    name: FileName
    size_bytes: int
    """As the file says, with padding."""
    used_bytes: int
    """At most so many bytes are no holes."""
    changed_ns: int = 0
    """When it was last written to."""

    @property
    def zxid(self) -> int:
        return self.name.zxid


@dataclass(frozen=True)
class ServerFiles:
    """One look at one server. Snapshots and logs are in order of zxid."""

    snapshot_dir: Path
    log_dir: Path
    snapshots: tuple[FoundFile, ...]
    logs: tuple[FoundFile, ...]
    strays: tuple[str, ...]
    """Files that a server would read and that no server wrote: they are never copied."""
    my_id: str = ""
    current_epoch: int | None = None
    accepted_epoch: int | None = None


def look(place: MemberPlace) -> ServerFiles:
    """Raises DataDirUnusable for a directory that is none of ZooKeeper's, or that cannot be read."""
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
        raise DataDirUnusable("there is no snapshot and no log", subject=_both(snapshot_dir, log_dir))
    return seen


def _is_being_written(file: FoundFile) -> bool:
    """As servers since 3.6 write a snapshot that is to be durable at once, and leave it when they are killed."""
    return file.name.kind is FileKind.SNAPSHOT and file.path.name.endswith(".tmp")


def version_2(directory: Path) -> Path:
    """The directory that really holds the files, whichever of the two was named."""
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
    """Files of today begin with ZKLG or ZKSN; a copy of a `version-2` may have any name, so the name says nothing."""
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
    told = {errno.ENOENT: "there is no such directory", errno.ENOTDIR: "this is not a directory"}
    if error.errno in {errno.EACCES, errno.EPERM}:
        return not_allowed(directory)
    return DataDirUnusable(told.get(error.errno or 0, (error.strerror or "unreadable").lower()), subject=str(directory))


def not_allowed(path: Path) -> DataDirUnusable:
    return DataDirUnusable(
        "it cannot be read: permission denied",
        subject=str(path),
        remedy="run as the user of the server, or as a member of a group that may read its directories",
    )


def _both(one: Path, other: Path) -> str:
    return str(one) if one == other else f"{one}, {other}"
