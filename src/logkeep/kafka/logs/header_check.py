"""Checks the first 17 bytes of archived batches, which their CRC-32C does not cover.

Base offset, length, leader epoch and version come before the checksum. A flipped bit in a base offset moves records to
other offsets, or out of the range that is read: the batch would be missing, and a proof that reads the same archive
would not notice. The index beside the object was written with it, has a checksum of its own, and is compared batch by
batch, in whole columns. If it is lost, damaged or different, the object's SHA-256 decides: one more pass over that
object, and either its headers are those that were archived, or it is Damaged.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.kafka.batch_index import BatchIndex
from logkeep.formats.kafka.batches import Batches, Longs
from logkeep.model.segments import Segment
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.reader import StoredLog, read_index

NOT_WRITTEN = "the bytes are not those that were written"


def index_beside(place: SourceRef, segment: Segment) -> BatchIndex | None:
    """The index of a segment; None if it is lost or damaged, or does not fit the segment's row."""
    found = read_index(place, segment)
    if found is None:
        return None
    size = int(found.rows["size"].sum(dtype=np.int64))
    return found if (size, found.records) == (segment.plain_bytes, segment.records) else None


@dataclass(frozen=True)
class _IndexedHeaders:
    """The columns of an index that no CRC-32C covers. The others are dropped: an index may be large."""

    base_offsets: Longs
    sizes: npt.NDArray[np.int32]
    leader_epochs: npt.NDArray[np.int32]

    @classmethod
    def of(cls, index: BatchIndex) -> "_IndexedHeaders":
        rows = index.rows
        return cls(rows["base_offset"].copy(), rows["size"].copy(), rows["leader_epoch"].copy())

    def agrees(self, at: int, batches: Batches) -> bool:
        """Whether these are the batches from number `at` on."""
        own = slice(at, at + len(batches))
        return (
            np.array_equal(self.base_offsets[own], batches.base_offsets)
            and np.array_equal(self.sizes[own], batches.sizes)
            and np.array_equal(self.leader_epochs[own], batches.headers["leader_epoch"])
        )


class HeaderCheck:
    """Checks the batches of one object, all of them in order, as they are read."""

    def __init__(self, place: SourceRef, segment: Segment) -> None:
        """Raises Damaged if there is no index and the object is not what was archived."""
        self._log, self._sha256, self._at = StoredLog.of(place, segment), segment.sha256, 0
        index = index_beside(place, segment)
        self._indexed = None if index is None else _IndexedHeaders.of(index)
        if self._indexed is None:
            self._check_hash(NOT_WRITTEN)

    def check_next(self, batches: Batches) -> None:
        """Raises Damaged if the next batches are not those that were archived."""
        if self._indexed is not None and not self._indexed.agrees(self._at, batches):
            first = f" at offset {batches.base_offsets[0]}" if len(batches) else ""
            self._check_hash(f"a batch{first} or later does not have the offset, length or epoch that was archived")
        self._at += len(batches)

    def check_end(self) -> None:
        """Raises Damaged if batches are missing."""
        if self._indexed is not None and self._at != len(self._indexed.sizes):
            self._check_hash(f"holds {self._at} batches instead of {len(self._indexed.sizes)}")

    def _check_hash(self, what: str) -> None:
        """Object and index differ, or there is no index: if the object has its hash, the index is wrong."""
        if not self._log.is_stored_as(self._sha256):
            raise Damaged(what, subject=self._log.name)
        self._indexed = None
