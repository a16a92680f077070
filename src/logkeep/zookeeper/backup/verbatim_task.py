"""The task that copies a damaged file unchanged, in addition to what could be read of it."""

import errno
import os
from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from logkeep.model.work import Progress
from logkeep.repository.object_writer import StoredObject
from logkeep.zookeeper.backup.source_file import opened_file, reading
from logkeep.zookeeper.model.sink import NewObjects

_CHUNK = 1 << 20


@dataclass(frozen=True)
class VerbatimUnit:
    """A damaged file, to be stored unchanged."""

    path: str
    pinned: str
    name: str
    zxid: int
    size_bytes: int
    member: str
    history: str
    new_objects: NewObjects


class CopiedVerbatim(msgspec.Struct, frozen=True, kw_only=True):
    stored: StoredObject | None


def copy_verbatim(unit: VerbatimUnit, progress: Progress) -> CopiedVerbatim:
    """Copy all bytes up to the hole at the end of the file; nothing if the file is gone."""
    try:
        file = opened_file(unit.path, unit.pinned)
    except FileNotFoundError:
        return CopiedVerbatim(stored=None)
    with file, reading(unit.path):
        writer = unit.new_objects.open_damaged(unit.member, unit.history, unit.name, unit.zxid)
        try:
            left = _data_end(file)
            while left and (piece := file.read(min(left, _CHUNK))):
                writer.write(piece)
                progress(len(piece))
                left -= len(piece)
            return CopiedVerbatim(stored=writer.close())
        finally:
            writer.abort()


def _data_end(file: BinaryIO) -> int:
    """The end of the last bytes that are not a hole."""
    descriptor, end = file.fileno(), 0
    try:
        while True:
            end = os.lseek(descriptor, os.lseek(descriptor, end, os.SEEK_DATA), os.SEEK_HOLE)
    except OSError as error:
        if error.errno != errno.ENXIO:  # the file system does not report holes
            end = os.fstat(descriptor).st_size
    file.seek(0)
    return end
