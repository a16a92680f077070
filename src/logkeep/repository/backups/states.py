"""The four states of a backup, as types, and the state of a group of backups. Pure.

`ongoing` is a request without a commit whose owner still holds the lease. If the owner is gone, readers *derive*
`failed` (with `recorded` false) and write nothing; only a lease holder makes it final. A backup that the source's own
processes copy needs no lease meanwhile: it is `ongoing` until its deadline, unless a copy failed (`detached`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from logkeep.model.ids import BackupId
from logkeep.repository.backups.detached_backup import is_detached
from logkeep.repository.backups.journal import BackupRequest
from logkeep.repository.chain.fold import BackupEntry, Folded


class StateName(StrEnum):
    """State names in JSON and in text."""

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
    request: BackupRequest
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
    request: BackupRequest | None = None
    name = StateName.FAILED


State = DoesNotExist | Ongoing | Completed | Failed
OWNER_LOST = "owner lost: its process ended without finishing"


def decided(folded: Folded) -> dict[int, State]:
    """The state of every backup that the chain has decided on and not deleted."""
    states: dict[int, State] = {f.id: Failed(BackupId(f.id), f.reason, True) for f in folded.failed}
    states.update((e.id, Completed(BackupId(e.id), e)) for e in folded.completed)
    return states


def undecided(
    backup_id: BackupId,
    last_id: int,
    request: BackupRequest | None,
    worked_on: int | None,
    failure: Callable[[BackupRequest], str | None],
) -> State:
    """The state of an id that is not in the chain: from its request and what the lease holder works on.

    `failure`: why a detached backup cannot complete any more.
    """
    if request is None or backup_id <= last_id:
        return DoesNotExist(backup_id)  # never started, or deleted
    if worked_on == backup_id:
        return Ongoing(backup_id, request)
    if is_detached(request):
        reason = failure(request)
        return Ongoing(backup_id, request) if reason is None else Failed(backup_id, reason, False, request)
    return Failed(backup_id, OWNER_LOST, False, request)


def group_state(members: Iterable[StateName]) -> StateName:
    """Completed if all are, failed if any is, else ongoing if any is, else it does not exist as a whole."""
    names = set(members)
    if StateName.FAILED in names:
        return StateName.FAILED
    if names == {StateName.COMPLETED}:
        return StateName.COMPLETED
    return StateName.ONGOING if StateName.ONGOING in names else StateName.DOES_NOT_EXIST
