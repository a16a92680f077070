"""Which part of a partition's log a copy still has to archive, and where the log of the backup begins. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from logkeep.checkpoint.partition_copy import PartitionCopy
from logkeep.errors import BackupFailed


@dataclass(frozen=True)
class CopyPlan:
    """`[copy_from, cut_end)` is copied; the log of the backup is `[log_start, cut_end)`."""

    copy_from: int
    log_start: int
    snapshot_archived: bool
    """The base has this snapshot: its object is used again."""
    lost: tuple[tuple[int, int], ...] = ()
    """Not archived and no longer in the local log."""


def is_continued(
    base: PartitionCopy, base_id: int, *, history: int, checkpoints: Collection[tuple[int, int, int]]
) -> bool:
    """Whether the log of the base is this partition's own: its checkpoint is among those of this partition.

    It is not if the data directory was restored to a state from before the base: positions were given twice then.
    """
    return base.history == history and (base_id, base.position, base.cut_end) in checkpoints


def plan_copy(
    base: PartitionCopy | None, *, history: int, local_start: int, snapshot_position: int, cut_end: int
) -> CopyPlan:
    """Continue the log of the base where it is of the same history, so that no point between both is lost.

    `snapshot_position` is -1 without a snapshot. Raises BackupFailed if the state could not be rebuilt from the copy.
    """
    needed = snapshot_position + 1
    if base is None or base.history != history or not 0 <= base.cut_end <= cut_end:
        _check_reachable(needed, local_start)
        return CopyPlan(local_start, local_start, snapshot_archived=False)
    archived = snapshot_position >= 0 and snapshot_position == base.snapshot_position
    if local_start > base.cut_end:
        _check_reachable(needed, local_start)
        return CopyPlan(local_start, local_start, archived, ((base.cut_end, local_start),))
    _check_reachable(needed, base.log_start)
    return CopyPlan(base.cut_end, min(needed, base.cut_end), archived)


def _check_reachable(needed: int, log_start: int) -> None:
    if needed < log_start:
        raise BackupFailed(f"the log begins at {log_start}, but the state is known only up to {needed}")
