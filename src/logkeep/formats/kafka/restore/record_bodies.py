"""Records with bytes of their own, to be written into other batches than those they were read from.

`records.decode` reuses its memory. A caller that needs records of several of its parts together copies their bodies
here, back to back: from the length of the key to the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka import record_kernels as spans
from logkeep.formats.kafka.batches import CODEC_MASK, HEADER, OVERHEAD_BYTES, Batches, Longs
from logkeep.formats.kafka.encode_kernels import gather
from logkeep.formats.kafka.records import RecordColumns

_CODECS = CODEC_MASK + 1


@dataclass(frozen=True)
class RecordBodies:
    """Bodies back to back, and what else a record consists of."""

    data: npt.NDArray[np.uint8]
    ends: Longs
    """Where each body ends."""
    offsets: Longs
    times_ms: Longs
    codecs: npt.NDArray[np.int32]
    """Of the batches that the records come from."""

    @classmethod
    def of(cls, records: RecordColumns) -> "RecordBodies":
        starts = records.spans[:, spans.BODY_AT].astype(np.int64)
        sizes = records.spans[:, spans.END_AT] - starts
        ends = np.cumsum(sizes)
        data = np.empty(int(ends[-1]), np.uint8)
        gather(records.data, starts, sizes, data, ends - sizes)
        codecs = (records.batches.headers["attributes"].astype(np.int32) & CODEC_MASK)[records.batch]
        return cls(data, ends, records.offsets.copy(), records.times_ms.copy(), codecs)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, rows: slice) -> "RecordBodies":
        first, after, _ = rows.indices(len(self))
        start, end = (int(self.ends[row - 1]) if row else 0 for row in (first, after))
        return RecordBodies(
            self.data[start:end],
            self.ends[rows] - start,
            self.offsets[rows],
            self.times_ms[rows],
            self.codecs[rows],
        )

    def columns(self, batch_bytes: int) -> RecordColumns:
        """As `encode` needs them: each record in a batch of its codec that has this size."""
        headers = np.zeros(_CODECS, HEADER)
        headers["attributes"], headers["length"] = np.arange(_CODECS), batch_bytes - OVERHEAD_BYTES
        rows = np.zeros((len(self), spans.SPAN_COLUMNS), np.int32)
        rows[:, spans.BODY_AT], rows[:, spans.END_AT] = np.concatenate(([0], self.ends[:-1])), self.ends
        rows[:, spans.BATCH] = self.codecs
        data = self.data.view()
        data.flags.writeable = False  # the kernel is compiled for read-only sources
        return RecordColumns(data, Batches(headers, np.zeros(_CODECS, np.int64)), self.offsets, self.times_ms, rows)


def joined(several: Sequence[RecordBodies]) -> RecordBodies:
    """All of them, in order."""
    if len(several) == 1:
        return several[0]
    before = np.cumsum([0, *(len(some.data) for some in several[:-1])])
    return RecordBodies(
        np.concatenate([some.data for some in several]),
        np.concatenate([some.ends + start for some, start in zip(several, before.tolist(), strict=True)]),
        np.concatenate([some.offsets for some in several]),
        np.concatenate([some.times_ms for some in several]),
        np.concatenate([some.codecs for some in several]),
    )
