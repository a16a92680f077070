"""Remedies after an interrupted or failed restore of ZooKeeper's directories, depending on its progress.

Before the first file is moved there is nothing to continue.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from logkeep.cli.frame.signals import as_error
from logkeep.errors import LogkeepError, RestoreFailed
from logkeep.model.shell_words import shell_word
from logkeep.zookeeper.restore.target.directories import place_of
from logkeep.zookeeper.restore.target.journal import Phase, RestoreJournal, read_journal
from logkeep.zookeeper.restore.values import ServerTarget


class Begun:
    """Whether anything was changed yet. The code that changes something sets it, and gives its own remedies."""

    def __init__(self) -> None:
        self.yes = False


@contextmanager
def rerun_hint() -> Iterator[Begun]:
    """Around the whole command: for an interruption before the first change, or after the last."""
    begun = Begun()
    try:
        yield begun
    except KeyboardInterrupt as stop:
        error = as_error(stop)
        ended = "it had already ended: `logkeep receipts list` shows how"
        error.remedy = ended if begun.yes else "nothing was changed: run it again"
        raise error from None


@contextmanager
def resume_hints(
    command: str, data_dir: Path, restore: str | None, *, ending: bool = False, more: str = ""
) -> Iterator[None]:
    """Around what moves files. `command`: the program, its verb, and the flag for a directory.

    `restore`: the running restore; None where it is not known. `ending`: it is being continued or rolled back.
    `more`: other options that the command needs.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        error = as_error(stop)
        error.remedy = next_step(_journal(data_dir), command, data_dir, restore, ending=ending, more=more)
        raise error from None
    except RestoreFailed as failed:
        journal = _journal(data_dir)
        if isinstance(journal, RestoreJournal) and journal.restore == restore and journal.phase in _BETWEEN:
            cured = failed.remedy.partition(",")[0]  # the rest says that it can be continued, but not how
            failed.remedy = f"{cured}; until then {next_step(journal, command, data_dir, restore, more=more)}"
        raise


@contextmanager
def ending_hints(command: str, target: ServerTarget, more: str = "") -> Iterator[None]:
    """The same around --continue and --rollback; the journal in the directory names the restore."""
    data_dir = place_of(target).data_dir
    journal = _journal(data_dir)
    with resume_hints(
        command, data_dir, journal.restore if isinstance(journal, RestoreJournal) else None, ending=True, more=more
    ):
        yield


def next_step(
    journal: RestoreJournal | LogkeepError | None,
    command: str,
    data_dir: Path,
    restore: str | None,
    *,
    ending: bool = False,
    more: str = "",
) -> str:
    """Pure. `journal`: the journal as read now, or the error of reading it."""
    verb, _, flag = command.rpartition(" ")
    where = f"{flag} {shell_word(data_dir)}{more}"
    both = (
        f"start no server: `{verb} --continue {where}` completes it, `{verb} --rollback {where}` puts the "
        "earlier data back"
    )
    if isinstance(journal, LogkeepError):
        return f"its progress is not known ({journal}): {both}"
    if journal is None or journal.restore != restore:
        ended = ending and restore is not None  # a second run would end an earlier restore
        return "the earlier data is in place" + ("" if ended else ": run it again")
    if journal.phase in _BETWEEN:
        return both
    if journal.phase is Phase.DONE:
        return f"the restored data is in place; `{verb} --rollback {where}` puts the earlier data back"
    return "the earlier data is in place: run it again"


_BETWEEN: Final = (Phase.OLD, Phase.NEW)


def _journal(data_dir: Path) -> RestoreJournal | LogkeepError | None:
    try:
        return read_journal(data_dir)
    except LogkeepError as error:
        return error
