"""`logkeep zookeeper restore --continue` and `--rollback`: the end of a restore, by the journal in the directory.

Works without a repository. Where one is named, its receipts tell of it too; where that fails, it is said, and nothing
else changes.
"""

from typing import Final

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.zookeeper.members import given_members
from logkeep.cli.verbs.zookeeper.restore.report import NOT_BEGUN, ZooKeeperRestoreReport
from logkeep.cli.verbs.zookeeper.restore.resume_hints import go_on_ending
from logkeep.cli.wiring import chosen_source, restores_place
from logkeep.config.options import CONTINUE, REPO, RESTORE_PLAN, ROLLBACK, SOURCE, TO_TIME, TO_ZXID
from logkeep.errors import LogkeepError, UsageError
from logkeep.repository.restores.stored import StoredRestore
from logkeep.zookeeper.restore.finish import RestoreEnd, RestoreEndState, continue_restore, roll_back
from logkeep.zookeeper.restore.receipts import find, note_continued
from logkeep.zookeeper.restore.values import ServerTarget

_VERDICTS: Final = {
    RestoreEndState.NEW: "continued",
    RestoreEndState.OLD: "rolled-back",
    RestoreEndState.NOTHING: NOT_BEGUN,
}


def end(run: Run) -> ZooKeeperRestoreReport:
    forward = run[CONTINUE]
    _check(run)
    given = given_members(run)[0]
    target = ServerTarget(data_dir=given.data_dir, log_dir=given.log_dir, host=given.host)
    word = "end the interrupted restore" if forward else "undo the last restore"
    run.confirm(f"{word} of {given.data_dir}?")
    with go_on_ending("logkeep zookeeper restore --data-dir", target):
        ended = continue_restore(target) if forward else roll_back(target)
    stored = _told_to_repository(run, ended)
    return _report(ended, stored)


def _check(run: Run) -> None:
    if run[CONTINUE] and run[ROLLBACK]:
        raise UsageError("--continue and --rollback are opposites", remedy="give one of them")
    if run.dry_run:
        raise UsageError("what --continue and --rollback do stands in the journal", remedy="leave --dry-run out")
    if run[RESTORE_PLAN] is not None:
        raise UsageError("a restore that was begun is ended by its journal, not by a plan", remedy="leave --plan out")
    if run[TO_ZXID] is not None or run[TO_TIME] is not None:
        raise UsageError("a restore that was begun has its moment already", remedy="leave --to-zxid and --to-time out")
    if len(given_members(run)) > 1:
        raise UsageError(
            "the journal knows all members of the restore", remedy="name the --data-dir of any one of them"
        )


def _told_to_repository(run: Run, ended: RestoreEnd) -> StoredRestore | None:
    """The data on disk is what counts: trouble with the repository is said, and nothing else."""
    if run[REPO] is None:
        return None
    try:
        state = restores_place(run, chosen_source(run))
        stored = find(state, ended.restore, run.clock, run.token)
        if stored is None:
            run.console.warn(f"source {run[SOURCE] or state.source} has no restore with the journal {ended.restore}")
        elif ended.outcome is not RestoreEndState.NEW:
            stored.abort("rolled back by its user")
        else:
            note_continued(stored)
    except LogkeepError as error:
        run.console.warn(f"the repository could not be told: {error}")
        return None
    return stored


def _report(ended: RestoreEnd, stored: StoredRestore | None) -> ZooKeeperRestoreReport:
    return ZooKeeperRestoreReport(
        source=stored.state.source if stored else None,
        backup=stored.plan.backup if stored else None,
        restore=stored.id if stored else None,
        journal=ended.restore,
        verdict=_VERDICTS[ended.outcome],
        tree=None,
        targets=(),
        findings=ended.findings,
        unchecked=ended.unchecked,
        refusals=(),
        data_dirs=ended.data_dirs,
        kept=ended.kept,
        next_steps=ended.next_steps,
        dry_run=False,
    )
