"""Continue an interrupted restore, or roll back a restore, interrupted or not.

Both work from every state that a restore, or an earlier continue or rollback, may have left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.model.findings import Finding
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.next_steps import steps_after_end, steps_after_nothing
from logkeep.zookeeper.restore.numbers import reused_numbers
from logkeep.zookeeper.restore.swap import Cleanup, Swap
from logkeep.zookeeper.restore.target.checks import check_old_data, check_owners
from logkeep.zookeeper.restore.target.directories import MARKER, ServerDirectories, place_of
from logkeep.zookeeper.restore.target.journal import Phase, RestoreJournal, check_members, journal_of
from logkeep.zookeeper.restore.target.locks import locked
from logkeep.zookeeper.restore.target.running_server import Ask, ask_server, find_running_servers
from logkeep.zookeeper.restore.target.state import fingerprint_of
from logkeep.zookeeper.restore.values import ServerTarget


class RestoreEndState(StrEnum):
    NEW = "new"
    """The restored data is in place."""
    OLD = "old"
    """The data from before the restore is in place, after a rollback."""
    NOTHING = "nothing"
    """The same after a continue: the restore had died before all files were staged."""


@dataclass(frozen=True)
class RestoreEnd:
    restore: str
    outcome: RestoreEndState
    data_dirs: tuple[str, ...]
    kept: tuple[str, ...]
    """Directories beside `version-2` that hold the other data, and files of servers that tried to start."""
    unchecked: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    next_steps: tuple[str, ...] = ()
    """What to do now."""


def continue_restore(target: ServerTarget, *, disk: Disk | None = None, ask: Ask = ask_server) -> RestoreEnd:
    """To the new data. A restore that died before all files were staged leaves the old data and must be run again."""
    return _end(target, disk or Disk(), ask, forward=True)


def roll_back(target: ServerTarget, *, disk: Disk | None = None, ask: Ask = ask_server) -> RestoreEnd:
    """To the old data, also after the restore had ended; the restored data is then kept beside it."""
    return _end(target, disk or Disk(), ask, forward=False)


def _end(target: ServerTarget, disk: Disk, ask: Ask, *, forward: bool) -> RestoreEnd:
    named = place_of(target)
    journal = _journal_of(named)
    places = [_with_host(each.place(named.opened), named, target) for each in journal.places]
    with locked(places):
        journal = _same_members(_journal_of(named), journal)  # another process may have ended the restore since
        check_members(journal, places)
        check_owners(places, journal.restore)
        seen = find_running_servers(places, ask)
        if journal.phase in (Phase.OLD, Phase.NEW) or not forward:
            for refusal in seen.refusals():
                raise refusal
        if not forward:
            check_old_data(journal, places)
        outcome = (_forward if forward else _back)(journal, places, disk)
        findings = () if outcome is RestoreEndState.NEW else tuple(reused_numbers(journal, places))
    return RestoreEnd(
        journal.restore,
        outcome,
        tuple(str(p.data_dir) for p in places),
        _kept_paths(journal, places),
        seen.unchecked,
        findings,
        tuple(_next_steps(outcome, journal)),
    )


def _next_steps(outcome: RestoreEndState, journal: RestoreJournal) -> Iterator[str]:
    if outcome is RestoreEndState.NOTHING:
        return steps_after_nothing(was_done=journal.was_done)
    return steps_after_end(new=outcome is RestoreEndState.NEW, was_done=journal.was_done)


def _journal_of(named: ServerDirectories) -> RestoreJournal:
    journal = journal_of(named.data_folder, named.opened)
    if journal is None:
        what = "no restore has left a journal there"
        raise UsageError(what, subject=str(named.data_dir), remedy="there is nothing to continue or roll back")
    return journal


def _same_members(journal: RestoreJournal, earlier: RestoreJournal) -> RestoreJournal:
    """The directories of the first reading are open and locked. Raises TargetUnsafe if there are others now."""
    if [(p.data_dir, p.log_dir) for p in journal.places] != [(p.data_dir, p.log_dir) for p in earlier.places]:
        what, remedy = "its journal was replaced by one of other directories", "run again"
        raise TargetUnsafe(what, subject=journal.places[0].data_dir, remedy=remedy)
    return journal


def _with_host(place: ServerDirectories, named: ServerDirectories, target: ServerTarget) -> ServerDirectories:
    return replace(place, host=target.host, host_from=target.host_from) if place.data_dir == named.data_dir else place


def _forward(journal: RestoreJournal, places: Sequence[ServerDirectories], disk: Disk) -> RestoreEndState:
    if journal.phase is Phase.STAGING:
        Cleanup(journal, places, disk).remove_staged()
        return RestoreEndState.NOTHING
    if journal.phase is Phase.OLD:
        _check_same(journal, places)
    swap = Swap(journal, places, disk)
    swap.forward()
    Cleanup(swap.journal, places, disk).remove_empty_directories()
    return RestoreEndState.NEW


def _check_same(journal: RestoreJournal, places: Sequence[ServerDirectories]) -> None:
    """Before the marker was written a server could start on the old data and write to it. Raises TargetUnsafe."""
    for noted, place in zip(journal.places, places, strict=True):
        marked = place.log.folder is not None and place.log.folder.find(MARKER) is not None
        if not marked and fingerprint_of(place) != noted.fingerprint:
            raise TargetUnsafe(
                "the old data has changed since the restore was interrupted",
                subject=noted.data_dir,
                remedy="roll back, which loses nothing, and restore again",
            )


def _back(journal: RestoreJournal, places: Sequence[ServerDirectories], disk: Disk) -> RestoreEndState:
    swap = Swap(journal, places, disk)
    if journal.phase is not Phase.STAGING:
        swap.back()
        swap.note(Phase.STAGING)
    Cleanup(swap.journal, places, disk).remove_staged()
    return RestoreEndState.OLD


def _kept_paths(journal: RestoreJournal, places: Sequence[ServerDirectories]) -> tuple[str, ...]:
    names = [
        (live, path)
        for place in places
        for live in place.lives
        for path in (live.kept(journal.restore), live.staged(journal.restore), live.strange(journal.restore))
    ]
    return tuple(str(path) for live, path in names if live.beside(path) is not None)
