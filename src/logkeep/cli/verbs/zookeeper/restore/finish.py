"""`logkeep zookeeper restore --continue` and `--rollback`: complete or undo a restore, by the journal in the directory.

Works without a repository. Where one is given, the receipt is updated too; a failure of that is only a warning.
"""

from typing import Final

from logkeep.cli.frame.execute import Run
from logkeep.cli.verbs.zookeeper.members import given_members
from logkeep.cli.verbs.zookeeper.restore.report import NOT_BEGUN, ZooKeeperRestoreReport
from logkeep.cli.verbs.zookeeper.restore.resume_hints import ending_hints
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
    with ending_hints("logkeep zookeeper restore --data-dir", target):
        ended = continue_restore(target) if forward else roll_back(target)
    stored = _update_receipt(run, ended)
    return _report(ended, stored)


def _check(run: Run) -> None:
    if run[CONTINUE] and run[ROLLBACK]:
        raise UsageError("--continue and --rollback are opposites", remedy="give one of them")
    if run.dry_run:
        raise UsageError("the journal determines what --continue and --rollback do", remedy="leave --dry-run out")
    if run[RESTORE_PLAN] is not None:
        raise UsageError("an unfinished restore is completed by its journal, not by a plan", remedy="leave --plan out")
    if run[TO_ZXID] is not None or run[TO_TIME] is not None:
        raise UsageError("an unfinished restore already has its moment", remedy="leave --to-zxid and --to-time out")
    if len(given_members(run)) > 1:
        raise UsageError(
            "the journal names all members of the restore", remedy="name the --data-dir of any one of them"
        )


def _update_receipt(run: Run, ended: RestoreEnd) -> StoredRestore | None:
    """Update the receipt. The data on disk is what counts: an error of the repository is only a warning."""
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
        run.console.warn(f"the repository could not be updated: {error}")
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
