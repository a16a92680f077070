"""Deletes backups, by policy or by id. One commit removes them; garbage collection removes their bytes.

The decision is pure (`retention`) and printed before it is carried out; a dry run is the same plan.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from logkeep.errors import Locked, UsageError
from logkeep.model.ids import BackupId
from logkeep.repository.backups.detached_backup import CLOCK_SKEW, deadline_of, detached_requests
from logkeep.repository.backups.journal import open_ids
from logkeep.repository.backups.verdicts import BackupVerdict
from logkeep.repository.chain.actions import DeleteAction, FailedAction
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.write_session import Writing
from logkeep.repository.upkeep.retention import Candidate, Policy, RetentionVerdict, decide


@dataclass(frozen=True)
class PruneSituation:
    """The facts about a source that decide what may be deleted."""

    folded: Folded
    health: Mapping[BackupId, BackupVerdict]
    readers: Mapping[BackupId, str]
    """Backups that are being read, and the readers."""

    def damaged(self, entry: BackupEntry) -> bool:
        verdict = self.health.get(BackupId(entry.id))
        return verdict is not None and verdict.damaged

    def kept_by(self, tags: Collection[str]) -> dict[int, str]:
        """Backups that must stay as they are: held ones, those that are read, and those with one of these tags."""
        tagged = {e.id: f"tag {t} of backup {e.id}" for e in self.folded.completed for t in e.summary.tags if t in tags}
        read = {int(backup): f"backup {backup} is read by {who}" for backup, who in self.readers.items()}
        held = {e.id: f"backup {e.id} is held" for e in self.folded.completed if e.hold is not None}
        return {**tagged, **read, **held}

    def newest_good(self) -> BackupEntry | None:
        return next((e for e in reversed(self.folded.completed) if not self.damaged(e)), None)

    def candidates(self) -> list[Candidate]:
        return [self._candidate(e) for e in self.folded.completed]

    def _candidate(self, entry: BackupEntry) -> Candidate:
        reader = self.readers.get(BackupId(entry.id))
        reason = entry.hold if entry.hold is not None else f"read by {reader}" if reader else ""
        damaged = self.damaged(entry)
        return Candidate(
            id=entry.id,
            committed=datetime.fromisoformat(entry.committed),
            good=not damaged,
            damaged=damaged,
            held=entry.hold is not None or reader is not None,
            hold_reason=reason,
            tags=entry.summary.tags,
            generation=entry.generation,
        )


def plan_prune(situation: PruneSituation, policy: Policy, now: datetime) -> list[RetentionVerdict]:
    """What a policy keeps and removes, with a reason for each."""
    return decide(situation.candidates(), policy, now)


def plan_delete(situation: PruneSituation, ids: Sequence[BackupId]) -> list[BackupEntry]:
    """The backups that the user wants to delete. Raises UsageError if one must stay."""
    wanted = [_deletable(situation, i) for i in dict.fromkeys(ids)]
    newest = situation.newest_good()
    if newest is not None and newest.id in {e.id for e in wanted} and not situation.damaged(newest):
        left = [e for e in situation.folded.completed if e not in wanted and not situation.damaged(e)]
        if not left:
            raise UsageError(
                "this is the last good backup of the source; it is never deleted",
                subject=f"backup {newest.id}",
                remedy="take another backup first; to remove the whole source, use the store's own tools",
            )
    return wanted


def _deletable(situation: PruneSituation, backup_id: BackupId) -> BackupEntry:
    entry = situation.folded.entry(backup_id)
    if entry is None:
        raise UsageError("no completed backup has this id", subject=f"backup {backup_id}")
    if entry.hold is not None:
        raise UsageError(
            f"it is held: {entry.hold}", subject=f"backup {entry.id}", remedy=f"run `logkeep release {entry.id}` first"
        )
    if backup_id in situation.readers:
        raise UsageError(f"it is being read: {situation.readers[backup_id]}", subject=f"backup {entry.id}")
    return entry


def ongoing_ids(place: SourceRef, last_id: int, now: datetime) -> list[int]:
    """Backups that the source's own processes are copying now."""
    found = ((request.id, deadline_of(request)) for request in detached_requests(place, open_ids(place, last_id)))
    return [i for i, deadline in found if deadline is not None and now < deadline + CLOCK_SKEW]


def fail_ongoing(writing: Writing, ids: Sequence[int]) -> None:
    """Ongoing backups that the user deletes become failed, which is final: late copies are ignored."""
    for backup_id in ids:
        writing.commit(FailedAction(backup_id, "deleted before it was completed"))


def delete(writing: Writing, ids: Sequence[int], reason: str) -> None:
    """Commit the deletion. Objects that only these backups needed become garbage. Raises Locked."""
    if ids:
        _refuse_while_copied(writing)
        writing.commit(DeleteAction(tuple(ids), reason))


def _refuse_while_copied(writing: Writing) -> None:
    """Raise Locked while the source's own processes copy a backup: their copies continue the newest backup, so no
    backup may be deleted meanwhile."""
    for backup_id in ongoing_ids(writing.place, writing.folded.last_id, writing.clock()):
        raise Locked(
            f"backup {backup_id} is ongoing",
            subject=writing.place.source,
            remedy=f"try again when it is completed, or delete {backup_id} first, which fails it",
        )
