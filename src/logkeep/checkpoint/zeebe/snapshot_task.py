"""Reads files of stored snapshots: what an engine runs. The CRC-32C of each."""

from collections.abc import Iterator, Sequence

import google_crc32c
import msgspec

from logkeep.checkpoint.zeebe.stored_file import StoredFileReader
from logkeep.errors import Damaged, ObjectMissing
from logkeep.model.work import Progress
from logkeep.store.base import Store

UNIT_BYTES = 64 << 20
_CHUNK = 4 << 20


class SnapshotFile(msgspec.Struct, frozen=True):
    """One file of a snapshot."""

    name: str
    size: int
    compression: str = ""


class SnapshotUnit(msgspec.Struct, frozen=True):
    store: Store
    files: tuple[SnapshotFile, ...]


class ReadFile(msgspec.Struct, frozen=True):
    """Its CRC-32C; -1 if it cannot be read, for the reason `problem`."""

    name: str
    crc: int
    problem: str = ""


class ReadSnapshot(msgspec.Struct, frozen=True):
    files: tuple[ReadFile, ...]


def snapshot_units(store: Store, files: Sequence[SnapshotFile]) -> Iterator[SnapshotUnit]:
    """Units of about `UNIT_BYTES`."""
    chosen, size = list[SnapshotFile](), 0
    for file in files:
        if chosen and size + file.size > UNIT_BYTES:
            yield SnapshotUnit(store, tuple(chosen))
            chosen, size = [], 0
        chosen.append(file)
        size += file.size
    if chosen:
        yield SnapshotUnit(store, tuple(chosen))


def read_snapshot(unit: SnapshotUnit, progress: Progress) -> ReadSnapshot:
    """The task."""
    return ReadSnapshot(tuple(_read(unit.store, file, progress) for file in unit.files))


def _read(store: Store, file: SnapshotFile, progress: Progress) -> ReadFile:
    crc = 0
    try:
        reader = StoredFileReader(store, file.name, file.size, file.compression)
        while data := reader.read(_CHUNK):
            crc = google_crc32c.extend(crc, data)
    except ObjectMissing as error:
        return ReadFile(file.name, -1, error.what)
    except Damaged as error:
        return ReadFile(file.name, -1, error.what)
    progress(file.size)
    return ReadFile(file.name, crc)
