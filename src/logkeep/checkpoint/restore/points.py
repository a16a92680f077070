"""What the archive offers for a restore: the records of all completed backups, and their segments."""

from collections.abc import Iterable

from logkeep.checkpoint.archive.log_names import log_of, snapshots_of
from logkeep.checkpoint.archive.record import ApplicationRecord, read_application
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan, PartitionRestorePlan
from logkeep.errors import Damaged
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded
from logkeep.repository.parts import SegmentTable


def archived_records(place: SourceRef, folded: Folded) -> list[ApplicationRecord]:
    """Oldest first. Raises Damaged."""
    return [read_application(place, read_manifest(place, entry)) for entry in folded.completed]


class ArchivedSegments:
    """Segment rows of backups, each manifest read once."""

    def __init__(self, place: SourceRef, folded: Folded) -> None:
        self._place, self._folded, self._parts = place, folded, PartReader(place)
        self._rows: dict[int, SegmentTable] = {}

    def log(self, plan: ApplicationRestorePlan, of: PartitionRestorePlan) -> tuple[Segment, ...]:
        """The objects of a partition's log, in order; neighbours may both have a position at their border."""
        log = log_of(plan.name, plan.history, of.partition, of.branch)
        found = {s.token: s for piece in of.logs for s in self._segments(piece.backup, log, piece.start, piece.end)}
        return tuple(sorted(found.values(), key=lambda s: s.start))

    def snapshot(self, plan: ApplicationRestorePlan, of: PartitionRestorePlan) -> Segment | None:
        if of.snapshot_position < 0:
            return None
        log, at = snapshots_of(plan.name, plan.history, of.partition, of.branch), of.snapshot_position
        for segment in self._segments(of.snapshot_backup, log, at, at + 1):
            return segment
        raise Damaged(f"the snapshot at {at} is not in the backup", subject=str(log))

    def _segments(self, backup: int, log: LogName, start: int, end: int) -> Iterable[Segment]:
        rows = self._table(backup).covering({log: Range(start, end)})
        return (segment for segment in rows.to_segments() if segment.has_object)

    def _table(self, backup: int) -> SegmentTable:
        if backup not in self._rows:
            entry = self._folded.entry(backup)
            if entry is None:
                raise Damaged("the backup is no longer in the chain", subject=str(backup))
            manifest = read_manifest(self._place, entry)
            self._rows[backup] = rows_of(self._parts, manifest, served_parts(manifest, self._folded))
        return self._rows[backup]
