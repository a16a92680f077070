"""What to do after a restore of ZooKeeper's directories was stopped, or failed half-way: by how far it had come.

No way on is named that the program does not have. Before the first file is moved there is nothing to go on with.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from logkeep.cli.frame.signals import as_error
from logkeep.errors import LogkeepError, RestoreFailed
from logkeep.zookeeper.restore.journal import Phase, RestoreJournal, read_journal
from logkeep.zookeeper.restore.target_dirs import place_of
from logkeep.zookeeper.restore.values import ServerTarget


class Begun:
    """Whether anything was changed yet. Who changes something says so, and tells its own ways on."""

    def __init__(self) -> None:
        self.yes = False


@contextmanager
def run_again() -> Iterator[Begun]:
    """Around all of it: what comes before the first change, and behind the last."""
    begun = Begun()
    try:
        yield begun
    except KeyboardInterrupt as stop:
        error = as_error(stop)
        ended = "it had come to its end: `logkeep receipts list` shows how"
        error.remedy = ended if begun.yes else "nothing was changed: run it again"
        raise error from None


@contextmanager
def go_on(command: str, data_dir: Path, restore: str | None, *, ending: bool = False, more: str = "") -> Iterator[None]:
    """Around what moves files. `command`: the program, its verb, and the flag that a directory is named with.

    `restore`: the one that is at work; None where nobody knows. `ending`: it is being continued or rolled back.
    `more`: what else the command needs.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        error = as_error(stop)
        error.remedy = way_on(_journal(data_dir), command, data_dir, restore, ending=ending, more=more)
        raise error from None
    except RestoreFailed as failed:
        journal = _journal(data_dir)
        if isinstance(journal, RestoreJournal) and journal.restore == restore and journal.phase in _BETWEEN:
            cured = failed.remedy.partition(",")[0]  # behind it stands that it can be continued, and not how
            failed.remedy = f"{cured}; until then {way_on(journal, command, data_dir, restore, more=more)}"
        raise


@contextmanager
def go_on_ending(command: str, target: ServerTarget, more: str = "") -> Iterator[None]:
    """The same around the end of a restore, whichever the journal in the directory names before that."""
    data_dir = place_of(target).data_dir
    journal = _journal(data_dir)
    with go_on(
        command, data_dir, journal.restore if isinstance(journal, RestoreJournal) else None, ending=True, more=more
    ):
        yield


def way_on(
    journal: RestoreJournal | LogkeepError | None,
    command: str,
    data_dir: Path,
    restore: str | None,
    *,
    ending: bool = False,
    more: str = "",
) -> str:
    """Pure. `journal`: what stands there now, or why nobody can tell."""
    verb, _, flag = command.rpartition(" ")
    where = f"{flag} {shlex.quote(str(data_dir))}{more}"
    both = (
        f"start no server: `{verb} --continue {where}` brings it to its end, `{verb} --rollback {where}` brings back "
        "what was there before"
    )
    if isinstance(journal, LogkeepError):
        return f"how far it had come is not known ({journal}): {both}"
    if journal is None or journal.restore != restore:
        ended = ending and restore is not None  # once more would end an earlier one
        return "what was there before is in place" + ("" if ended else ": run it again")
    if journal.phase in _BETWEEN:
        return both
    if journal.phase is Phase.DONE:
        return f"the restored data is in place; `{verb} --rollback {where}` brings back what was there before"
    return "what was there before is in place: run it again"


_BETWEEN: Final = (Phase.OLD, Phase.NEW)


def _journal(data_dir: Path) -> RestoreJournal | LogkeepError | None:
    try:
        return read_journal(data_dir)
    except LogkeepError as error:
        return error
