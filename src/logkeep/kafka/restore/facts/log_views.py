"""What a restore takes from one archived log: its batches, which transactions count, and which records are wanted."""

from collections.abc import Iterator

import msgspec

from logkeep.errors import Damaged
from logkeep.formats.compare.log_compare import BatchStretch
from logkeep.formats.kafka.partitioner import Share
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.records import RecordColumns
from logkeep.formats.kafka.transactions import SettledTransactions, Settling
from logkeep.kafka.logs.archived import stretches
from logkeep.kafka.restore.facts.units import Offsets, ReplayLog, RestoreIsolation
from logkeep.repository.chain.commits import SourceRef


def archived_batches(place: SourceRef, log: ReplayLog) -> Iterator[BatchStretch]:
    """All archived batches of the log's range. Raises Damaged, ObjectMissing or another StoreError."""
    return stretches(place, log.segments, log.start, log.end)


def settled_of(place: SourceRef, log: ReplayLog) -> SettledTransactions | None:
    """What became of the log's transactions up to its end. None: all records count, whatever became of them.

    A log without transactions is not read for that.
    """
    if log.isolation is RestoreIsolation.ALL:
        return None
    settling = Settling()
    whole = msgspec.structs.replace(log, end=max(log.end, log.settled_to))
    for stretch in archived_batches(place, whole) if log.transactional else ():
        before_end = stretch.touching(0, whole.end)
        settling.take(before_end.buffer, before_end.batches)
        if settling.problems:
            raise Damaged(f"a transaction marker cannot be read: {settling.problems[0]}", subject=str(log.log))
    return settling.settled()


def view_of(log: ReplayLog, settled: SettledTransactions | None) -> View:
    share = Share(log.partition, log.spread_over, log.log.partition) if log.spread_over else None
    return View(log.start, log.end, settled, log.offsets is Offsets.PRESERVE, log.before_ms, share)


def share_of(place: SourceRef, source: ReplayLog) -> Iterator[RecordColumns]:
    """The records of one log that go into a partition which gets a share of it. Reads transactions first."""
    try:
        yield from visible_records(archived_batches(place, source), view_of(source, settled_of(place, source)))
    except Damaged as error:
        raise Damaged(error.what, subject=error.subject or f"the archive of {source.log}") from error
