"""Kafka logs in zstd frames that end between batches; a frame of compressed batches is stored as raw blocks."""

from collections.abc import Iterator

import numpy as np

from logkeep.formats.kafka.batch_index import FRAME
from logkeep.formats.kafka.batches import CODEC_MASK, Batches
from logkeep.formats.zstd_frames import borders, packed_frame, raw_frame


def compressed_balance(batches: Batches) -> int:
    """Bytes in compressed batches minus bytes in others: if above 0, most bytes are compressed."""
    packed = (batches.headers["attributes"] & CODEC_MASK) != 0
    sizes = batches.sizes
    return int(sizes[packed].sum()) - int(sizes[~packed].sum())


class BatchFrames:
    """Cuts a log into frames. The borders depend on the batches alone, not on how they arrive.

    Memory is bounded by one unfinished frame.
    """

    def __init__(self) -> None:
        self._held, self._balance = bytearray(), 0
        self._frames: list[tuple[int, int]] = []

    @property
    def frames(self) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        """Plain and stored bytes of each frame that was made."""
        return np.array(self._frames, FRAME)

    def pack(self, data: memoryview, batches: Batches) -> Iterator[memoryview | bytes]:
        """The frames that end within these batches, which follow each other directly in `data`."""
        first = 0
        for end in borders(len(self._held), batches.sizes.tolist()):
            ending = batches[first:end]
            plain, balance = data[ending.start : ending.end], self._balance + compressed_balance(ending)
            if self._held:  # otherwise the frame is made without a copy
                self._held += plain
                plain = memoryview(self._held)
            yield from self._frame(plain, balance)
            self._held, self._balance = bytearray(), 0
            first = end
        rest = batches[first:]
        self._held += data[rest.start : rest.end]
        self._balance += compressed_balance(rest)

    def rest(self) -> Iterator[memoryview | bytes]:
        """The last frame, if batches are left."""
        if self._held:
            yield from self._frame(memoryview(self._held), self._balance)

    def _frame(self, plain: memoryview, balance: int) -> Iterator[memoryview | bytes]:
        stored_bytes = 0
        for piece in raw_frame(plain) if balance > 0 else (packed_frame(plain),):
            stored_bytes += len(piece)
            yield piece
        self._frames.append((len(plain), stored_bytes))
