"""Which log and which snapshot each partition is restored from. Pure.

A checkpoint is a restore point if one backup has it in the logs of all partitions, and if for each partition the
newest snapshot at or before it is in that backup or in one that its log continues.
"""

from collections.abc import Mapping, Sequence

import msgspec

from logkeep.checkpoint.archive.record import ApplicationRecord
from logkeep.checkpoint.partition_copy import PartitionCopy
from logkeep.errors import UnknownBackup


class ArchivedLogPiece(msgspec.Struct, frozen=True):
    """`[start, end)` of a partition's log, as one backup has it."""

    backup: int
    start: int
    end: int


class PartitionRestorePlan(msgspec.Struct, frozen=True, kw_only=True):
    partition: int
    position: int
    """Of the create: the last record that is restored."""
    cut_end: int
    branch: int = 0
    """Of the archived log, as its copies say."""
    snapshot_backup: int = 0
    snapshot_position: int = -1
    logs: tuple[ArchivedLogPiece, ...]
    """In order, without a hole, from the snapshot (or the beginning) to the cut."""
    state_digest: str = ""
    """Known if the checkpoint is a backup."""
    sent_again: int | None = None
    """Messages without an acknowledgement at the checkpoint; known if it is a backup."""

    @property
    def log_start(self) -> int:
        return self.logs[0].start


class ApplicationRestorePlan(msgspec.Struct, frozen=True, kw_only=True):
    checkpoint: int
    backup: int
    """The backup in which the checkpoint is."""
    application: str
    name: str
    history: int
    """Of the archived logs."""
    partitions: tuple[PartitionRestorePlan, ...]

    @property
    def backups(self) -> tuple[int, ...]:
        """All backups whose objects are read."""
        pieces = {piece.backup for one in self.partitions for piece in one.logs}
        snapshots = {one.snapshot_backup for one in self.partitions if one.snapshot_position >= 0}
        return tuple(sorted({self.backup, *pieces, *snapshots}))


def restore_points(records: Sequence[ApplicationRecord]) -> dict[int, ApplicationRecord]:
    """Every checkpoint that all partitions of a backup have, with the first such backup."""
    found: dict[int, ApplicationRecord] = {}
    for record in records:
        common = set.intersection(*({c[0] for c in copy.checkpoints} for copy in record.copies))
        for checkpoint in {*common, record.id}:
            found.setdefault(checkpoint, record)
    return found


def plan_restore(records: Sequence[ApplicationRecord], checkpoint: int) -> ApplicationRestorePlan:
    """`records` are those of all completed backups, oldest first. Raises UnknownBackup."""
    record = restore_points(records).get(checkpoint)
    if record is None:
        raise UnknownBackup(
            f"no archived log has checkpoint {checkpoint} in all partitions",
            remedy="`logkeep list` shows the backups; checkpoints between two of them need both",
        )
    known = {one.id: one for one in records if one.id <= record.id and one.history == record.history}
    return ApplicationRestorePlan(
        checkpoint=checkpoint,
        backup=record.id,
        application=record.application,
        name=record.name,
        history=record.history,
        partitions=tuple(_partition(known, record, copy, checkpoint) for copy in record.copies),
    )


def _partition(
    known: Mapping[int, ApplicationRecord], record: ApplicationRecord, copy: PartitionCopy, checkpoint: int
) -> PartitionRestorePlan:
    at = {c[0]: (c[1], c[2]) for c in copy.checkpoints} | {record.id: (copy.position, copy.cut_end)}
    position, cut_end = at[checkpoint]
    pieces, start = [ArchivedLogPiece(record.id, copy.log_start, cut_end)], copy.log_start
    for backup in sorted(known, reverse=True):
        one = known[backup].copies[copy.partition]
        if one.branch != copy.branch:
            continue  # its positions have another meaning
        if one.log_start < start <= one.cut_end:
            pieces.insert(0, ArchivedLogPiece(backup, one.log_start, start))
            start = one.log_start
        if one.snapshot_position < position and one.snapshot_position + 1 >= start and one.cut_end >= start:
            return PartitionRestorePlan(
                partition=copy.partition,
                position=position,
                cut_end=cut_end,
                branch=copy.branch,
                snapshot_backup=backup if one.snapshot_position >= 0 else 0,
                snapshot_position=one.snapshot_position,
                logs=tuple(pieces),
                state_digest=copy.state_digest if checkpoint == record.id else "",
                sent_again=copy.pending if checkpoint == record.id and copy.pending >= 0 else None,
            )
    raise UnknownBackup(
        f"no kept backup has a state of partition {copy.partition} from before checkpoint {checkpoint}",
        remedy=f"restore backup {record.id} instead",
    )
