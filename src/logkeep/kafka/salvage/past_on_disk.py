"""Whether a log on a dead broker's disk has the past that is archived of it: reads batches, `past_check` decides.

A disk that ends before the archive may be that of a replica that lagged behind, or an earlier copy of a disk on which
other records were written since. Its own last batch shows which: the archive must have it at the same offset.
"""

from pathlib import Path

from logkeep.formats.kafka.batches import HEADER_BYTES
from logkeep.kafka.backup.continuity.archived_batch import header_of
from logkeep.kafka.backup.continuity.log_continuity import ArchivedRows, bodies_in
from logkeep.kafka.backup.continuity.past_check import (
    Bodies,
    LeaderBatch,
    PastVerdict,
    compare_bodies,
    compare_headers,
)
from logkeep.kafka.disks.scan_results import DiskBatch, ReplicaScan
from logkeep.kafka.disks.segment_windows import windows
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.record.documents import PartitionRecord
from logkeep.kafka.salvage.decide import FoundLog


def last_archived(known: PartitionRecord, archived: ArchivedRows) -> LastBatch | None:
    """The last archived batch, which an older release did not record; None if there is none or it is lost."""
    if known.last_batch is not None or known.last_epoch < 0:
        return known.last_batch
    batch = archived.batch_before(known.log, known.end)
    return header_of(batch) if batch is not None else None


def past_of(found: FoundLog, known: PartitionRecord, archived: ArchivedRows) -> PastVerdict:
    """Whether a log on disk has the past of the log that the archive has under the same topic id."""
    scan = found.taken
    if known.last_epoch < 0 or scan.last is None:
        return PastVerdict.SAME  # one of both has nothing that could differ
    batch = last_archived(known, archived)
    if batch is None or _damaged_at(scan, batch.last_offset):
        return PastVerdict.UNDECIDED
    if scan.end <= batch.last_offset:
        return _shorter(found, scan.last, known, archived)
    there = LeaderBatch(scan.start, scan.end, scan.compared.batch if scan.compared else None)
    verdict = compare_headers(batch, there, compacted=found.compacted)
    if verdict is not PastVerdict.BY_RECORDS or scan.compared is None:
        return verdict
    mine = archived.batch_before(known.log, batch.base_offset + 1)
    return compare_bodies(bodies_in(mine), _on_disk(scan, scan.compared))


def _shorter(found: FoundLog, last: DiskBatch, known: PartitionRecord, archived: ArchivedRows) -> PastVerdict:
    """The verdict for a disk that ends before the archive: its last batch is compared with the archived one."""
    if last.batch.last_offset < known.start:
        return PastVerdict.REMOVED
    mine = archived.batch_before(known.log, last.batch.end)
    if mine is None:
        return PastVerdict.UNDECIDED
    there = LeaderBatch(known.start, known.end, header_of(mine))
    if there.batch is not None and there.batch.last_offset < last.batch.base_offset:
        return PastVerdict.UNDECIDED if found.compacted else PastVerdict.OTHER
    verdict = compare_headers(last.batch, there, compacted=found.compacted)
    if verdict is not PastVerdict.BY_RECORDS:
        return verdict
    return compare_bodies(bodies_in(mine), _on_disk(found.taken, last))


def _damaged_at(scan: ReplicaScan, offset: int) -> bool:
    """Whether the batch at an offset may be among those that cannot be read."""
    return any(d.offset <= offset and not 0 <= d.resumes <= offset for d in scan.damages)


def _on_disk(scan: ReplicaScan, where: DiskBatch) -> Bodies | None:
    path = Path(scan.directory) / where.file
    for window in windows(path, where.at_byte, where.at_byte + max(where.batch.size, HEADER_BYTES)):
        return bodies_in(bytes(window.data))
    return None
