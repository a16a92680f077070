"""Writes records of many batches as few new batches, for a restore into another number of partitions.

Each batch is filled up to `BATCH_BYTES` without mixing codecs: those of the batches that the records come from. A
larger record gets a batch of its own. Batches depend on the sequence of records alone: the parts in which they arrive
decide only how many batches are in one `Outgoing`. Memory is a few chunks.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from logkeep.formats.kafka.batches import Longs
from logkeep.formats.kafka.encode import encode
from logkeep.formats.kafka.encode_kernels import MOST_BEFORE_BODY
from logkeep.formats.kafka.producer_stamp import Outgoing
from logkeep.formats.kafka.records import RecordColumns
from logkeep.formats.kafka.restore.record_bodies import RecordBodies, joined

BATCH_BYTES = 128 << 10
"""Size before compression. Any broker accepts more."""
CHUNK_BYTES = 4 << 20


def regrouped(
    parts: Iterable[RecordColumns], source: int = 0, batch_bytes: int = BATCH_BYTES, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Outgoing]:
    """All records in new batches, in order. A part may become invalid when the next one is requested."""
    held: list[RecordBodies] = []
    for part in parts:
        if len(part):
            held.append(RecordBodies.of(part))
        if sum(len(some.data) for some in held) >= chunk_bytes:
            whole = joined(held)
            groups = _groups(whole, batch_bytes)
            last = int(groups[-1, 0])  # more records may belong to the same batch
            if last:
                yield _outgoing(whole[:last], groups[:-1], source, batch_bytes)
            held = [whole[last:]]
    if held:
        whole = joined(held)
        yield _outgoing(whole, _groups(whole, batch_bytes), source, batch_bytes)


def _groups(some: RecordBodies, batch_bytes: int) -> Longs:
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


def _outgoing(some: RecordBodies, groups: Longs, source: int, batch_bytes: int) -> Outgoing:
    made = encode(some.columns(batch_bytes), groups)
    return Outgoing(
        made.buffer,
        np.cumsum(made.sizes) - made.sizes,
        made.sizes,
        made.groups[:, 1] - made.groups[:, 0],
        some.offsets[made.groups[:, 0]],
        _runs(some.offsets),
        source,
    )


def _runs(offsets: Longs) -> Longs:
    """Rows of (offset, n), joined where offsets follow each other."""
    begins = np.flatnonzero(np.append(True, np.diff(offsets) != 1))
    return np.column_stack((offsets[begins], np.diff(np.append(begins, len(offsets)))))
