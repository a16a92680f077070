"""The task that puts neighbouring segments of one log into one object.

Each input is read once: its SHA-256 is proven again, its batches are walked (whole, rising offsets, CRC-32C), and the
same bytes go into the new object, which is hashed and indexed while it is written. What is wrong with an input comes
back as a value, and nothing becomes visible: the inputs go on serving as they are.

How the small segments of a topic become one object: the way of Kafka for `repository.optimize`.
"""

from collections.abc import Hashable
from datetime import timedelta

import msgspec
import numpy as np

from logkeep.errors import Damaged, ObjectMissing, OldMessageFormat, SourceDamaged, UnsafeName
from logkeep.kafka.logs.batch_check import proven_batches
from logkeep.kafka.logs.segment_writer import SegmentLimits, SegmentWriter
from logkeep.model.segments import Collection, Segment
from logkeep.model.time import Clock, TokenSource, random_token
from logkeep.model.work import Progress
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.upkeep.optimize import Merged, MergeUnit, MergeWay, Optimizing

_MOST_BATCHES = 1_000_000
"""The index of the new object is held in memory."""


def merge_segments(unit: MergeUnit, progress: Progress) -> Merged:
    """Merge one run. Raises only what another attempt can cure."""
    return merge_with(unit, progress, random_token)


def merge_with(unit: MergeUnit, progress: Progress, tokens: TokenSource) -> Merged:
    """The same with chance handed in."""
    first, last = unit.inputs[0], unit.inputs[-1]
    limits = SegmentLimits(sum(s.plain_bytes for s in unit.inputs) + 1, _MOST_BATCHES)
    writer = SegmentWriter(unit.place, first.log, first.start, limits, unit.size_bytes, tokens, first.codec)
    where = ""
    try:
        after = -1
        for row in unit.inputs:
            where = layout.segment(unit.place.source, row)
            if row.has_object:
                after = _append(unit.place, row, after, writer, progress)
        writer.finish(last.end)
    except (Damaged, ObjectMissing, UnsafeName, SourceDamaged, OldMessageFormat) as error:
        return Merged(problem=error.what, where=where)
    finally:
        writer.abort()
    return _answer(unit, writer)


def _answer(unit: MergeUnit, writer: SegmentWriter) -> Merged:
    first, last = unit.inputs[0], unit.inputs[-1]
    if len(writer.segments) > 1:
        return Merged()  # too many batches for one index: they are better left apart
    if not writer.segments or writer.segments[0].end != last.end:
        where = layout.segment(unit.place.source, last)
        return Merged(problem="its batches reach over the positions that it answers for", where=where)
    return Merged(segment=msgspec.structs.replace(writer.segments[0], proof=first.proof))


def _append(place: SourceRef, row: Segment, after: int, writer: SegmentWriter, progress: Progress) -> int:
    """Everything that one row answers for; the last offset of it. Raises Damaged when it is not what was archived.

    A row that was shortened does not answer for the end of its object: that stays behind.
    """
    last = after
    for buffer, batches in proven_batches(place, row, after, progress):
        if not len(batches):
            continue  # a batch that is larger than what was read at a time
        own = (batches.base_offsets < row.end) & (batches.last_offsets >= row.start)
        kept = batches[slice(int(np.argmax(own)), int(np.argmax(own)) + int(own.sum()))]
        if len(kept):
            writer.write(memoryview(buffer), kept)
            last = int(kept.last_offsets[-1])
    return last


_PROOF = "the same batches end to end; the SHA-256 of every input, and the CRC-32C of every batch, proven while reading"


def of_topics(row: Segment) -> Hashable | None:
    """All segments of a partition are of one kind."""
    return row.log if row.log.collection is Collection.TOPICS else None


WAY = MergeWay(merge_segments, lambda _place, _folded: of_topics, _PROOF)


def optimizing(
    place: SourceRef, clock: Clock, tokens: TokenSource, lease_ttl: timedelta = timedelta(minutes=5)
) -> Optimizing:
    return Optimizing(place, WAY, clock, tokens, lease_ttl)
