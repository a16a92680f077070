"""Writes a partition's log and snapshot into the repository as segments, under random names.

Both are generators of steps. A segment is durable when they end; it belongs to no backup before its receipt is put.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, Final

from logkeep.checkpoint.steps import Steps
from logkeep.errors import SourceDamaged, StoreError
from logkeep.formats.kafka.batches import Batches, WalkEnd, walk
from logkeep.model.segments import Codec, LogName, Segment
from logkeep.model.time import TokenSource
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.object_writer import StoredWriter
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter

SEGMENT_BYTES: Final = 64 << 20
_SNAPSHOT_PIECE: Final = 4 << 20


def copy_log(
    place: SourceRef, log: LogName, start: int, end: int, batches: Iterator[bytes], tokens: TokenSource
) -> Steps[tuple[Segment, ...]]:
    """Archive whole batches that hold every position of `[start, end)`. Raises SourceDamaged or StoreError."""
    writer = SegmentWriter(place, log, start, SegmentLimits(SEGMENT_BYTES), SEGMENT_BYTES, tokens, Codec.ZSTD)
    reached = start
    try:
        for data in batches:
            found = _whole_batches(data, reached, log)
            yield "log piece"
            writer.write(memoryview(data), found)
            reached = int(found.last_offsets[-1]) + 1
        _check_end(reached, end, log)
        yield "log end"
        writer.finish(end)
        yield "log stored"
    except Exception:
        # Not BaseException: a killed process cleans nothing up either, and the simulator drops generators.
        writer.delete_segments()
        raise
    return tuple(writer.segments)


def _whole_batches(data: bytes, expected: int, log: LogName) -> Batches:
    walked = walk(data, expected - 1)
    if walked.stop is not WalkEnd.END or not len(walked.batches):
        raise SourceDamaged(f"no whole batch at {expected}: {walked.reason}", subject=str(log))
    bases, ends = walked.batches.base_offsets, walked.batches.last_offsets
    if int(bases[0]) != expected or (bases[1:] != ends[:-1] + 1).any():
        raise SourceDamaged(f"positions are missing after {expected}", subject=str(log))
    return walked.batches


def _check_end(reached: int, end: int, log: LogName) -> None:
    if reached != end:
        raise SourceDamaged(f"the log ends at {reached}, not at {end}", subject=str(log))


def copy_snapshot(
    place: SourceRef, log: LogName, position: int, time_ms: int, file: BinaryIO, tokens: TokenSource
) -> Steps[Segment]:
    """Archive a snapshot file with the state up to `position`. Memory is bounded by one frame."""
    token = tokens()
    name = layout.object_of(place.source, log, position, token, Codec.ZSTD)
    yield "snapshot begin"
    writer = StoredWriter(place.store.open_new(name), name, token, Codec.ZSTD)
    try:
        while piece := file.read(_SNAPSHOT_PIECE):
            yield "snapshot piece"
            writer.write(piece)
        yield "snapshot end"
        stored = writer.close()
        yield "snapshot stored"
    except Exception:
        with suppress(StoreError):
            writer.abort()
        raise
    return Segment(
        log=log,
        start=position,
        end=position + 1,
        first=position,
        token=token,
        records=0,
        stored_bytes=stored.size_bytes,
        plain_bytes=stored.plain_bytes,
        base_time_ms=time_ms,
        max_time_ms=time_ms,
        sha256=stored.sha256,
        plain_sha256=stored.plain_sha256,
        codec=stored.codec,
    )
