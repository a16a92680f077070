"""Merges small neighbouring segments of one log into one object: the task that `repository.upkeep.optimize` runs.

Each input is read once: its SHA-256 is checked again, its batches are walked (whole, rising offsets, CRC-32C), and the
same bytes go into the new object, which is hashed and indexed while it is written. Damage of an input is returned as a
value, and nothing is committed: readers keep using the inputs.
"""

from collections.abc import Hashable
from datetime import timedelta

import msgspec
import numpy as np

from logkeep.errors import Damaged, ObjectMissing, OldMessageFormat, SourceDamaged, UnsafeName
from logkeep.model.segments import Collection, Segment
from logkeep.model.time import Clock, TokenSource, random_token
from logkeep.model.work import Progress
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded
from logkeep.repository.segments.log_batches import proven_batches
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.repository.upkeep.merge_plan import MergeKeyOf
from logkeep.repository.upkeep.optimize import Merged, MergeUnit, MergeWay, Optimizing

_MOST_BATCHES = 1_000_000
"""The index of the new object is held in memory."""


def merge_segments(unit: MergeUnit, progress: Progress) -> Merged:
    """Merge one run. Raises only what another attempt can cure."""
    return merge_with(unit, progress, random_token)


def merge_with(unit: MergeUnit, progress: Progress, tokens: TokenSource) -> Merged:
    """The same with randomness as an argument."""
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
    return _merged(unit, writer)


def _merged(unit: MergeUnit, writer: SegmentWriter) -> Merged:
    first, last = unit.inputs[0], unit.inputs[-1]
    if len(writer.segments) > 1:
        return Merged()  # too many batches for one index: the inputs stay
    if not writer.segments or writer.segments[0].end != last.end:
        where = layout.segment(unit.place.source, last)
        return Merged(problem="its batches reach beyond the offsets that it covers", where=where)
    return Merged(segment=msgspec.structs.replace(writer.segments[0], proof=first.proof))


def _append(place: SourceRef, row: Segment, after: int, writer: SegmentWriter, progress: Progress) -> int:
    """Append the batches that one row covers; returns their last offset. Raises Damaged.

    A row that was shortened does not cover the end of its object: that is left out.
    """
    last = after
    for buffer, batches in proven_batches(place, row, after, progress):
        if not len(batches):
            continue  # a batch that is larger than one piece
        own = (batches.base_offsets < row.end) & (batches.last_offsets >= row.start)
        kept = batches[slice(int(np.argmax(own)), int(np.argmax(own)) + int(own.sum()))]
        if len(kept):
            writer.write(memoryview(buffer), kept)
            last = int(kept.last_offsets[-1])
    return last


_PROOF = "the same batches end to end; the SHA-256 of every input, and the CRC-32C of every batch, proven while reading"


def of_topics(row: Segment) -> Hashable | None:
    """The merge key of a row: all segments of a partition are alike. None: rows of other collections are not merged."""
    return row.log if row.log.collection is Collection.TOPICS else None


def apart_from_folded(_place: SourceRef, folded: Folded) -> MergeKeyOf:
    """Folded segments are merged with each other only: beyond the span of a fold every offset is a restore point."""
    folds = folded.folded_logs()

    def key(row: Segment) -> Hashable | None:
        fold = folds.get(row.log)
        return None if of_topics(row) is None else (row.log, fold is not None and row.start < fold.end)

    return key


WAY = MergeWay(merge_segments, apart_from_folded, _PROOF)


def optimizing(
    place: SourceRef, clock: Clock, tokens: TokenSource, lease_ttl: timedelta = timedelta(minutes=5)
) -> Optimizing:
    return Optimizing(place, WAY, clock, tokens, lease_ttl)
