"""`logkeep zookeeper restore-subtree --resume` and `--undo`: resume or undo a subtree restore, by its journal alone.

Works without a repository. Where one is given, the receipt is updated.
"""

from pathlib import Path

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.zookeeper.restore.subtree_report import SubtreeReport, ended_report
from logkeep.cli.verbs.zookeeper.restore.subtree_session import (
    by_journal,
    name_journal,
    named_hosts,
    new_journal_path,
    opened_session,
    store_done,
    store_stopped,
    store_undone,
)
from logkeep.cli.wiring import opened_repository, restores_place
from logkeep.config.options import JUTE_MAXBUFFER, REPO, RESUME_SUBTREE, SOURCE, UNDO_SUBTREE, ZK_HOSTS
from logkeep.errors import Locked, LogkeepError, UsageError
from logkeep.repository.restores.stored import StoredRestore
from logkeep.zookeeper.subtree.journal import Heading, StoredAs, read_journal
from logkeep.zookeeper.subtree.receipts import find_subtree
from logkeep.zookeeper.subtree.run import SubtreeRunEnd, resume, undo


def end_by_journal(run: Run, backup: str | None) -> SubtreeReport:
    resumed, undone = run[RESUME_SUBTREE], run[UNDO_SUBTREE]
    file = resumed or undone
    if backup is not None or file is None or (resumed and undone):
        raise UsageError("--resume and --undo take only a journal", remedy="give only one of them")
    heading = read_journal(file).heading
    hosts = named_hosts(run) if run[ZK_HOSTS] else heading.hosts
    planned = SubtreeReport(verdict="planned", hosts=hosts, target=heading.top, what=heading.what, dry_run=run.dry_run)
    if run.dry_run:
        return planned
    run.confirm(f"{'resume' if resumed else 'undo'} the changes of {file} in the ensemble at {hosts}?")
    ended = _finish(run, file, hosts, heading)
    return ended_report(planned, ended, verdict="resumed" if resumed else "undone")


def _finish(run: Run, file: Path, hosts: str, heading: Heading) -> SubtreeRunEnd:
    stored, back = _find_receipt(run, heading), run[UNDO_SUBTREE] is not None or bool(heading.undoes)
    try:
        with opened_session(run, hosts) as live:
            forward = run[RESUME_SUBTREE] is not None
            journal = file.absolute() if forward else new_journal_path(run)
            name_journal(run, journal)
            with by_journal(journal):
                ended = resume(live, file) if forward else undo(live, file, journal, run[JUTE_MAXBUFFER])
    except LogkeepError as error:
        if stored is not None and not back and not isinstance(error, Locked):  # that run stores its own end
            store_stopped(run, stored, error)
        raise
    if stored is not None:
        _store_end(run, stored, ended, back=back)
    return ended


def _find_receipt(run: Run, heading: Heading) -> StoredRestore | None:
    """The live tree is what counts: an error of the repository is only a warning."""
    if run[REPO] is None or not isinstance(heading.stored, StoredAs):
        return None
    try:
        place = opened_repository(run).choose(run[SOURCE] or heading.stored.source)
        stored = find_subtree(restores_place(run, place), heading, run.clock, run.token)
    except LogkeepError as error:
        run.console.warn(f"the repository cannot be updated: {error}")
        return None
    if stored is None:
        run.console.warn(f"the repository has no receipt {heading.stored.restore} of this journal, and is not updated")
    return stored


def _store_end(run: Run, stored: StoredRestore, ended: SubtreeRunEnd, *, back: bool) -> None:
    if back:
        store_undone(run, stored, ended)
    else:
        store_done(run, stored, ended)
