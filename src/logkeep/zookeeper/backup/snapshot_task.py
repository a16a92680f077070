"""The task that copies one snapshot: read, checked to its last checksum, hashed and stored in one pass.

A plain function on a picklable unit. Expected conditions are values in its result: a file that was purged before it was
opened, an unfinished snapshot. It raises for what a retry may fix, and for errors of the store.
"""

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, cast

import msgspec

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.compression import opened
from logkeep.formats.zookeeper.names import SnapshotPacking
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.model.work import Progress
from logkeep.repository.object_writer import StoredObject
from logkeep.zookeeper.backup.source_file import opened_file, reading
from logkeep.zookeeper.model.sink import NewObjects, PieceWriter


class SnapshotCopyOutcome(StrEnum):
    KEPT = "kept"
    VANISHED = "vanished"
    UNUSABLE = "unusable"


@dataclass(frozen=True)
class SnapshotCopyUnit:
    path: str
    pinned: str
    """Where it can be read after its name is gone; empty: nowhere."""
    name: str
    zxid: int
    packing: SnapshotPacking
    size_bytes: int
    member: str
    history: str
    new_objects: NewObjects
    as_is: bool = False
    """Do not compress: the server compressed it, or another one of the same zxid, whose name it would get."""


class CopiedSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    outcome: SnapshotCopyOutcome
    why: str = ""
    finished: bool | None = None
    """For a damaged one: whether its last bytes are those of a complete one, so that it was damaged later. None: it is
    compressed, so this is unknown."""
    stored: StoredObject | None = None
    fuzzy_end: int | None = None
    digest: int | None = None
    digest_zxid: int = 0
    nodes: int = 0
    schemes: tuple[str, ...] = ()


def copy_snapshot(unit: SnapshotCopyUnit, progress: Progress) -> CopiedSnapshot:
    """Store a snapshot file unchanged, if all its checksums match."""
    try:
        file = opened_file(unit.path, unit.pinned)
    except FileNotFoundError:
        return CopiedSnapshot(outcome=SnapshotCopyOutcome.VANISHED)
    with file, reading(unit.path):
        writer = unit.new_objects.open_snapshot(unit.member, unit.history, unit.name, unit.zxid, packed=unit.as_is)
        try:
            return _checked_snapshot(unit, _CopyingFile(file, writer, progress), writer)
        except Damaged as damage:
            finished = _is_finished(file) if unit.packing is SnapshotPacking.PLAIN else None
            return CopiedSnapshot(outcome=SnapshotCopyOutcome.UNUSABLE, why=str(damage), finished=finished)
        finally:
            writer.abort()


def _is_finished(file: BinaryIO) -> bool:
    """The same check that servers make before they start from a snapshot."""
    if file.seek(0, os.SEEK_END) < len(_LAST_BYTES):
        return False
    file.seek(-len(_LAST_BYTES), os.SEEK_END)
    return file.read() == _LAST_BYTES


_LAST_BYTES = b"\0\0\0\1/"


def _checked_snapshot(unit: SnapshotCopyUnit, source: "_CopyingFile", writer: PieceWriter) -> CopiedSnapshot:
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


class _CopyingFile:
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
        """The decompressor closes its source; the file itself is closed by the caller that opened it."""

    def drain(self) -> None:
        """Read the rest: a file is stored completely."""
        while self.read(1 << 20):
            pass
