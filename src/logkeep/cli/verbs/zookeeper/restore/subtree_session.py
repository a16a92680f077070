"""What a new subtree restore and its resume and undo share: the session, the journal's path, the stored receipt."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.signals import as_error
from logkeep.config.options import AUTH_FILE, QUIET, SUBTREE_JOURNAL, ZK_HOSTS
from logkeep.errors import LogkeepError, UsageError
from logkeep.model.shell_words import shell_word
from logkeep.repository.restores.stored import StoredRestore
from logkeep.zookeeper.restore.run import journal_name
from logkeep.zookeeper.server.client import ZooKeeperSession, session
from logkeep.zookeeper.server.credentials import read_credentials
from logkeep.zookeeper.server.four_letter import parse_address
from logkeep.zookeeper.subtree.journal import check_new
from logkeep.zookeeper.subtree.receipts import note_done, note_stopped, note_undone
from logkeep.zookeeper.subtree.run import SubtreeRunEnd

TIMEOUT_S = 30.0


@contextmanager
def by_journal(journal: Path) -> Iterator[None]:
    """An interruption names the journal, and how to resume or undo the run."""
    try:
        yield
    except KeyboardInterrupt as stop:
        error, named = as_error(stop), shell_word(journal)
        called = "logkeep zookeeper restore-subtree"
        ways = f"`{called} --resume {named}` resumes it, `{called} --undo {named}` undoes it"
        error.remedy = ways if journal.exists() else "nothing was changed: run it again"
        raise error from None


def store_done(run: Run, stored: StoredRestore, ended: SubtreeRunEnd) -> None:
    """The live tree is what counts: an error of the repository is only a warning."""
    _store_note(run, stored, lambda: note_done(stored, ended))


def store_stopped(run: Run, stored: StoredRestore, error: LogkeepError) -> None:
    """An error while storing must not hide why the run stopped."""
    _store_note(run, stored, lambda: note_stopped(stored, error))


def store_undone(run: Run, stored: StoredRestore, ended: SubtreeRunEnd) -> None:
    _store_note(run, stored, lambda: note_undone(stored, ended))


def _store_note(run: Run, stored: StoredRestore, note: Callable[[], object]) -> None:
    try:
        note()
    except LogkeepError as problem:
        run.console.warn(f"the receipt of restore {stored.id} cannot be stored: {problem}")


def named_hosts(run: Run) -> str:
    given: tuple[str, ...] = run[ZK_HOSTS]
    hosts = [text.rpartition("=")[2] for text in given]
    if not hosts:
        raise UsageError("no server is given", remedy="pass --zk-host HOST:PORT, once for each that may be asked")
    for host in hosts:
        parse_address(host)
    return ",".join(hosts)


@contextmanager
def opened_session(run: Run, hosts: str) -> Iterator[ZooKeeperSession]:
    file = run[AUTH_FILE]
    credentials = () if file is None else read_credentials(file)
    with session(hosts, TIMEOUT_S, credentials) as opened:
        yield opened


def new_journal_path(run: Run) -> Path:
    named = run[SUBTREE_JOURNAL]
    path = named or Path(f"logkeep-subtree-{journal_name(run.clock(), run.token)}.journal")
    check_new(path)
    return path.absolute()


def name_journal(run: Run, path: Path) -> None:
    """Before the first change, so that the user can resume or undo a run that dies."""
    if not run[QUIET]:
        run.console.note(f"its journal is {path}")
