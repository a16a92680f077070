"""What to do after a restore of ZooKeeper's directories was stopped, or failed half-way: by how far it had come.

No way on is named that the program does not have. Before the first file is moved there is nothing to go on with.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.cli.signals import as_error
from logkeep.errors import LogkeepError, RestoreFailed
from logkeep.zookeeper.restore.journal import Journal, Phase, read_journal


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
def go_on(command: str, data_dir: Path, restore: str | None = None) -> Iterator[None]:
    """Around what moves files. `command`: the program, its verb, and the flag that a directory is named with.

    `restore`: the one that is at work; None for one that is ended by its journal, whichever that names.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        error = as_error(stop)
        error.remedy = way_on(_journal(data_dir), command, data_dir, restore)
        raise error from None
    except RestoreFailed as failed:
        journal = _journal(data_dir)
        if journal is not None and restore in (None, journal.restore) and journal.phase in (Phase.OLD, Phase.NEW):
            cured = failed.remedy.partition(",")[0]  # behind it stands that it can be continued, and not how
            failed.remedy = f"{cured}; until then {way_on(journal, command, data_dir, restore)}"
        raise


def way_on(journal: Journal | None, command: str, data_dir: Path, restore: str | None) -> str:
    """Pure."""
    verb, _, flag = command.rpartition(" ")
    where = f"{flag} {shlex.quote(str(data_dir))}"
    ours = journal is not None and restore in (None, journal.restore)
    if journal is not None and ours and journal.phase in (Phase.OLD, Phase.NEW):
        return (
            f"start no server: `{verb} --continue {where}` brings it to its end, `{verb} --rollback {where}` brings "
            "back what was there before"
        )
    if journal is not None and ours and journal.phase is Phase.DONE:
        return f"the restored data is in place; `{verb} --rollback {where}` brings back what was there before"
    return "what was there before is in place: run it again"


def _journal(data_dir: Path) -> Journal | None:
    try:
        return read_journal(data_dir)
    except LogkeepError:  # who runs it again, or ends it, is told
        return None
