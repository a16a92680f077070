"""The four states of a backup, as types, and the state of a group of backups. Pure.

`ongoing` is a request without a commit whose owner still holds the lease. When the owner is gone, readers *derive*
`failed` (with `recorded` false) and write nothing; only a lease holder makes it final.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from logkeep.model.ids import BackupId
from logkeep.repository.fold import BackupEntry, Folded
from logkeep.repository.journal import Request


class StateName(StrEnum):
    """The words of the interface."""

    DOES_NOT_EXIST = "doesNotExist"
    ONGOING = "ongoing"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True)
class DoesNotExist:
    id: BackupId
    name = StateName.DOES_NOT_EXIST


@dataclass(frozen=True)
class Ongoing:
    id: BackupId
    request: Request
    name = StateName.ONGOING


@dataclass(frozen=True)
class Completed:
    id: BackupId
    entry: BackupEntry
    name = StateName.COMPLETED


@dataclass(frozen=True)
class Failed:
    id: BackupId
    reason: str
    recorded: bool
    """False: derived from a lost owner; the backup can still be resumed."""
    request: Request | None = None
    name = StateName.FAILED


State = DoesNotExist | Ongoing | Completed | Failed
OWNER_LOST = "owner lost: its process ended without finishing"


def state_of(backup_id: BackupId, folded: Folded, request: Request | None, worked_on: int | None) -> State:
    """Decide the state from the chain, the request, and the id that the present lease holder is working on."""
    if (entry := folded.entry(backup_id)) is not None:
        return Completed(backup_id, entry)
    if (failure := folded.failure(backup_id)) is not None:
        return Failed(backup_id, failure.reason, True, request)
    if request is None or backup_id <= folded.last_id:
        return DoesNotExist(backup_id)  # never started, or deleted
    if worked_on == backup_id:
        return Ongoing(backup_id, request)
    return Failed(backup_id, OWNER_LOST, False, request)


def group_state(members: Iterable[StateName]) -> StateName:
    """Completed if all are, failed if any is, else ongoing if any is, else it does not exist as a whole."""
    names = set(members)
    if StateName.FAILED in names:
        return StateName.FAILED
    if names == {StateName.COMPLETED}:
        return StateName.COMPLETED
    return StateName.ONGOING if StateName.ONGOING in names else StateName.DOES_NOT_EXIST
