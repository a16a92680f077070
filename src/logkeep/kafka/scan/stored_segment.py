"""One archived segment and its batch index: reads chosen batches of it, and nothing else.

What is returned is checked: the CRC-32C of every batch, and its header against the index. If both differ, the object's
SHA-256 decides: either the object is damaged, or its index is wrong and `WrongIndex` is raised. A small object is read
as a whole and hashed, which costs less than reading its index.
"""

import hashlib
from collections.abc import Iterator

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.kafka.batch_index import ROW, BatchIndex, index_of
from logkeep.formats.kafka.batches import Batches, BatchStretch, Bytes, Longs, WalkEnd, first_broken, walk
from logkeep.kafka.logs.archived import HASHED_BYTES
from logkeep.kafka.logs.header_check import NOT_WRITTEN, index_beside
from logkeep.kafka.logs.rebuilt_index import rebuild_index
from logkeep.kafka.scan.batch_rows import NEAR_BYTES, read_together
from logkeep.model.segments import Codec, Segment
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.log_batches import LogPieces
from logkeep.repository.segments.reader import StoredLog, joined

_COMPARED = tuple(name for name in ROW.names or () if name != "position")


class WrongIndex(Exception):
    """The index beside an object is not that of the object."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment.token)
        self.segment = segment


class ScannedSegment:
    """Opening it reads the index, or a small object as a whole. Raises Damaged or a StoreError."""

    def __init__(self, place: SourceRef, segment: Segment, *, rebuild: bool = False) -> None:
        self.segment = segment
        self._log = StoredLog.of(place, segment)
        self._whole: BatchStretch | None = None
        found = None
        if max(segment.plain_bytes, segment.stored_bytes) <= HASHED_BYTES:
            self._whole = self._read_whole()
            found = index_of(self._whole.batches)
        elif not rebuild:
            found = index_beside(place, segment)
        self._proven = found is None or self._whole is not None
        self.index: BatchIndex = rebuild_index(self._log, segment.sha256) if found is None else found

    def chosen(self, rows: Longs, near_bytes: int = NEAR_BYTES) -> Iterator[BatchStretch]:
        """The batches with these rising numbers, in order. Raises Damaged, WrongIndex or a StoreError."""
        if self._whole is not None:
            yield BatchStretch(self._whole.buffer, _take_rows(self._whole.batches, rows))
        elif self._log.codec is Codec.NONE or self._log.fits(self.index):
            for group in read_together(self.index, rows, near_bytes):
                yield self._group(group)
        else:
            yield from self._streamed(rows)

    def _read_whole(self) -> BatchStretch:
        summed = hashlib.sha256()
        data = joined(self._log.pieces(summed.update))
        if summed.hexdigest() != self.segment.sha256:
            raise Damaged(NOT_WRITTEN, subject=self._log.name)
        return BatchStretch(data, self._walked(data))

    def _walked(self, data: Bytes) -> Batches:
        walked = walk(data)
        if walked.stop is not WalkEnd.END or first_broken(data, walked.batches) is not None:
            raise Damaged(walked.reason or NOT_WRITTEN, subject=self._log.name)
        return walked.batches

    def _group(self, rows: Longs) -> BatchStretch:
        """One read: the batches from the first to the last of them."""
        first, last = int(rows[0]), int(rows[-1])
        wanted = self.index.rows[first : last + 1]
        start = int(wanted["position"][0])
        length = int(wanted["position"][-1]) + int(wanted["size"][-1]) - start
        data = joined(self._log.range(start, length, self.index))
        try:
            batches = self._walked(data)
        except Damaged:
            self._refuse_index()
            raise
        if not self._agrees(first, batches):
            self._refuse_index()
            raise Damaged(NOT_WRITTEN, subject=self._log.name)
        return BatchStretch(data, _take_rows(batches, rows - first))

    def _agrees(self, first: int, batches: Batches) -> bool:
        indexed, read = self.index.rows[first : first + len(batches)], index_of(batches).rows
        return len(indexed) == len(read) and all(np.array_equal(indexed[name], read[name]) for name in _COMPARED)

    def _refuse_index(self) -> None:
        """Raise WrongIndex if the object is what was archived."""
        if not self._proven and self._log.is_stored_as(self.segment.sha256):
            raise WrongIndex(self.segment)

    def _streamed(self, rows: Longs) -> Iterator[BatchStretch]:
        """The chosen batches of a packed log whose frames are not known: one pass from the beginning of the object to
        the last of them."""
        pieces, at = LogPieces(), 0
        for piece in self._log.pieces():
            for buffer, batches in pieces.take(piece):
                if not self._agrees(at, batches):
                    self._refuse_index()
                    raise Damaged(NOT_WRITTEN, subject=self._log.name)
                own = rows[(rows >= at) & (rows < at + len(batches))] - at
                at += len(batches)
                if len(own):
                    yield BatchStretch(buffer, _take_rows(batches, own))
            if pieces.problem:
                raise Damaged(pieces.problem, subject=self._log.name)
            if len(rows) == 0 or at > int(rows[-1]):
                return


def _take_rows(batches: Batches, rows: Longs) -> Batches:
    return Batches(batches.headers[rows], batches.positions[rows])
