"""The task that archives partitions of a dataset: read, encode as batches, write, and store a receipt."""

from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from logkeep.formats.datasets.binary_spans import numbers
from logkeep.formats.datasets.native_batches import native_batches
from logkeep.kafka.backup.units import CopyOutcome, CopyResult, RangeResult, receipt_of
from logkeep.kafka.importing.reader import ReadNotes
from logkeep.kafka.importing.values import ImportRange, ImportUnit
from logkeep.kafka.logs.batch_traits import last_batch_of, traits_of
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.logs.leader_epochs import EpochRun, note_epochs
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.model.segments import Segment
from logkeep.model.time import random_token
from logkeep.model.work import Progress
from logkeep.repository.backups.journal import put_receipt
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter

if TYPE_CHECKING:
    import pyarrow as pa

_NOT_FOR_RESUMING = "import"


def import_ranges(unit: ImportUnit, progress: Progress) -> CopyResult:
    """Archive the unit's ranges."""
    ranges, segments = list[RangeResult](), list[Segment]()
    for each in unit.ranges:
        copied, written = _Import(unit, each, progress).run()
        ranges.append(copied)
        segments += written
    result = CopyResult(unit=unit.name, ranges=tuple(ranges), segments=tuple(segments))
    put_receipt(unit.place, msgspec.structs.replace(receipt_of(unit, result), note=_NOT_FOR_RESUMING), random_token())
    return result


class _Import:
    """One range: its writer, and what is known of its batches."""

    def __init__(self, unit: ImportUnit, wanted: ImportRange, progress: Progress) -> None:
        self._wanted, self._progress = wanted, progress
        limits = SegmentLimits(unit.segment_bytes)
        self._writer = SegmentWriter(unit.place, wanted.log, wanted.lo, limits, 0, random_token)
        self._gaps = list(wanted.gaps)
        self._epochs, self._traits, self._last = list[EpochRun](), LogTraits(), list[LastBatch]()

    def run(self) -> tuple[RangeResult, list[Segment]]:
        wanted = self._wanted
        with ExitStack() as stack:
            stack.callback(self._writer.abort)
            for records in wanted.reader.records(ReadNotes(), wanted.lo):
                offsets = numbers(records, "offset")
                after = int(np.searchsorted(offsets, wanted.hi))
                self._add(records.slice(0, after))
                if after < len(offsets):
                    break  # the tool has written more since the survey
            self._skip_gaps(wanted.hi)
            self._writer.finish(wanted.hi)
        return self._result(), self._writer.segments

    def _add(self, records: "pa.RecordBatch") -> None:
        """Write records; a gap ends the batch before it."""
        while records.num_rows:
            offsets = numbers(records, "offset")
            self._skip_gaps(int(offsets[0]))
            count = int(np.searchsorted(offsets, self._gaps[0].start)) if self._gaps else len(offsets)
            if not count:
                count = self._inside_gap(int(offsets[0]))
            self._write(records.slice(0, count))
            records = records.slice(count)

    def _inside_gap(self, offset: int) -> int:
        """A record in the middle of what is lost: the gap ends before it, and another one begins after it."""
        gap = self._gaps.pop(0)
        self._writer.skip(gap.start, offset)
        if offset + 1 < gap.end:
            self._gaps.insert(0, msgspec.structs.replace(gap, start=offset + 1))
        return 1

    def _skip_gaps(self, before: int) -> None:
        while self._gaps and self._gaps[0].end <= before:
            gap = self._gaps.pop(0)
            self._writer.skip(gap.start, gap.end)

    def _write(self, records: "pa.RecordBatch") -> None:
        data, batches = native_batches(records)
        if not len(batches):
            return
        self._writer.write(data, batches)
        note_epochs(self._epochs, batches)
        self._traits = self._traits.joined(traits_of(batches))
        self._last[:] = [last_batch_of(batches)]
        self._progress(records.nbytes)

    def _result(self) -> RangeResult:
        return RangeResult(
            log=self._wanted.log,
            lo=self._wanted.lo,
            hi=self._wanted.hi,
            outcome=CopyOutcome.COPIED,
            reached=self._wanted.hi,
            epochs=tuple(self._epochs),
            traits=self._traits,
            last_batch=self._last[-1] if self._last else None,
        )
