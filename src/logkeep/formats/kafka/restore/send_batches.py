"""The batches that a restore sends for the records of a view. Pure.

A batch that can be sent unchanged (all of it is visible, no offset is missing, its times are its own) is not copied:
its records are not read, so the buffer of a stretch must not change until it was sent. Any other batch is decoded, and
its visible records are encoded again with the times that consumers saw and the same codec. Without `keep_offsets` one
batch becomes at most one (see `encode` for the exception: it would be too large); with it, each run of consecutive
offsets becomes one, and the offsets between are an `OffsetHole`.

Batches and holes depend on the archive and the view alone. The stretches in which the archive arrives decide only how
many batches are in one `Outgoing`: two attempts send the same batches.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka.batches import APPEND_TIME, Batches, BatchStretch, Bytes, Longs
from logkeep.formats.kafka.encode import encode
from logkeep.formats.kafka.encode_kernels import gather
from logkeep.formats.kafka.producer_stamp import Outgoing, stamp
from logkeep.formats.kafka.record_view import Flags, View, chosen, readable
from logkeep.formats.kafka.records import RecordColumns

__all__ = ["OffsetHole", "Outgoing", "outgoing", "stamp"]

CHUNK_BYTES = 8 << 20
"""About how many source bytes are handled at a time."""


@dataclass(frozen=True)
class OffsetHole:
    """Source offsets `[start, start + length)` without a visible record."""

    start: int
    length: int


def outgoing(
    stretches: Iterable[BatchStretch], view: View, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Outgoing | OffsetHole]:
    """All batches to send, in order, for the batches of a log, in stretches of any size, after their CRC was checked.

    Holes come only with `keep_offsets`; then batches and holes cover the whole range. Raises Damaged for a batch that
    has to be encoded again and cannot be read.
    """
    at = view.start
    for part in _parts(stretches, view, chunk_bytes):
        if not view.keep_offsets:
            yield part
            continue
        for start, length in part.runs.tolist():
            if start > at:
                yield OffsetHole(at, start - at)
            at = start + length
            yield _between(part, start, at)
    if view.keep_offsets and at < view.end:
        yield OffsetHole(at, view.end - at)


def _parts(stretches: Iterable[BatchStretch], view: View, chunk_bytes: int) -> Iterator[Outgoing]:
    """A part for each chunk of the source with visible records."""
    for stretch in stretches:
        around = view.touching(stretch)
        for chunk in _chunks(around.batches, chunk_bytes):
            part = _part(around.buffer, chosen(chunk, view.visible(chunk)), view)
            if len(part):
                yield part


def _chunks(batches: Batches, chunk_bytes: int) -> Iterator[Batches]:
    ends = batches.positions + batches.sizes
    first = 0
    while first < len(batches):
        limit = int(batches.positions[first]) + chunk_bytes
        last = max(int(np.searchsorted(ends, limit, side="right")), first + 1)
        yield batches[first:last]
        first = last


@dataclass(frozen=True)
class _Pieces:
    """Batches somewhere in a buffer."""

    source: npt.NDArray[np.uint8]
    starts: Longs
    sizes: Longs
    records: Longs
    first_offsets: Longs
    runs: Longs


def _part(buffer: Bytes, batches: Batches, view: View) -> Outgoing:
    as_it_is = _sendable(batches, view)
    kept = _unchanged_batches(buffer, chosen(batches, as_it_is))
    if as_it_is.all():
        runs = merged_runs([kept.runs])
        return Outgoing(kept.source, kept.starts, kept.sizes, kept.records, kept.first_offsets, runs, has_crc=True)
    again = chosen(batches, ~as_it_is)
    return _assembled([kept, *(_encoded(records, view) for records in readable(buffer, again, view))])


def _sendable(batches: Batches, view: View) -> Flags:
    """Whether a batch can be sent unchanged."""
    headers = batches.headers
    dense = headers["records"].astype(np.int64) == headers["last_offset_delta"].astype(np.int64) + 1
    own_times = (headers["attributes"] & APPEND_TIME) == 0
    whole: Flags = view.inside(batches) & dense & own_times
    return whole


def _unchanged_batches(buffer: Bytes, batches: Batches) -> _Pieces:
    source = np.frombuffer(memoryview(buffer).toreadonly(), np.uint8)
    counts, bases = batches.headers["records"].astype(np.int64), batches.base_offsets
    return _Pieces(source, batches.positions, batches.sizes, counts, bases, np.column_stack((bases, counts)))


def _encoded(records: RecordColumns, view: View) -> _Pieces:
    borders = np.diff(records.batch) != 0
    broken = np.diff(records.offsets) != 1
    made = encode(records, _groups(borders | broken if view.keep_offsets else borders))
    made.buffer.flags.writeable = False  # the kernel is compiled for read-only sources
    runs = _groups(broken)
    return _Pieces(
        made.buffer,
        np.cumsum(made.sizes) - made.sizes,
        made.sizes,
        made.groups[:, 1] - made.groups[:, 0],
        records.offsets[made.groups[:, 0]],
        np.column_stack((records.offsets[runs[:, 0]], runs[:, 1] - runs[:, 0])),
    )


def _groups(border_after: Flags) -> Longs:
    """Rows `[first, after)` of what is between borders."""
    borders = np.flatnonzero(border_after) + 1
    return np.column_stack((np.concatenate(([0], borders)), np.concatenate((borders, [len(border_after) + 1]))))


def _assembled(pieces: list[_Pieces]) -> Outgoing:
    """All pieces in order of their offsets, in one buffer."""
    firsts = np.concatenate([p.first_offsets for p in pieces])
    order = np.argsort(firsts)
    sizes = np.concatenate([p.sizes for p in pieces])[order]
    positions = np.cumsum(sizes) - sizes
    places = np.empty(len(order), np.int64)
    places[order] = positions
    buffer, done = np.empty(int(sizes.sum()), np.uint8), 0
    for each in pieces:
        gather(each.source, each.starts, each.sizes, buffer, places[done : done + len(each.starts)])
        done += len(each.starts)
    records = np.concatenate([p.records for p in pieces])[order]
    return Outgoing(buffer, positions, sizes, records, firsts[order], merged_runs([p.runs for p in pieces]))


def merged_runs(several: list[Longs]) -> Longs:
    """Runs in order, joined where they follow each other."""
    runs = several[0] if len(several) == 1 else np.concatenate(several)
    if len(runs) and (runs[1:, 0] == runs[:-1].sum(axis=1)).all():
        return np.array([[runs[0, 0], runs[:, 1].sum()]], np.int64)
    runs = runs[np.argsort(runs[:, 0])]
    starts, ends = runs[:, 0], runs.sum(axis=1)
    begins = np.concatenate((np.ones(min(len(runs), 1), np.bool_), starts[1:] != ends[:-1]))
    last = np.concatenate((begins[1:], np.ones(min(len(runs), 1), np.bool_)))
    return np.column_stack((starts[begins], ends[last] - starts[begins]))


def _between(part: Outgoing, start: int, end: int) -> Outgoing:
    """The batches of one run."""
    first, last = (int(i) for i in np.searchsorted(part.first_offsets, (start, end)))
    at, after = int(part.positions[first]), int(part.positions[last - 1] + part.sizes[last - 1])
    return Outgoing(
        part.buffer[at:after],
        part.positions[first:last] - at,
        part.sizes[first:last],
        part.records[first:last],
        part.first_offsets[first:last],
        np.array([[start, end - start]], np.int64),
        has_crc=part.has_crc,
    )
