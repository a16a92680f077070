"""The offset that belongs to a time in an archived log, by the rule of a broker."""

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.kafka.records import Malformed, decode
from logkeep.kafka.scan.stored_segment import ScannedSegment, WrongIndex
from logkeep.kafka.scan.values import ScanRange


def first_offset_at(wanted: ScanRange, time_ms: int) -> int | None:
    """The first offset of the range whose record has this time or a later one; None if there is none.

    As a broker answers it: markers and records that are not visible count too. Reads indexes, and the batches whose
    largest time is late enough until one is found. Raises Damaged or a StoreError.
    """
    for segment in wanted.own_segments:
        if 0 <= segment.max_time_ms < time_ms:
            continue
        try:
            found = _first_in(ScannedSegment(wanted.place, segment), wanted, time_ms)
        except WrongIndex:
            found = _first_in(ScannedSegment(wanted.place, segment, rebuild=True), wanted, time_ms)
        if found is not None:
            return found
    return None


def _first_in(stored: ScannedSegment, wanted: ScanRange, time_ms: int) -> int | None:
    rows, own = stored.index.rows, stored.segment
    start, end = max(wanted.start, own.start), min(wanted.end, own.end)
    late = (rows["last_offset"] >= start) & (rows["base_offset"] < end) & (rows["records"] > 0)
    for row in np.flatnonzero(late & (rows["max_time_ms"] >= time_ms)):
        for stretch in stored.chosen(np.array([row], np.int64)):
            for part in decode(stretch.buffer, stretch.batches):
                if isinstance(part, Malformed):
                    raise Damaged(str(part), subject=str(wanted.log))
                inside = part.within(start, end)
                found = inside.offsets[inside.times_ms >= time_ms]
                if len(found):
                    return int(found[0])
    return None
