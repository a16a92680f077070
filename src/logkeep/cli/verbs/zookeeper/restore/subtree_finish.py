"""`logkeep zookeeper restore-subtree --resume` and `--undo`: the end of a subtree's restore, by its journal alone.

Works without a repository. Where the one that has the receipt is named, it is told how the restore ended.
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
    tell_done,
    tell_stopped,
    tell_undone,
)
from logkeep.cli.wiring import opened_repository, restores_place
from logkeep.config.options import JUTE_MAXBUFFER, REPO, RESUME_SUBTREE, SOURCE, UNDO_SUBTREE, ZK_HOSTS
from logkeep.errors import Locked, LogkeepError, UsageError
from logkeep.repository.restores.stored import StoredRestore
from logkeep.zookeeper.subtree.journal import Heading, StoredAs, read_journal
from logkeep.zookeeper.subtree.receipts import find_subtree
from logkeep.zookeeper.subtree.run import SubtreeRunEnd, resume, undo


def end_by_journal(run: Run, backup: str | None) -> SubtreeReport:
    resumed, taken_back = run[RESUME_SUBTREE], run[UNDO_SUBTREE]
    file = resumed or taken_back
    if backup is not None or file is None or (resumed and taken_back):
        raise UsageError("--resume and --undo go with a journal and nothing else", remedy="name one of them alone")
    heading = read_journal(file).heading
    hosts = named_hosts(run) if run[ZK_HOSTS] else heading.hosts
    planned = SubtreeReport(verdict="planned", hosts=hosts, target=heading.top, what=heading.what, dry_run=run.dry_run)
    if run.dry_run:
        return planned
    run.confirm(f"{'go on with' if resumed else 'take back'} the changes of {file} in the ensemble at {hosts}?")
    ended = _ended(run, file, hosts, heading)
    return ended_report(planned, ended, verdict="resumed" if resumed else "undone")


def _ended(run: Run, file: Path, hosts: str, heading: Heading) -> SubtreeRunEnd:
    stored, back = _stored(run, heading), run[UNDO_SUBTREE] is not None or bool(heading.undoes)
    try:
        with opened_session(run, hosts) as live:
            forward = run[RESUME_SUBTREE] is not None
            journal = file.absolute() if forward else new_journal_path(run)
            name_journal(run, journal)
            with by_journal(journal):
                ended = resume(live, file) if forward else undo(live, file, journal, run[JUTE_MAXBUFFER])
    except LogkeepError as error:
        if stored is not None and not back and not isinstance(error, Locked):  # that run tells its own end
            tell_stopped(run, stored, error)
        raise
    if stored is not None:
        _tell(run, stored, ended, back=back)
    return ended


def _stored(run: Run, heading: Heading) -> StoredRestore | None:
    """The live tree is what counts: trouble with the repository is said, and nothing else."""
    if run[REPO] is None or not isinstance(heading.stored, StoredAs):
        return None
    try:
        place = opened_repository(run).choose(run[SOURCE] or heading.stored.source)
        stored = find_subtree(restores_place(run, place), heading, run.clock, run.token)
    except LogkeepError as error:
        run.console.warn(f"the repository cannot be told: {error}")
        return None
    if stored is None:
        run.console.warn(f"the repository has no receipt {heading.stored.restore} of this journal, and is not told")
    return stored


def _tell(run: Run, stored: StoredRestore, ended: SubtreeRunEnd, *, back: bool) -> None:
    if back:
        tell_undone(run, stored, ended)
    else:
        tell_done(run, stored, ended)
