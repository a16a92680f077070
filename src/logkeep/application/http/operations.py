"""What the HTTP interface does: take, show, list and delete backups of one application. No HTTP in here."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import msgspec

from logkeep.application.directory_restore import check_directory, restore_directory, target_of
from logkeep.checkpoint.archive.running_application import ApplicationPort
from logkeep.checkpoint.archive.take import TakeOptions, take
from logkeep.checkpoint.partition_copy import OnFailover
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan
from logkeep.checkpoint.restore.run import check_partitions, known_history, prepare
from logkeep.checkpoint.steps import Pause, run
from logkeep.engine.inline import InlineEngine
from logkeep.errors import TargetUnsafe, UnknownBackup
from logkeep.model.ids import BackupId, StoredId, backup_id
from logkeep.model.time import Clock, TokenSource
from logkeep.reports.backups import health_of
from logkeep.repository.backups.holds import held_ids, reader_holds
from logkeep.repository.backups.source import view
from logkeep.repository.backups.states import Completed, Failed, Ongoing, State, StateName
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import store_time
from logkeep.repository.upkeep.prune import PruneSituation, delete, fail_ongoing, ongoing_ids, plan_delete


class TakeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    backup_id: StoredId
    supersede: bool = False
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=3_600)] = 600
    on_failover: OnFailover = "fail"
    """When a partition's leader changes before its copy is complete: fail the backup, or let the next leader copy."""


class RestoreBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    dry_run: bool = True


class BackupAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    backup_id: int
    state: StateName
    reason: str = ""
    """Of a failed backup: why, and which partition."""
    started: str = ""
    finished: str = ""
    size_bytes: int = 0


class BackupList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    backups: tuple[BackupAnswer, ...]


class RestoreAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    dry_run: bool
    plan: ApplicationRestorePlan
    history: int | None = None
    """The new history, if it was restored."""
    before: str | None = None
    """Where the old files are, if there were any."""
    restore: int | None = None
    """The id for `logkeep receipts show`, if it was restored."""


@dataclass(frozen=True)
class ServedApplication:
    name: str
    place: SourceRef
    port: Callable[[], AbstractContextManager[ApplicationPort]]
    """Opened for each request that needs the running application."""
    clock: Clock
    tokens: TokenSource
    pause: Pause
    lease_ttl: timedelta
    restored_to: Path | None = None
    """The data directory that restores replace; None if the server answers dry runs only."""

    def take(self, wanted: TakeBody) -> BackupAnswer:
        """Returns when every partition has processed its create."""
        options = TakeOptions(
            wanted=BackupId(wanted.backup_id),
            wait=False,
            supersede=wanted.supersede,
            timeout=timedelta(seconds=wanted.timeout_seconds),
            on_failover=wanted.on_failover,
        )
        with self.port() as port:
            taken = run(take(self.place, port, options, self.clock, self.tokens), self.pause)
        return self.show(taken.id)

    def show(self, number: int) -> BackupAnswer:
        found = view(self.place, self.clock(), this_process("http"))
        return _answer(found.state(backup_id(number)))

    def all(self) -> BackupList:
        found = view(self.place, self.clock(), this_process("http"))
        return BackupList(backups=tuple(map(_answer, found.states())))

    def delete(self, number: int) -> None:
        """An ongoing one fails first. Raises UnknownBackup, Locked, UsageError."""
        with writing(self.place, "delete", self.clock, self.tokens, self.lease_ttl) as session:
            if number in ongoing_ids(self.place, session.folded.last_id, self.clock()):
                fail_ongoing(session, [number])
                return
            if session.folded.entry(number) is None:
                raise UnknownBackup("no completed or ongoing backup has this id", subject=f"backup {number}")
            health = {BackupId(i): verdict for i, verdict in health_of(self.place).items()}
            readers = held_ids(reader_holds(self.place), store_time(session))
            plan_delete(PruneSituation(session.folded, health, readers), [BackupId(number)])
            delete(session, [number], "deleted over HTTP")

    def planned(self, number: int) -> ApplicationRestorePlan:
        return prepare(self.place, read_chain(self.place), number)

    def restore(self, number: int) -> RestoreAnswer:
        """To the server's own directory: a request names no target. Raises TargetUnsafe."""
        directory = self.restored_to
        if directory is None:
            remedy = "start it with --allow-restore, or stop the application and run `logkeep app restore`"
            raise TargetUnsafe("this server answers dry runs only", remedy=remedy)
        folded = read_chain(self.place)
        plan, known = prepare(self.place, folded, number), target_of(directory)
        check_partitions(plan, known.document.partitions if known is not None else None)
        check_directory(directory, known, plan, replace=True)
        history = known_history(self.place, folded, known.document.history if known is not None else 0)
        restored = restore_directory(
            self.place, plan, directory, history, self.clock, self.tokens, lambda _: InlineEngine(), self.pause
        )
        before = None if restored.done.before is None else str(restored.done.before)
        return RestoreAnswer(dry_run=False, plan=plan, history=restored.history, before=before, restore=restored.id)


def _answer(state: State) -> BackupAnswer:
    if isinstance(state, Completed):
        summary = state.entry.summary
        return BackupAnswer(
            backup_id=state.id,
            state=state.name,
            started=summary.started,
            finished=state.entry.committed,
            size_bytes=summary.stored_bytes,
        )
    if isinstance(state, Ongoing):
        return BackupAnswer(backup_id=state.id, state=state.name, started=state.request.started)
    return BackupAnswer(backup_id=state.id, state=state.name, reason=state.reason if isinstance(state, Failed) else "")


def names_of(applications: Sequence[ServedApplication]) -> dict[str, ServedApplication]:
    return {each.name: each for each in applications}
