"""The task that copies one snapshot: read once, checked to its last seal, hashed and stored in the same pass.

A plain function on a picklable unit. What it can foresee is a value in its result: a file that was purged before it was
opened, a snapshot that is not finished. It raises for what a retry can cure, and for a store that refuses.
"""

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, cast

import msgspec

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import SnapshotPacking
from logkeep.formats.zookeeper.packed import opened
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.model.work import Progress
from logkeep.repository.object_writer import StoredObject
from logkeep.zookeeper.backup.source_file import opened_file, reading
from logkeep.zookeeper.model.sink import PieceWriter, Shelf


class SnapshotCopyOutcome(StrEnum):
    KEPT = "kept"
    VANISHED = "vanished"
    UNUSABLE = "unusable"


@dataclass(frozen=True)
class SnapshotCopyUnit:
    path: str
    pinned: str
    """Where its bytes are when its name is gone; empty: nowhere."""
    name: str
    zxid: int
    packing: SnapshotPacking
    size_bytes: int
    member: str
    history: str
    shelf: Shelf
    as_is: bool = False
    """The server packed it, or another one of the same zxid: packing it ourselves would give it that one's name."""


class CopiedSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    outcome: SnapshotCopyOutcome
    why: str = ""
    finished: bool | None = None
    """Of one that is not whole: its last bytes are those of a whole one, so it was damaged since. None: it is packed,
    so nobody can tell."""
    stored: StoredObject | None = None
    fuzzy_end: int | None = None
    digest: int | None = None
    digest_zxid: int = 0
    nodes: int = 0
    schemes: tuple[str, ...] = ()


def copy_snapshot(unit: SnapshotCopyUnit, progress: Progress) -> CopiedSnapshot:
    """Store a snapshot file as it is, if all its seals fit."""
    try:
        file = opened_file(unit.path, unit.pinned)
    except FileNotFoundError:
        return CopiedSnapshot(outcome=SnapshotCopyOutcome.VANISHED)
    with file, reading(unit.path):
        writer = unit.shelf.open_snapshot(unit.member, unit.history, unit.name, unit.zxid, packed=unit.as_is)
        try:
            return _checked_snapshot(unit, _Copied(file, writer, progress), writer)
        except Damaged as damage:
            finished = _is_finished(file) if unit.packing is SnapshotPacking.PLAIN else None
            return CopiedSnapshot(outcome=SnapshotCopyOutcome.UNUSABLE, why=str(damage), finished=finished)
        finally:
            writer.abort()


def _is_finished(file: BinaryIO) -> bool:
    """As servers look at it before they choose one to start from."""
    if file.seek(0, os.SEEK_END) < len(_LAST_BYTES):
        return False
    file.seek(-len(_LAST_BYTES), os.SEEK_END)
    return file.read() == _LAST_BYTES


_LAST_BYTES = b"\0\0\0\1/"


def _checked_snapshot(unit: SnapshotCopyUnit, source: "_Copied", writer: PieceWriter) -> CopiedSnapshot:
    reader = SnapshotReader(opened(cast("BinaryIO", source), unit.packing))
    reader.sessions()
    acls = reader.acls()
    nodes = largest = 0
    for row in reader.nodes():
        nodes += 1
        largest = max(largest, row.czxid, row.mzxid, row.pzxid)
    ending = reader.ending()
    source.drain()
    return CopiedSnapshot(
        outcome=SnapshotCopyOutcome.KEPT,
        stored=writer.close(),
        fuzzy_end=ending.fuzzy_end(unit.zxid, largest),
        digest=ending.digest,
        digest_zxid=ending.digest_zxid,
        nodes=nodes,
        schemes=tuple(sorted({a.scheme.decode("utf-8", "replace") for one in acls.values() for a in one})),
    )


class _Copied:
    """A file that is stored while it is read."""

    def __init__(self, file: BinaryIO, writer: PieceWriter, progress: Progress) -> None:
        self._file, self._writer, self._progress = file, writer, progress

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if data:
            self._writer.write(data)
            self._progress(len(data))
        return data

    def close(self) -> None:
        """Whoever unpacks it closes what it read from; the file is closed by who opened it."""

    def drain(self) -> None:
        """Whatever the reader left unread: a file is stored whole."""
        while self.read(1 << 20):
            pass
