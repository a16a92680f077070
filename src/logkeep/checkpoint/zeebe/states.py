"""The state of a backup, from the states of its copies, as Zeebe computes it. Pure.

A partition has the state of its best copy. A backup is failed if a partition is; incomplete if a partition has no copy
while another has a good one; completed if all partitions are.
"""

from collections.abc import Collection, Iterable
from enum import StrEnum

from logkeep.formats.zeebe.manifests import CopyState

_FROM_WORST = tuple(CopyState)


class BackupState(StrEnum):
    """Of a whole backup. UNREADABLE: a partition has no copy with a readable manifest, but one with another."""

    DOES_NOT_EXIST = "does-not-exist"
    UNREADABLE = "unreadable"
    DELETED = "deleted"
    FAILED = "failed"
    INCOMPLETE = "incomplete"
    IN_PROGRESS = "in-progress"
    COMPLETED = "completed"


def best_state(copies: Iterable[CopyState]) -> CopyState:
    """The state of a partition."""
    return max(copies, key=_FROM_WORST.index, default=CopyState.DOES_NOT_EXIST)


def backup_state(partitions: Collection[CopyState], *, unreadable: bool = False) -> BackupState:
    """The state of a backup whose partitions have these states."""
    there = set(partitions)
    if CopyState.FAILED in there:
        return BackupState.FAILED
    if unreadable:
        return BackupState.UNREADABLE
    good = there & {CopyState.IN_PROGRESS, CopyState.COMPLETED}
    if good and CopyState.DOES_NOT_EXIST in there and CopyState.DELETED not in there:
        return BackupState.INCOMPLETE
    for state in (CopyState.DELETED, CopyState.IN_PROGRESS, CopyState.DOES_NOT_EXIST):
        if state in there:
            return BackupState(state.value)
    return BackupState.COMPLETED if there else BackupState.DOES_NOT_EXIST
