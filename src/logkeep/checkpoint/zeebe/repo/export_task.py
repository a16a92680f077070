"""The task that writes one file of a partition into a store of Zeebe, and compares it with its hash."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from logkeep.errors import Damaged, StoreError
from logkeep.model.segments import Segment
from logkeep.model.work import Progress
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.reader import StoredLog
from logkeep.store.base import ObjectWriter, Store


@dataclass(frozen=True)
class FileExport:
    """One file. `head` is written before the archived bytes and is not in their hash."""

    place: SourceRef
    store: Store
    name: str
    head: bytes
    rows: tuple[Segment, ...]
    size_bytes: int
    sha256: str


class FileExported(msgspec.Struct, frozen=True):
    size_bytes: int


def export_file(unit: FileExport, progress: Progress) -> FileExported:
    """Raises Damaged if the archived bytes are not those that were imported. Nothing becomes visible then."""
    digest, written = hashlib.sha256(), len(unit.head)
    writer = unit.store.open_new(unit.name, unit.size_bytes)
    try:
        writer.write(unit.head)
        for piece in _pieces(unit):
            digest.update(piece)
            written += len(piece)
            writer.write(piece)
            progress(len(piece))
        if digest.hexdigest() != unit.sha256 or written != unit.size_bytes:
            raise Damaged("its archived bytes are not those that were imported", subject=unit.name)
        _close(writer, unit)
    finally:
        writer.abort()
    return FileExported(written)


def _pieces(unit: FileExport) -> Iterator[memoryview]:
    for row in unit.rows:
        yield from StoredLog.of(unit.place, row).pieces()


def _close(writer: ObjectWriter, unit: FileExport) -> None:
    if (length := writer.close()) != unit.size_bytes:
        raise StoreError(f"{unit.size_bytes} bytes were written, but the store kept {length}", subject=unit.name)
