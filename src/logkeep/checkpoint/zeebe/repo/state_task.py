"""The task that archives files of a snapshot: those whose content the backup before does not have."""

import hashlib
from collections.abc import Iterator

from logkeep.checkpoint.zeebe.repo.record import ArchivedStateFile, file_name
from logkeep.checkpoint.zeebe.repo.units import CopiedState, StateFile, StateImport, receipt_for, row_of
from logkeep.checkpoint.zeebe.stored_file import StoredFileReader
from logkeep.errors import SourceDamaged
from logkeep.model.segments import Codec, Segment
from logkeep.model.time import random_token
from logkeep.model.work import Progress
from logkeep.repository.backups.journal import put_receipt
from logkeep.repository.chain import layout
from logkeep.repository.object_writer import StoredWriter

_CHUNK = 4 << 20
_CHANGED = "no process may change a completed backup of Zeebe; run again"


def copy_state(unit: StateImport, progress: Progress) -> CopiedState:
    """Archive the files that are new, and store a receipt of them."""
    files, rows = list[ArchivedStateFile](), dict[str, Segment]()
    for each in unit.files:
        sha256, size_bytes = _hashed(unit, each)
        file = ArchivedStateFile(name=each.file, size_bytes=size_bytes, sha256=sha256)
        if each.known != file and sha256 not in rows:
            rows[sha256] = _stored(unit, each, file, progress)
        files.append(file)
    result = CopiedState(files=tuple(files), rows=tuple(rows.values()))
    put_receipt(unit.target.place, receipt_for(unit.target, unit.name, result.rows, result), random_token())
    return result


def _pieces(unit: StateImport, file: StateFile) -> Iterator[bytes]:
    place = file.object
    reader = StoredFileReader(unit.store, place.name, place.size_bytes, place.compression)
    while piece := reader.read(_CHUNK):
        yield piece


def _hashed(unit: StateImport, file: StateFile) -> tuple[str, int]:
    digest, size_bytes = hashlib.sha256(), 0
    for piece in _pieces(unit, file):
        digest.update(piece)
        size_bytes += len(piece)
    return digest.hexdigest(), size_bytes


def _stored(unit: StateImport, file: StateFile, wanted: ArchivedStateFile, progress: Progress) -> Segment:
    """Its name contains its hash, so it is read a second time: the bytes that are written must have that hash."""
    place, log, token = unit.target.place, file_name(wanted.sha256, unit.partition), random_token()
    name = layout.object_of(place.source, log, 0, token, Codec.ZSTD)
    writer = StoredWriter(place.store.open_new(name, wanted.size_bytes), name, token, Codec.ZSTD)
    try:
        for piece in _pieces(unit, file):
            writer.write(piece)
            progress(len(piece))
        stored = writer.close()
    finally:
        writer.abort()
    if stored.plain_sha256 != wanted.sha256:
        raise SourceDamaged("the object changed while it was read", subject=file.object.name, remedy=_CHANGED)
    return row_of(log, 0, 1, 1, stored)
