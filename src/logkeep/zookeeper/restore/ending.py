"""The end of a restore that was interrupted, or the undoing of one that was not: continue, or roll back.

Both work from every state that a restore, or an earlier continue or rollback, may have left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.model.findings import Finding
from logkeep.zookeeper.restore.discarding import Discard
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.given_again import given_again
from logkeep.zookeeper.restore.holding import fingerprint_of
from logkeep.zookeeper.restore.journal import Journal, Phase, check_members, read_journal
from logkeep.zookeeper.restore.locks import alone
from logkeep.zookeeper.restore.marker import MARKER
from logkeep.zookeeper.restore.next_steps import steps_after_end, steps_after_nothing
from logkeep.zookeeper.restore.old_data import check_old_data
from logkeep.zookeeper.restore.places import Place, place_of
from logkeep.zookeeper.restore.running import Ask, Seen, ask_server, look_for_servers
from logkeep.zookeeper.restore.swapping import Swap
from logkeep.zookeeper.restore.values import Target


class Outcome(StrEnum):
    NEW = "new"
    """The restored data is in place."""
    OLD = "old"
    """What was there before the restore is in place, as was wished."""
    NOTHING = "nothing"
    """The same, and the restored data was wished: the restore had died before it was all there."""


@dataclass(frozen=True)
class Ended:
    restore: str
    outcome: Outcome
    data_dirs: tuple[str, ...]
    kept: tuple[str, ...]
    """Directories beside `version-2` that hold the other data, and files of servers that tried to start."""
    unchecked: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    next_steps: tuple[str, ...] = ()
    """What to do now."""


def continue_restore(target: Target, *, disk: Disk | None = None, ask: Ask = ask_server) -> Ended:
    """To the new data. One that died before all was staged leaves the old data, is to be run again, and says so."""
    return _end(target, disk or Disk(), ask, forward=True)


def roll_back(target: Target, *, disk: Disk | None = None, ask: Ask = ask_server) -> Ended:
    """To the old data, also after the restore had ended; what was restored is then kept beside it."""
    return _end(target, disk or Disk(), ask, forward=False)


def _end(target: Target, disk: Disk, ask: Ask, *, forward: bool) -> Ended:
    data_dir = place_of(target).data_dir
    journal = _journal_of(data_dir)
    places = [_with_host(each.place(), data_dir, target) for each in journal.places]
    with alone(places):
        journal = _journal_of(data_dir)  # it may have ended while we waited
        if journal.phase is not Phase.STAGING:
            check_members(journal)
        seen = look_for_servers(places, ask)
        if journal.phase in (Phase.OLD, Phase.NEW) or not forward:
            _check_stopped(seen)
        if not forward:
            check_old_data(journal)
        outcome = _forward(journal, places, disk) if forward else _back(journal, disk)
        findings = () if outcome is Outcome.NEW else tuple(given_again(journal))
    return Ended(
        journal.restore,
        outcome,
        tuple(str(p.data_dir) for p in places),
        _kept(journal, places),
        seen.unchecked,
        findings,
        tuple(_next_steps(outcome, journal)),
    )


def _next_steps(outcome: Outcome, journal: Journal) -> Iterator[str]:
    if outcome is Outcome.NOTHING:
        return steps_after_nothing(was_done=journal.was_done)
    return steps_after_end(new=outcome is Outcome.NEW, was_done=journal.was_done)


def _journal_of(data_dir: Path) -> Journal:
    journal = read_journal(data_dir)
    if journal is None:
        raise UsageError("no restore has left a journal there", subject=str(data_dir), remedy="there is nothing to end")
    return journal


def _with_host(place: Place, data_dir: Path, target: Target) -> Place:
    return replace(place, host=target.host, host_from=target.host_from) if place.data_dir == data_dir else place


def _check_stopped(seen: Seen) -> None:
    for refusal in seen.refusals():
        raise refusal


def _forward(journal: Journal, places: Sequence[Place], disk: Disk) -> Outcome:
    if journal.phase is Phase.STAGING:
        Discard(journal, disk).all()
        return Outcome.NOTHING
    if journal.phase is Phase.OLD:
        _check_same(journal, places)
    swap = Swap(journal, disk)
    swap.forward()
    Discard(swap.journal, disk).empty_directories()
    return Outcome.NEW


def _check_same(journal: Journal, places: Sequence[Place]) -> None:
    """Before the marker lay there a server could start on the old data, and write to it. Raises TargetUnsafe."""
    for told, place in zip(journal.places, places, strict=True):
        marked = (place.log.path / MARKER).exists()
        if not marked and fingerprint_of(place) != told.fingerprint:
            raise TargetUnsafe(
                "the old data has changed since the restore was interrupted",
                subject=told.data_dir,
                remedy="roll back, which loses nothing, and restore again",
            )


def _back(journal: Journal, disk: Disk) -> Outcome:
    swap = Swap(journal, disk)
    if journal.phase is not Phase.STAGING:
        swap.back()
        swap.note(Phase.STAGING)
    Discard(swap.journal, disk).all()
    return Outcome.OLD


def _kept(journal: Journal, places: Sequence[Place]) -> tuple[str, ...]:
    beside = [
        path
        for place in places
        for live in place.lives
        for path in (live.kept(journal.restore), live.staged(journal.restore), live.strange(journal.restore))
    ]
    return tuple(str(path) for path in beside if path.is_dir())
