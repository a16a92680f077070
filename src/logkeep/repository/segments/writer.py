"""Writes batches of one log into segments of the repository: check, hash, write, index, rotate.

Every batch's CRC-32C is checked before a byte of it is written. A segment ends after the batch with which it reaches
its size, counted before compression, or the number of batches whose index may be held in memory; the next one has a
new random name. The log object is durable before its index is put.

With zstd, each segment is judged on its own: one that begins mainly with batches that producers compressed is stored
as it is. Frames could only make it larger, and would cost a second hash of every byte.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from logkeep.errors import SourceDamaged, StoreError
from logkeep.formats.kafka.batch_index import BatchIndex, encode, index_of, join
from logkeep.formats.kafka.batches import Batches, first_broken
from logkeep.model.segments import Codec, LogName, Segment
from logkeep.model.time import TokenSource
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.object_writer import StoredWriter
from logkeep.repository.segments.packing import BatchFrames, compressed_balance
from logkeep.store.base import ObjectMetadata


@dataclass(frozen=True)
class SegmentLimits:
    """A segment ends after the batch with which it reaches one of these."""

    size_bytes: int
    batches: int = 400_000
    """The index of a segment is held in memory while it is written."""


class SegmentWriter:
    """Segments of one log, one after the other. Used by one thread at a time."""

    def __init__(
        self,
        place: SourceRef,
        log: LogName,
        start: int,
        limits: SegmentLimits,
        size_hint: int,
        tokens: TokenSource,
        codec: Codec = Codec.NONE,
    ) -> None:
        self._place, self._log, self._tokens, self._codec = place, log, tokens, codec
        self._limits, self._size_hint = limits, size_hint
        self._start = start
        self._open: _OpenSegment | None = None
        self.segments: list[Segment] = []

    def write(self, data: memoryview, batches: Batches) -> int:
        """Append whole batches that follow each other directly in `data`; returns their bytes. Raises SourceDamaged."""
        broken = first_broken(data, batches)
        if broken is not None:
            offset = int(batches.base_offsets[broken])
            raise SourceDamaged(f"the batch at offset {offset} fails its checksum", subject=str(self._log))
        written = batches.end - batches.start
        while len(batches):
            current = self._open or self._begin(batches)
            filled = current.size_bytes + np.cumsum(batches.sizes)
            enough = int(np.searchsorted(filled, self._limits.size_bytes)) + 1
            count = min(enough, self._limits.batches - current.batches)
            current.append(data, batches[:count])
            batches = batches[count:]
            if current.size_bytes >= self._limits.size_bytes or current.batches >= self._limits.batches:
                self._end(current.end_offset)
        return written

    def skip(self, gap_start: int, gap_end: int) -> None:
        """Claim everything up to a gap, and continue after it."""
        self.finish(gap_start)
        self._start = gap_end

    def finish(self, end: int) -> None:
        """Claim everything up to `end`, or up to the end of the last batch if that is further."""
        if self._open:
            self._end(max(end, self._open.end_offset))
        elif self._start < end:
            self._claim(end)

    def abort(self) -> None:
        """Discard the unfinished segment. May be called at any time."""
        if self._open:
            self._open.abort()
            self._open = None

    def delete_segments(self) -> None:
        """Discard everything, finished segments too. What cannot be deleted is garbage, which `prune` collects."""
        with suppress(StoreError):
            self.abort()
        for segment in self.segments:
            if segment.has_object:
                with suppress(StoreError):
                    self._place.store.delete(layout.segment(self._place.source, segment))
                    self._place.store.delete(
                        layout.index_of(self._place.source, self._log, segment.first, segment.token)
                    )
        self.segments.clear()

    def _begin(self, batches: Batches) -> "_OpenSegment":
        codec = Codec.NONE if compressed_balance(batches) > 0 else self._codec
        # The compressed size is not known: reserving the plain size could fill a disk for nothing.
        hint = min(self._limits.size_bytes, self._size_hint) if codec is Codec.NONE else 0
        first = int(batches.base_offsets[0])
        self._open = _OpenSegment(self._place, self._log, first, self._tokens(), hint, codec)
        return self._open

    def _end(self, end: int) -> None:
        if self._open:
            self.segments.append(self._open.close(self._start, end))
            self._open = None
            self._start = end

    def _claim(self, end: int) -> None:
        """Claim offsets without records: by the segment before them, or by a row without an object."""
        if self.segments and self.segments[-1].end == self._start:
            self.segments[-1] = msgspec.structs.replace(self.segments[-1], end=end)
            self._start = end
            return
        self.segments.append(Segment.without_object(self._log, self._start, end, self._tokens()))
        self._start = end


class _OpenSegment:
    """One object being written."""

    def __init__(self, place: SourceRef, log: LogName, first: int, token: str, size_hint: int, codec: Codec) -> None:
        self._place, self._log, self._first = place, log, first
        name = layout.object_of(place.source, log, first, token, codec)
        self._object = StoredWriter(place.store.open_new(name, size_hint), name, token, codec)
        self._frames = BatchFrames() if codec is Codec.ZSTD else None
        self._index: list[BatchIndex] = []
        self.size_bytes = 0
        """The size before compression."""
        self.batches = 0
        self.end_offset = first

    def append(self, data: memoryview, batches: Batches) -> None:
        plain = data[batches.start : batches.end]
        if self._frames is None:
            self._object.write(plain)
        else:
            self._object.write_packed(plain, self._frames.pack(data, batches))
        self._index.append(index_of(batches, self.size_bytes))
        self.size_bytes += len(plain)
        self.batches += len(batches)
        self.end_offset = int(batches.last_offsets[-1]) + 1

    def close(self, start: int, end: int) -> Segment:
        index = join(self._index)
        stored = self._object.close(self._frames.rest() if self._frames else ())
        if self._frames:
            index = replace(index, frames=self._frames.frames)
        name = layout.index_of(self._place.source, self._log, self._first, stored.token)
        self._place.store.put_new(name, encode(index), _metadata(index))
        return Segment(
            log=self._log,
            start=start,
            end=end,
            first=self._first,
            token=stored.token,
            records=index.records,
            stored_bytes=stored.size_bytes,
            plain_bytes=stored.plain_bytes,
            base_time_ms=index.base_time_ms,
            max_time_ms=index.max_time_ms,
            sha256=stored.sha256,
            plain_sha256=stored.plain_sha256,
            codec=stored.codec,
        )

    def abort(self) -> None:
        self._object.abort()


def _metadata(index: BatchIndex) -> ObjectMetadata:
    """What the log beside an index ends with. A bucket takes metadata when an upload begins, which is too early for the
    log itself."""
    last = index.rows[-1]
    return {
        "last-offset": str(last["last_offset"]),
        "last-time-ms": str(last["max_time_ms"]),
        "max-time-ms": str(index.max_time_ms),
    }
