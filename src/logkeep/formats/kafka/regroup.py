"""Writes records of many batches as few new batches, for a restore into another number of partitions.

Each batch is filled up to `BATCH_BYTES` without mixing codecs: those of the batches that the records come from. A
larger record gets a batch of its own. Batches depend on the sequence of records alone: the parts in which they arrive
decide only how many batches are in one `Outgoing`. Memory is a few chunks.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka import record_kernels as spans
from logkeep.formats.kafka.batches import CODEC_MASK, HEADER, OVERHEAD_BYTES, Batches, Longs
from logkeep.formats.kafka.encode import encode
from logkeep.formats.kafka.encode_kernels import MOST_BEFORE_BODY, gather
from logkeep.formats.kafka.records import RecordColumns
from logkeep.formats.kafka.stamping import Outgoing

BATCH_BYTES = 128 << 10
"""Size before compression. Any broker accepts more."""
CHUNK_BYTES = 4 << 20
_CODECS = CODEC_MASK + 1


def regrouped(
    parts: Iterable[RecordColumns], source: int = 0, batch_bytes: int = BATCH_BYTES, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Outgoing]:
    """All records in new batches, in order. A part may become invalid when the next one is requested."""
    held: list[_Some] = []
    for part in parts:
        if len(part):
            held.append(_Some.of(part))
        if sum(len(some.data) for some in held) >= chunk_bytes:
            whole = _joined(held)
            groups = _groups(whole, batch_bytes)
            last = int(groups[-1, 0])  # more records may belong to the same batch
            if last:
                yield _outgoing(whole[:last], groups[:-1], source, batch_bytes)
            held = [whole[last:]]
    if held:
        whole = _joined(held)
        yield _outgoing(whole, _groups(whole, batch_bytes), source, batch_bytes)


@dataclass(frozen=True)
class _Some:
    """Records with bytes of their own: bodies back to back."""

    data: npt.NDArray[np.uint8]
    ends: Longs
    """Where each body ends."""
    offsets: Longs
    times_ms: Longs
    codecs: npt.NDArray[np.int32]

    @classmethod
    def of(cls, records: RecordColumns) -> "_Some":
        starts = records.spans[:, spans.BODY_AT].astype(np.int64)
        sizes = records.spans[:, spans.END_AT] - starts
        ends = np.cumsum(sizes)
        data = np.empty(int(ends[-1]), np.uint8)
        gather(records.data, starts, sizes, data, ends - sizes)
        codecs = (records.batches.headers["attributes"].astype(np.int32) & CODEC_MASK)[records.batch]
        return cls(data, ends, records.offsets.copy(), records.times_ms.copy(), codecs)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, rows: slice) -> "_Some":
        first, after, _ = rows.indices(len(self))
        start, end = (int(self.ends[row - 1]) if row else 0 for row in (first, after))
        return _Some(
            self.data[start:end],
            self.ends[rows] - start,
            self.offsets[rows],
            self.times_ms[rows],
            self.codecs[rows],
        )


def _joined(several: list[_Some]) -> _Some:
    if len(several) == 1:
        return several[0]
    before = np.cumsum([0, *(len(some.data) for some in several[:-1])])
    return _Some(
        np.concatenate([some.data for some in several]),
        np.concatenate([some.ends + start for some, start in zip(several, before.tolist(), strict=True)]),
        np.concatenate([some.offsets for some in several]),
        np.concatenate([some.times_ms for some in several]),
        np.concatenate([some.codecs for some in several]),
    )


def _groups(some: _Some, batch_bytes: int) -> Longs:
    """Rows `[first, after)` of each batch. One step for each batch, not for each record."""
    filled = some.ends + np.arange(1, len(some) + 1, dtype=np.int64) * MOST_BEFORE_BODY
    changes = np.append(np.flatnonzero(np.diff(some.codecs)) + 1, len(some))
    groups: list[tuple[int, int]] = []
    first = 0
    while first < len(some):
        before = int(filled[first - 1]) if first else 0
        fits = int(np.searchsorted(filled, before + batch_bytes, side="right"))
        same = int(changes[np.searchsorted(changes, first, side="right")])
        after = min(max(fits, first + 1), same)
        groups.append((first, after))
        first = after
    return np.array(groups, np.int64).reshape(-1, 2)


def _outgoing(some: _Some, groups: Longs, source: int, batch_bytes: int) -> Outgoing:
    made = encode(_records(some, batch_bytes), groups)
    return Outgoing(
        made.buffer,
        np.cumsum(made.sizes) - made.sizes,
        made.sizes,
        made.groups[:, 1] - made.groups[:, 0],
        some.offsets[made.groups[:, 0]],
        _runs(some.offsets),
        source,
    )


def _records(some: _Some, batch_bytes: int) -> RecordColumns:
    """As `encode` needs them: each record in a batch of its codec with the maximum size."""
    headers = np.zeros(_CODECS, HEADER)
    headers["attributes"], headers["length"] = np.arange(_CODECS), batch_bytes - OVERHEAD_BYTES
    rows = np.zeros((len(some), spans.SPAN_COLUMNS), np.int32)
    rows[:, spans.BODY_AT], rows[:, spans.END_AT] = np.concatenate(([0], some.ends[:-1])), some.ends
    rows[:, spans.BATCH] = some.codecs
    data = some.data.view()
    data.flags.writeable = False  # the kernel is compiled for read-only sources
    return RecordColumns(data, Batches(headers, np.zeros(_CODECS, np.int64)), some.offsets, some.times_ms, rows)


def _runs(offsets: Longs) -> Longs:
    """Rows of (offset, n), joined where offsets follow each other."""
    begins = np.flatnonzero(np.append(True, np.diff(offsets) != 1))
    return np.column_stack((offsets[begins], np.diff(np.append(begins, len(offsets)))))
