"""Writes the batches of a segment into its object: as they are, or in zstd frames.

Both take whole batches that were checked already, hash the stored and the plain bytes, and keep at most one unfinished
frame in memory.
"""

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from logkeep.formats.kafka.batch_index import FRAME
from logkeep.formats.kafka.batches import Batches
from logkeep.formats.zstd_frames import borders, compressed_balance, packed_frame, raw_frame
from logkeep.model.segments import Codec
from logkeep.store.base import ObjectWriter


@dataclass(frozen=True)
class Packed:
    """Sizes, hashes and frames of a written object."""

    stored_bytes: int
    sha256: str
    plain_sha256: str
    frames: np.ndarray[tuple[int], np.dtype[np.void]]


class SegmentPacking(Protocol):
    def append(self, data: memoryview, batches: Batches) -> None:
        """Write batches that lie back to back in `data`; the caller may reuse its bytes afterwards."""

    def finish(self) -> Packed:
        """Write the rest. The stream is not closed."""


def packing(codec: Codec, stream: ObjectWriter) -> SegmentPacking:
    return _Framed(stream) if codec is Codec.ZSTD else _Plain(stream)


class _Plain:
    def __init__(self, stream: ObjectWriter) -> None:
        self._stream, self._hash, self._size = stream, hashlib.sha256(), 0

    def append(self, data: memoryview, batches: Batches) -> None:
        plain = data[batches.start : batches.end]
        self._hash.update(plain)
        self._stream.write(plain)
        self._size += len(plain)

    def finish(self) -> Packed:
        digest = self._hash.hexdigest()
        return Packed(self._size, digest, digest, np.empty(0, FRAME))


class _Framed:
    """Cuts the log into frames. The borders depend on the batches alone, not on the calls that bring them."""

    def __init__(self, stream: ObjectWriter) -> None:
        self._stream = stream
        self._hash, self._plain_hash = hashlib.sha256(), hashlib.sha256()
        self._held, self._balance = bytearray(), 0
        self._size = 0
        self._frames: list[tuple[int, int]] = []

    def append(self, data: memoryview, batches: Batches) -> None:
        self._plain_hash.update(data[batches.start : batches.end])
        first = 0
        for end in borders(len(self._held), batches.sizes.tolist()):
            self._end_frame(data, batches[first:end])
            first = end
        rest = batches[first:]
        self._held += data[rest.start : rest.end]
        self._balance += compressed_balance(rest)

    def finish(self) -> Packed:
        if self._held:
            self._write(memoryview(self._held), self._balance)
        frames = np.array(self._frames, FRAME)
        return Packed(self._size, self._hash.hexdigest(), self._plain_hash.hexdigest(), frames)

    def _end_frame(self, data: memoryview, batches: Batches) -> None:
        """Write a frame of the held batches and these. If none are held, no bytes are copied."""
        plain, balance = data[batches.start : batches.end], self._balance + compressed_balance(batches)
        if self._held:
            self._held += plain
            plain = memoryview(self._held)
        self._write(plain, balance)
        self._held, self._balance = bytearray(), 0

    def _write(self, plain: memoryview, balance: int) -> None:
        before = self._size
        for piece in raw_frame(plain) if balance > 0 else (packed_frame(plain),):
            self._hash.update(piece)
            self._stream.write(piece)
            self._size += len(piece)
        self._frames.append((len(plain), self._size - before))
