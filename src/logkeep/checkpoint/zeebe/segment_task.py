"""Checks one stored segment: what an engine runs. Every frame, CRC, index, term and position; rows for the cut."""

import msgspec
import numpy as np

from logkeep.checkpoint.zeebe.cut_rows import CUT_COLUMNS, cut_rows
from logkeep.checkpoint.zeebe.stored_file import StoredFileReader
from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.zeebe import frame_kernels as kernels
from logkeep.formats.zeebe.records import CheckpointEntry, checkpoints
from logkeep.formats.zeebe.segment_scan import ScanEnd, SegmentScan
from logkeep.model.work import Progress
from logkeep.store.base import Store

MOST_CHECKPOINTS = 10_000
"""Checkpoint records of one segment that are returned; those after them are counted only."""


class SegmentUnit(msgspec.Struct, frozen=True):
    """One segment of one copy."""

    store: Store
    name: str
    size: int
    partition: int
    compression: str = ""


class CheckedSegment(msgspec.Struct, frozen=True, kw_only=True):
    """What a segment has. Indexes, terms and positions are -1 where it has none."""

    name: str
    end: str
    """A `ScanEnd`, or `missing`."""
    reason: str = ""
    number: int = 0
    first_index: int = -1
    last_index: int = -1
    first_term: int = -1
    last_term: int = -1
    first_position: int = -1
    last_position: int = -1
    records: int = 0
    used_bytes: int = 0
    plain_bytes: int = 0
    """Its size on disk at the broker, by its descriptor."""
    size: int = 0
    last_frame_at: int = 0
    stated_last_index: int = 0
    stated_last_frame_at: int = 0
    odd_flags: int = 0
    first_odd: int = -1
    checkpoints: tuple[CheckpointEntry, ...] = ()
    cut: bytes = b""
    """Rows of `cut_rows`."""
    unreadable: int = 0
    """Values that are not maps, of records that the cut needs."""
    first_unreadable: int = -1

    @property
    def whole(self) -> bool:
        """It was read to its last frame."""
        return self.end not in {ScanEnd.DAMAGED, ScanEnd.TORN, MISSING_OBJECT}

    @property
    def used(self) -> bool:
        return self.number > 0


MISSING_OBJECT = "missing"


def scan_segment(unit: SegmentUnit, progress: Progress) -> CheckedSegment:
    """The task."""
    rows, entries, unreadable, first_unreadable = [np.empty((0, CUT_COLUMNS), np.int64)], list[CheckpointEntry](), 0, -1
    try:
        scan = SegmentScan(StoredFileReader(unit.store, unit.name, unit.size, unit.compression).read)
        done = 0
        for block in scan.blocks():
            found = cut_rows(block, unit.partition)
            rows.append(found.rows)
            if found.unreadable and not unreadable:
                first_unreadable = found.first_unreadable
            unreadable += found.unreadable
            if len(entries) < MOST_CHECKPOINTS:
                entries += checkpoints(block.buffer, block.base, block.rows)[: MOST_CHECKPOINTS - len(entries)]
            progress(min(scan.used_bytes, unit.size) - done)
            done = min(scan.used_bytes, unit.size)
        progress(unit.size - done)
    except ObjectMissing as error:
        return CheckedSegment(name=unit.name, end=MISSING_OBJECT, reason=error.what)
    except Damaged as error:
        return CheckedSegment(name=unit.name, end=ScanEnd.DAMAGED, reason=error.what, size=unit.size)
    described = scan.descriptor
    return CheckedSegment(
        name=unit.name,
        end=scan.end,
        reason=scan.reason,
        number=described.segment_id if described else 0,
        first_index=scan.fact(kernels.FIRST_INDEX),
        last_index=scan.fact(kernels.LAST_INDEX),
        first_term=scan.fact(kernels.FIRST_TERM),
        last_term=scan.fact(kernels.LAST_TERM),
        first_position=scan.fact(kernels.FIRST_POSITION),
        last_position=scan.fact(kernels.LAST_POSITION),
        records=scan.fact(kernels.RECORDS),
        used_bytes=scan.used_bytes,
        plain_bytes=described.max_bytes if described else 0,
        size=unit.size,
        last_frame_at=scan.last_frame_at,
        stated_last_index=described.last_index if described else 0,
        stated_last_frame_at=described.last_frame_at if described else 0,
        odd_flags=scan.fact(kernels.ODD_FLAGS),
        first_odd=scan.fact(kernels.FIRST_ODD),
        checkpoints=tuple(entries),
        cut=np.concatenate(rows).tobytes(),
        unreadable=unreadable,
        first_unreadable=first_unreadable,
    )
