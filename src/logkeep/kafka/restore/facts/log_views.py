"""What a restore reads from one archived log: its batches, how its transactions ended, its visible records."""

from collections.abc import Iterator

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import BatchStretch
from logkeep.formats.kafka.partitioner import Share
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.records import RecordColumns
from logkeep.formats.kafka.transactions import SettledTransactions
from logkeep.kafka.logs.archived import settled_transactions, stretches
from logkeep.kafka.logs.burials import read_buried
from logkeep.kafka.restore.facts.units import Offsets, ReplayLog, RestoreIsolation, SourceLog
from logkeep.repository.chain.commits import SourceRef


def archived_batches(place: SourceRef, source: SourceLog) -> Iterator[BatchStretch]:
    """All archived batches of the log's range. Raises Damaged, ObjectMissing or another StoreError."""
    return stretches(place, source.segments, source.start, source.end)


def settled_of(place: SourceRef, source: SourceLog, isolation: RestoreIsolation) -> SettledTransactions | None:
    """How the log's transactions ended. None: all records are restored, also those of aborted transactions.

    A log without transactions is not read.
    """
    if isolation is RestoreIsolation.ALL:
        return SettledTransactions(source.left_out, ()) if source.left_out else None
    segments, end = source.segments if source.transactional else (), max(source.end, source.settled_to)
    return settled_transactions(place, source.log, segments, source.start, end).without(source.left_out)


def view_of(place: SourceRef, log: ReplayLog, source: SourceLog, settled: SettledTransactions | None) -> View:
    """Which records of the source are restored to the partition. Raises Damaged."""
    buried = read_buried(place, source.buried)
    share = Share(log.partition, log.spread_over, source.log.partition) if log.spread_over else None
    return View(source.start, source.end, settled, log.offsets is Offsets.PRESERVE, log.before_ms, share, buried)


def share_of(place: SourceRef, log: ReplayLog, source: SourceLog) -> Iterator[RecordColumns]:
    """The records of the source that belong to a partition which gets a share of it. Reads the transactions first."""
    try:
        view = view_of(place, log, source, settled_of(place, source, log.isolation))
        yield from visible_records(archived_batches(place, source), view)
    except Damaged as error:
        raise Damaged(error.what, subject=error.subject or f"the archive of {source.log}") from error
