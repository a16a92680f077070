"""Reads one batch of an archived log from its object, found by the index beside it."""

from collections.abc import Iterable, Sequence

import numpy as np

from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.formats.kafka.batches import Batches, first_broken, walk
from logkeep.kafka.logs.batch_traits import last_batch_of
from logkeep.kafka.logs.header_check import index_beside
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.parts import SegmentTable
from logkeep.repository.segments.log_batches import LogPieces
from logkeep.repository.segments.reader import StoredLog


def read_batch(place: SourceRef, segments: Sequence[Segment], offset: int) -> bytes | None:
    """The last batch that begins at or before an offset; None if there is none or its bytes are lost or damaged.

    `segments` are rows of one log in order.
    """
    for row in reversed([s for s in segments if s.has_object and s.first <= offset]):
        try:
            found = _from_object(place, row, min(offset, row.end - 1))
        except (ObjectMissing, Damaged, UnsafeName):
            return None
        if found is not None:
            return found if _is_whole(found) else None
    return None


def header_of(batch: bytes) -> LastBatch:
    return last_batch_of(walk(batch).batches)


def rows_in(place: SourceRef, entry: BackupEntry) -> SegmentTable:
    """The rows of a backup."""
    manifest = read_manifest(place, entry)
    return rows_of(PartReader(place), manifest, served_parts(manifest, read_chain(place)))


def by_log(segments: Iterable[Segment]) -> dict[LogName, list[Segment]]:
    found: dict[LogName, list[Segment]] = {}
    for each in sorted(segments, key=lambda s: (s.log, s.first, s.start)):
        found.setdefault(each.log, []).append(each)
    return found


def _from_object(place: SourceRef, row: Segment, offset: int) -> bytes | None:
    index, stored = index_beside(place, row), StoredLog.of(place, row)
    if index is None:
        return _by_walking(stored, row, offset)
    at = int(np.searchsorted(index.rows["base_offset"], offset, side="right")) - 1
    if at < 0 or index.rows["last_offset"][at] < row.start:
        return None
    return b"".join(stored.range(int(index.rows["position"][at]), int(index.rows["size"][at]), index))


def _by_walking(stored: StoredLog, row: Segment, offset: int) -> bytes | None:
    """The batch, found by reading every batch of the object: there is no index."""
    pieces, last = LogPieces(), None
    for piece in stored.pieces():
        for buffer, batches in pieces.take(piece):
            chosen = _before(batches, row.start, offset)
            if len(chosen):
                last = bytes(buffer[chosen.start : chosen.end])
    if pieces.problem:
        raise Damaged(pieces.problem, subject=stored.name)
    return last


def _before(batches: Batches, start: int, offset: int) -> Batches:
    """The last batch that begins at or before an offset and does not end before `start`."""
    end = int(np.searchsorted(batches.base_offsets, offset, side="right"))
    return batches[end - 1 : end] if end and batches.last_offsets[end - 1] >= start else batches[:0]


def _is_whole(batch: bytes) -> bool:
    batches = walk(batch).batches
    return len(batches) == 1 and first_broken(batch, batches) is None
