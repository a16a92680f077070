"""The task that archives one segment of a partition's log: its new frames, up to the checkpoint.

Zeebe stores whole preallocated files, with records from after the checkpoint. Every frame is checked on the way
(CRC-32C, index, term, position). Frames that are archived already are hashed and compared, and not stored again.
"""

import hashlib
from contextlib import ExitStack

from logkeep.checkpoint.zeebe.repo.record import ArchivedSegmentFile, log_name
from logkeep.checkpoint.zeebe.repo.units import CopiedSegment, SegmentImport, SegmentOutcome, receipt_for, row_of
from logkeep.checkpoint.zeebe.stored_file import StoredFileReader
from logkeep.formats.zeebe import frame_kernels as kernels
from logkeep.formats.zeebe.records import checkpoints
from logkeep.formats.zeebe.segment_descriptor import DESCRIPTOR_BYTES, SegmentDescriptor
from logkeep.formats.zeebe.segment_scan import ScanEnd, SegmentBlock, SegmentScan
from logkeep.model.segments import Codec
from logkeep.model.time import random_token
from logkeep.model.work import Progress
from logkeep.repository.backups.journal import put_receipt
from logkeep.repository.chain import layout
from logkeep.repository.object_writer import StoredWriter

_WHOLE = {ScanEnd.ZEROS, ScanEnd.WHOLE, ScanEnd.OLD_BYTES}


def copy_segment(unit: SegmentImport, progress: Progress) -> CopiedSegment:
    """Archive what is new, and store a receipt of it."""
    with ExitStack() as stack:
        result = _SegmentCopy(unit, progress, stack).run()
    if result.outcome is SegmentOutcome.ARCHIVED:
        rows = (result.row,) if result.row is not None else ()
        put_receipt(unit.target.place, receipt_for(unit.target, unit.name, rows, result), random_token())
    return result


def _reader(unit: SegmentImport) -> StoredFileReader:
    place = unit.object
    return StoredFileReader(unit.store, place.name, place.size_bytes, place.compression)


class _SegmentCopy:
    def __init__(self, unit: SegmentImport, progress: Progress, stack: ExitStack) -> None:
        self._unit, self._progress, self._stack = unit, progress, stack
        self._scan = SegmentScan(_reader(unit).read)
        self._hash = hashlib.sha256()
        self._known_bytes = unit.known.used_bytes if unit.known is not None else DESCRIPTOR_BYTES
        self._at = DESCRIPTOR_BYTES
        """After the last byte that was taken."""
        self._frames = 0
        self._new_frames = 0
        self._last_frame_at = 0
        self._writer: StoredWriter | None = None
        self._has_checkpoint = False

    def run(self) -> CopiedSegment:
        for block in self._scan.blocks():
            if not self._frames and self._begins_after():
                return CopiedSegment(outcome=SegmentOutcome.AFTER)
            if not self._take(block):
                return CopiedSegment(outcome=SegmentOutcome.OTHER_HISTORY)
            if self._has_checkpoint:
                break
        return self._ended()

    def _ended(self) -> CopiedSegment:
        end, descriptor = self._scan.end, self._scan.descriptor
        if not self._has_checkpoint and end not in _WHOLE and end is not ScanEnd.UNUSED:
            return CopiedSegment(outcome=SegmentOutcome.DAMAGED, reason=self._scan.reason or end.value)
        if self._at < self._known_bytes:
            return CopiedSegment(outcome=SegmentOutcome.OTHER_HISTORY)
        if descriptor is None or not self._frames:
            return CopiedSegment(outcome=SegmentOutcome.AFTER)
        return self._archived(descriptor)

    def _begins_after(self) -> bool:
        return self._scan.fact(kernels.FIRST_POSITION) > self._unit.checkpoint_position

    def _take(self, block: SegmentBlock) -> bool:
        """Hash a block up to the checkpoint, and write what is new. False: it is not what is archived."""
        frames = block.frames
        ends = block.base + frames[:, kernels.PAYLOAD_AT] + frames[:, kernels.PAYLOAD_SIZE]
        end, count = int(ends[-1]), len(frames)
        for each in checkpoints(block.buffer, block.base, block.rows):
            if each.is_create and each.position == self._unit.checkpoint_position:
                end, self._has_checkpoint = each.frame_end, True
                count = int((ends <= end).sum())
        self._last_frame_at = block.base + int(frames[count - 1, kernels.FRAME_AT])
        new = int((ends[:count] > self._known_bytes).sum())
        self._frames, self._new_frames = self._frames + count, self._new_frames + new
        data = memoryview(block.buffer.tobytes())[self._at - block.base : end - block.base]
        self._progress(len(data))
        known = max(min(self._known_bytes - self._at, len(data)), 0)
        self._hash.update(data[:known])
        self._at += known
        if known and self._at == self._known_bytes and not self._is_known():
            return False
        self._write(data[known:])
        return True

    def _is_known(self) -> bool:
        return self._unit.known is not None and self._hash.hexdigest() == self._unit.known.frames_sha256

    def _write(self, data: memoryview) -> None:
        if not data:
            return
        if self._writer is None:
            self._writer = self._opened()
            self._stack.callback(self._writer.abort)
        self._writer.write(data)
        self._hash.update(data)
        self._at += len(data)

    def _opened(self) -> StoredWriter:
        place, token = self._unit.target.place, random_token()
        log = log_name(self._unit.history, self._unit.partition)
        name = layout.object_of(place.source, log, self._start, token, Codec.ZSTD)
        return StoredWriter(place.store.open_new(name), name, token, Codec.ZSTD)

    @property
    def _start(self) -> int:
        """The index of the first new frame."""
        return self._unit.known.end if self._unit.known is not None else self._scan.fact(kernels.FIRST_INDEX)

    def _archived(self, descriptor: SegmentDescriptor) -> CopiedSegment:
        end = descriptor.first_index + self._frames
        file = ArchivedSegmentFile(
            number=descriptor.segment_id,
            max_bytes=descriptor.max_bytes,
            first=descriptor.first_index,
            end=end,
            last_frame_at=self._last_frame_at,
            used_bytes=self._at,
            frames_sha256=self._hash.hexdigest(),
            closed=not self._has_checkpoint and descriptor.last_index == end - 1,
        )
        stored = self._writer.close() if self._writer is not None else None
        log = log_name(self._unit.history, self._unit.partition)
        row = row_of(log, self._start, end, self._new_frames, stored) if stored is not None else None
        return CopiedSegment(outcome=SegmentOutcome.ARCHIVED, file=file, row=row, has_checkpoint=self._has_checkpoint)
