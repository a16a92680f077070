"""The steps of an offline restore.

hold the backup → lock out the broker and other restores → read the directories → plan (`preview` ends here) → refuse
what is not safe → store the plan → each partition in a task: write, prove, move into place → report and receipt.
Another run proves existing files and writes missing ones.
"""

from collections.abc import Sequence
from pathlib import Path

from logkeep.directories.folder import Folder
from logkeep.errors import LogkeepError
from logkeep.kafka.disks.directories import checkpointed_starts, list_directories
from logkeep.kafka.disks.layout import LogDirState
from logkeep.kafka.offline_restore.locks import broker_stopped, exclude_other_restores
from logkeep.kafka.offline_restore.log_folders import check_owners, open_root
from logkeep.kafka.offline_restore.plan import check_room, plan_offline_restore, unit_of
from logkeep.kafka.offline_restore.receipt import begin_offline, put_report
from logkeep.kafka.offline_restore.safety import check_configs, check_directories, check_starts, check_topics
from logkeep.kafka.offline_restore.staging import leftovers, recover_directory
from logkeep.kafka.offline_restore.task import restore_log
from logkeep.kafka.offline_restore.values import (
    LogWritten,
    OfflineReport,
    OfflineRestoreOptions,
    OfflineRestorePlan,
    OfflineUnit,
)
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.model.work import Engine
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process

_OPERATION = "restore"


def preview(options: OfflineRestoreOptions, place: SourceRef, tokens: TokenSource) -> OfflineRestorePlan:
    """The plan of a restore; it reports a running broker and missing topics, and refuses nothing. Writes no file."""
    with reading(place, options.backup, this_process(tokens()), _OPERATION, tokens) as entry:
        return plan_offline_restore(place, entry, options).plan


def restore_offline(
    options: OfflineRestoreOptions,
    place: SourceRef,
    engine: Engine,
    clock: Clock,
    tokens: TokenSource,
    state: SourceRef | None = None,
) -> OfflineReport:
    """Write the files. Raises TargetUnsafe before anything is changed, RestoreFailed when a disk fails; the report
    names logs that could not be restored or proven.

    `state`: the source for plan and receipt; the repository itself, unless it is read-only.
    """
    started = rfc3339(clock())
    roots = [open_root(root) for root in options.roots]
    with (
        reading(place, options.backup, this_process(tokens()), _OPERATION, tokens) as entry,
        broker_stopped(roots),
        exclude_other_restores(roots),
    ):
        _recover_directories(options, roots)
        prepared = plan_offline_restore(place, entry, options)
        plan = prepared.plan
        _check_owners(options, roots, plan)
        check_directories(plan, options)
        check_topics(prepared.image, plan.logs)
        check_configs(prepared.image, plan.logs)
        check_starts(checkpointed_starts(options.roots), plan.logs)
        check_room(plan.logs)
        stored = begin_offline(state or place, options, plan, clock, tokens)
        try:
            results = _restored([unit_of(log, place, options) for log in plan.logs], engine)
        except LogkeepError as error:
            stored.failed(error, "the restore")
            raise
    findings = (*plan.findings, *(f for result in results for f in _findings(result)))
    report = OfflineReport(
        plan=plan,
        logs=tuple(results),
        findings=findings,
        started=started,
        finished=rfc3339(clock()),
        restore=stored.id,
    )
    put_report(stored, report)
    return report


def _restored(units: list[OfflineUnit], engine: Engine) -> list[LogWritten]:
    return engine.map(
        restore_log, units, LogWritten, label="write segment files", weight=lambda u: u.planned.size_bytes
    )


def _recover_directories(options: OfflineRestoreOptions, roots: Sequence[Folder]) -> None:
    """Recover partitions that a crash left without a directory."""
    for root in roots:
        check_owners(root, ())
    opened = dict(zip(options.roots, roots, strict=True))
    for copy in list_directories(options.roots).copies:
        if copy.state is LogDirState.DELETED:
            recover_directory(opened[Path(copy.copy.directory).parent], *copy.log)


def _check_owners(options: OfflineRestoreOptions, roots: Sequence[Folder], plan: OfflineRestorePlan) -> None:
    """Raises OtherOwner where a task could not read or move what is there."""
    for path, root in zip(options.roots, roots, strict=True):
        here = [log for log in plan.logs if log.root == str(path)]
        left = [name for log in here for name in leftovers(root, log.topic, log.partition)]
        check_owners(root, [*(log.name for log in here), *left])


def _findings(result: LogWritten) -> list[Finding]:
    where = f"{result.topic}-{result.partition}"
    found = []
    if result.problem:
        what, remedy = f"it was not restored: {result.problem}", "fix the cause, then run the same command again"
        found.append(Finding(code="not-restored", severity=Severity.DAMAGE, where=where, what=what, remedy=remedy))
    if result.markers:
        what = (
            f"{plural(result.markers, 'transaction was', 'transactions were')} open at the end, and added markers "
            f"abort what was open: the log ends at "
            f"{result.end}"
        )
        found.append(Finding(code="transactions-aborted", severity=Severity.NOTE, where=where, what=what))
    if result.cut_batch:
        what = "its end is inside a batch, which was rewritten without its later records"
        found.append(Finding(code="batch-cut", severity=Severity.NOTE, where=where, what=what))
    return found
