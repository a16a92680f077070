"""The task that archives ranges of logs from files: read, check, hash, write, and store a receipt.

A plain function, like the task that copies from brokers: its objects have random names, and its receipt comes last.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from logkeep.errors import SourceDamaged
from logkeep.formats.kafka.batches import Batches
from logkeep.kafka.backup.units import CopyOutcome, CopyRange, CopyResult, RangeResult, receipt_of
from logkeep.kafka.disks.segment_windows import windows
from logkeep.kafka.logs.batch_traits import last_batch_of, traits_of
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.logs.leader_epochs import EpochRun, note_epochs
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.salvage.groups_task import FileRange
from logkeep.model.segments import Proof, Segment
from logkeep.model.time import random_token
from logkeep.model.work import Progress
from logkeep.repository.backups.journal import put_receipt
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter

_NOT_FOR_RESUMING = "salvage"


@dataclass(frozen=True)
class SalvageRange:
    """Offsets of one log and their file ranges; offsets without a file range are gaps."""

    wanted: CopyRange
    sources: tuple[FileRange, ...]
    proof: Proof


@dataclass(frozen=True)
class SalvageUnit:
    name: str
    place: SourceRef
    backup: int
    run: str
    ranges: tuple[SalvageRange, ...]
    segment_bytes: int

    @property
    def size_bytes(self) -> int:
        return sum(r.wanted.size_bytes for r in self.ranges)


def salvage_ranges(unit: SalvageUnit, progress: Progress) -> CopyResult:
    """Archive the unit's ranges. Raises LogDirUnusable, SourceDamaged or a StoreError."""
    ranges, segments = list[RangeResult](), list[Segment]()
    for each in unit.ranges:
        result_of_range, written = _copy_range(unit, each, progress)
        ranges.append(result_of_range)
        segments += [msgspec.structs.replace(s, proof=each.proof) for s in written]
    result = CopyResult(unit=unit.name, ranges=tuple(ranges), segments=tuple(segments))
    # The receipt protects the objects from garbage collection. No later run may treat its ranges as copied: the cluster
    # may have what the disk lacks.
    put_receipt(unit.place, msgspec.structs.replace(receipt_of(unit, result), note=_NOT_FOR_RESUMING), random_token())
    return result


def _copy_range(unit: SalvageUnit, each: SalvageRange, progress: Progress) -> tuple[RangeResult, list[Segment]]:
    wanted, epochs, reached = each.wanted, list[EpochRun](), each.wanted.lo
    writer = SegmentWriter(
        unit.place, wanted.log, wanted.lo, SegmentLimits(unit.segment_bytes), wanted.size_bytes, random_token
    )
    traits, last = LogTraits(), list[LastBatch]()
    with ExitStack() as stack:
        stack.callback(writer.abort)
        for source in each.sources:
            if source.lo > reached:
                writer.skip(reached, source.lo)
            traits = traits.joined(
                _copy_file(writer, source, wanted.first and source.lo == wanted.lo, epochs, last, progress)
            )
            reached = max(reached, source.hi)
        writer.finish(reached)
    copied = RangeResult(
        log=wanted.log,
        lo=wanted.lo,
        hi=wanted.hi,
        outcome=CopyOutcome.COPIED,
        reached=reached,
        epochs=tuple(epochs),
        traits=traits,
        last_batch=last[-1] if last else None,
    )
    return copied, writer.segments


def _copy_file(
    writer: SegmentWriter,
    source: FileRange,
    first: bool,
    epochs: list[EpochRun],
    last: list[LastBatch],
    progress: Progress,
) -> LogTraits:
    """Copy a file range; returns the traits of its batches. `last` gets the last one."""
    traits = LogTraits()
    if source.from_byte == source.to_byte:
        return traits  # offsets without any batch
    for window in windows(Path(source.path), source.from_byte, source.to_byte):
        chosen = _chosen(window.batches, source, first)
        if len(chosen):
            writer.write(window.data, chosen)
            note_epochs(epochs, chosen)
            traits = traits.joined(traits_of(chosen))
            last[:] = [last_batch_of(chosen)]
        if window.stuck:
            raise SourceDamaged(
                f"byte {window.at + window.walked.stopped_at} was a valid batch when it was scanned",
                subject=source.path,
            )
        progress(chosen.end - chosen.start)
    return traits


def _chosen(batches: Batches, source: FileRange, first: bool) -> Batches:
    """Batches that start inside the range; at the log start also the batch that contains it."""
    bases = batches.base_offsets
    edge = batches.last_offsets if first else bases
    return batches[int(np.searchsorted(edge, source.lo)) : int(np.searchsorted(bases, source.hi))]
