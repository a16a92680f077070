"""The transactions that backups can be restored to, from their records alone: no archived data is read.

Records name the first and last transactions of snapshots and logs, which give the intervals. Only a verification can
find where members disagree or the end of an epoch is in doubt. `lost_by` reports what a deletion of backups loses.
"""

from collections.abc import Collection, Iterable, Sequence

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.segments import Segment
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.model.spans import joined, outside
from logkeep.zookeeper.repo.current_record import served_record
from logkeep.zookeeper.repo.record import ROLE, EnsembleRecord
from logkeep.zookeeper.timeline.holdings import Holdings
from logkeep.zookeeper.timeline.plan import Interval, reachable
from logkeep.zookeeper.timeline.reachable import reaches_of
from logkeep.zookeeper.timeline.timeline import line_of

Spans = dict[str, list[tuple[int, int]]]
"""Per history, zxids from one to another, both included."""


class _Bounds:
    """The times of the first and last transaction of a log."""

    def time_of(self, log: ArchivedLog, zxid: int) -> int | None:
        return log.max_time_ms if zxid == log.last else log.min_time_ms if zxid == log.first else None

    def first_later(self, log: ArchivedLog, first: int, last: int, time_ms: int) -> tuple[int, int] | None:
        raise NotImplementedError("no record is read")


def intervals_of(record: EnsembleRecord) -> dict[str, tuple[Interval, ...]]:
    """Per history."""
    holdings = Holdings(record.snapshots, record.logs, record.members)
    lines = {history: line_of(holdings, history) for history in holdings.histories}
    return {name: reachable(holdings, line, reaches_of(holdings, line), _Bounds()) for name, line in lines.items()}


def record_rows(
    place: SourceRef, folded: Folded, entry: BackupEntry
) -> tuple[EnsembleRecord, dict[str, Segment]] | None:
    """A backup's record and the rows of its objects of today; None for another kind of source. Raises Damaged."""
    manifest = read_manifest(place, entry)
    record = read_attachment(place, manifest, ROLE, EnsembleRecord)
    if record is None:
        return None
    found = served_record(place, folded, manifest, record)
    return found.record, found.rows


def lost_by(place: SourceRef, folded: Folded, gone: Collection[int]) -> tuple[str, ...]:
    """Intervals that can be restored to today and from none of the remaining backups, as text."""
    goes = _spans(place, folded, (e for e in folded.completed if e.id in gone))
    stays = _spans(place, folded, (e for e in folded.completed if e.id not in gone))
    return tuple(
        f"history {history}: {hex_zxid(first)} to {hex_zxid(last)}"
        for history, spans in sorted(goes.items())
        for first, last in without(spans, stays.get(history, []))
    )


def _spans(place: SourceRef, folded: Folded, entries: Iterable[BackupEntry]) -> Spans:
    """A backup that cannot be read adds nothing."""
    found: Spans = {}
    for entry in entries:
        try:
            read = record_rows(place, folded, entry)
        except Damaged:
            continue
        for history, intervals in intervals_of(read[0]).items() if read else ():
            found.setdefault(history, []).extend((i.first.zxid, i.last.zxid) for i in intervals)
    return found


def without(spans: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Parts of `spans` that are in none of the others, in order, without overlaps."""
    return list(outside(joined(spans), others))
