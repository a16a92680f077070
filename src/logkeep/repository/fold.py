"""What all commits together mean. Pure: commits in, state out; an impossible step is damage, never ignored."""

from typing import ClassVar

import msgspec

from logkeep.errors import Damaged
from logkeep.model.ids import BackupId, StoredId
from logkeep.repository.actions import (
    FIRST_GENERATION,
    NO_PREDECESSOR,
    Action,
    BackupAction,
    CheckpointAction,
    Commit,
    DeleteAction,
    FailedAction,
    HoldAction,
    ObjectRef,
    ReleaseAction,
    ReplaceAction,
    Summary,
)
from logkeep.repository.documents import MIB, SourceDocument


class BackupEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A completed backup as the chain knows it."""

    id: StoredId
    generation: int
    committed: str
    manifest: ObjectRef
    summary: Summary
    hold: str | None = None
    """Why the user pinned it; None when it is not pinned."""


class FailedEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failed id. Kept for ever: failed is final."""

    id: StoredId
    generation: int
    recorded: str
    reason: str


class Replacement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Concerns backups committed before its generation only: later manifests were built with the new objects."""

    generation: int
    action: ReplaceAction


class Folded(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meaning of a chain up to a generation."""

    generation: int = FIRST_GENERATION - 1
    head: str = NO_PREDECESSOR
    """The seal of the last commit."""
    head_time: str = ""
    last_id: int = 0
    completed: tuple[BackupEntry, ...] = ()
    failed: tuple[FailedEntry, ...] = ()
    replacements: tuple[Replacement, ...] = ()

    def entry(self, backup_id: int) -> BackupEntry | None:
        return next((e for e in self.completed if e.id == backup_id), None)

    def failure(self, backup_id: int) -> FailedEntry | None:
        return next((f for f in self.failed if f.id == backup_id), None)


class Checkpoint(SourceDocument, frozen=True, kw_only=True, tag="checkpoint"):
    """A folded chain, stored beside it: a cache that saves reading old commits."""

    limit: ClassVar[int] = 256 * MIB

    folded: Folded


class Folding:
    """A chain being folded: mutable inside, `Folded` outside."""

    def __init__(self, start: Folded) -> None:
        self._generation, self._head, self._last_id = start.generation, start.head, start.last_id
        self._head_time = start.head_time
        self._completed = {e.id: e for e in start.completed}
        self._failed = {f.id: f for f in start.failed}
        self._replacements = list(start.replacements)

    def apply(self, commit: Commit, seal: str, where: str) -> None:
        """Take one more commit. Raises Damaged when it does not continue the chain or says the impossible."""
        if commit.generation != self._generation + 1:
            raise Damaged(f"commit {commit.generation} follows {self._generation}", subject=where)
        if commit.previous != self._head:
            raise Damaged("the commit does not continue the chain: its predecessor was another one", subject=where)
        self._act(commit.action, commit, where)
        self._generation, self._head, self._head_time = commit.generation, seal, commit.time

    def result(self) -> Folded:
        return Folded(
            generation=self._generation,
            head=self._head,
            head_time=self._head_time,
            last_id=self._last_id,
            completed=tuple(self._completed.values()),
            failed=tuple(self._failed.values()),
            replacements=tuple(self._replacements),
        )

    def _act(self, action: Action, commit: Commit, where: str) -> None:
        match action:
            case BackupAction():
                self._complete(action, commit, where)
            case FailedAction():
                self._claim(action.id, where)
                self._failed[action.id] = FailedEntry(
                    id=action.id, generation=commit.generation, recorded=commit.time, reason=action.reason
                )
            case DeleteAction():
                for backup_id in action.ids:
                    self._known(backup_id, where)
                    del self._completed[backup_id]
                self._forget_replacements()
            case HoldAction():
                self._pin(action.id, action.reason, where)
            case ReleaseAction():
                self._pin(action.id, None, where)
            case ReplaceAction():
                self._replacements.append(Replacement(generation=commit.generation, action=action))
                self._forget_replacements()
            case CheckpointAction():
                pass

    def _complete(self, action: BackupAction, commit: Commit, where: str) -> None:
        self._claim(action.id, where)
        self._completed[action.id] = BackupEntry(
            id=action.id,
            generation=commit.generation,
            committed=commit.time,
            manifest=action.manifest,
            summary=action.summary,
        )

    def _claim(self, backup_id: int, where: str) -> None:
        if backup_id <= self._last_id:
            raise Damaged(f"backup id {backup_id} is not larger than {self._last_id}", subject=where)
        self._last_id = backup_id

    def _known(self, backup_id: int, where: str) -> BackupEntry:
        entry = self._completed.get(BackupId(backup_id))
        if entry is None:
            raise Damaged(f"the commit speaks of backup {backup_id}, which does not exist", subject=where)
        return entry

    def _pin(self, backup_id: int, reason: str | None, where: str) -> None:
        entry = self._known(backup_id, where)
        self._completed[backup_id] = msgspec.structs.replace(entry, hold=reason)

    def _forget_replacements(self) -> None:
        oldest = min((e.generation for e in self._completed.values()), default=self._generation + 1)
        self._replacements = [r for r in self._replacements if oldest < r.generation]
