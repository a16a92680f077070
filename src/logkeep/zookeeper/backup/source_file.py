"""Opens and reads a server's file for a backup, and handles purged, forbidden and unreadable files."""

import hashlib
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from logkeep.errors import BackupFailed, Damaged, DataDirUnusable
from logkeep.formats.zookeeper.agreement import same_transaction
from logkeep.formats.zookeeper.scanned_log import DamageKind
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES, ScannedLog, scan
from logkeep.formats.zookeeper.window import CHUNK_BYTES
from logkeep.zookeeper.backup.server_files import not_allowed

_RECORD_HEAD = struct.Struct(">qi")
"""Checksum and length of the body that follows."""


def base_of(start: int) -> int:
    """The byte from which positions count if a scan begins at a record: skipped bytes are not read."""
    return start - 1 if start else 0


def scanned(
    file: BinaryIO,
    start: int,
    until: int | None,
    sink: Callable[[memoryview], object] | None,
    largest: int | None,
    chunk_bytes: int = CHUNK_BYTES,
) -> ScannedLog:
    file.seek(base_of(start))
    begin = 1 if start else 0
    return scan(file, sink=sink, start_at=begin, until_zxid=until, largest_record=largest, chunk_bytes=chunk_bytes)


class OpenedFile(NamedTuple):
    """A file, from a byte on; `pinned`: where it can be read after its name is gone."""

    path: str
    pinned: str = ""
    start_at: int = 0


@dataclass(frozen=True)
class RecordMark:
    """The last record at or below a zxid in a file: its zxid, its checksum, and the byte after it."""

    zxid: int
    adler: int
    end_at: int


def mark_in(path: Path | str, zxid: int, *, start: int = 0, pinned: str = "") -> RecordMark | None:
    """Search a record from a byte on. None if the file is gone or has no record up to that zxid there."""
    try:
        file = opened_file(str(path), pinned)
    except FileNotFoundError:
        return None
    with file, reading(str(path)):
        at, found = start, scanned(file, start, zxid, None, None)
        while found.last_zxid < zxid and goes_back(found):
            at += found.size_bytes
            found = scanned(file, at, zxid, None, None)
    return RecordMark(found.last_zxid, found.last_adler, at + found.size_bytes) if found.records else None


def body_in(path: Path | str, zxid: int, *, start: int = 0, pinned: str = "") -> bytes | None:
    """The body of the first good record of that zxid, from a byte on. None if there is none."""
    before = mark_in(path, zxid - 1, start=start, pinned=pinned)
    try:
        file = opened_file(str(path), pinned)
    except FileNotFoundError:
        return None
    with file, reading(str(path)):
        at = max(before.end_at if before is not None else start, HEADER_BYTES)
        found = scanned(file, at, zxid, None, None)
        if not found.records or found.first_zxid != zxid:
            return None
        file.seek(at)
        _, length = _RECORD_HEAD.unpack(file.read(_RECORD_HEAD.size))
        return file.read(length)


def same_in(zxid: int, one: OpenedFile, other: OpenedFile) -> bool:
    """Whether two files have the same transaction under a zxid, even in different bytes."""
    ours, theirs = (body_in(where.path, zxid, start=where.start_at, pinned=where.pinned) for where in (one, other))
    try:
        return ours is not None and theirs is not None and same_transaction(ours, theirs)
    except Damaged:
        return False


def goes_back(found: ScannedLog) -> bool:
    """Whether the server logged earlier records again, and continues after them."""
    return bool(found.records and found.damage) and found.damage[0].kind is DamageKind.ORDER


def last_whole(path: Path, start: int, largest: int | None, chunk_bytes: int) -> int:
    """The zxid of the last good record at or after a byte; 0 if there is none, or the file is gone."""
    try:
        file = opened_file(str(path))
    except FileNotFoundError:
        return 0
    with file, reading(str(path)):
        found = scanned(file, start, None, None, largest, chunk_bytes)
    return found.last_zxid if found.records else 0


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Reports an unreadable disk as an error of the source. Stores have errors of their own."""
    try:
        yield
    except OSError as error:
        what = f"the file cannot be read: {(error.strerror or 'unknown reason').lower()}"
        raise BackupFailed(what, subject=path, remedy="check the disk of this server") from error


def opened_file(path: str, pinned: str = "") -> BinaryIO:
    """Raises FileNotFoundError for a purged file, DataDirUnusable for a forbidden or unreadable one."""
    try:
        return Path(path).open("rb")
    except FileNotFoundError:
        if not pinned:
            raise
        return Path(pinned).open("rb")
    except PermissionError as error:
        raise not_allowed(Path(path)) from error
    except OSError as error:
        raise DataDirUnusable(
            f"it cannot be read: {(error.strerror or 'unknown reason').lower()}", subject=path
        ) from error


def sha256_of(path: Path) -> str:
    """Empty for a file that is gone or cannot be read: nothing has that hash."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
