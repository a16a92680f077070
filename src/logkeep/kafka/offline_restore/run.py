"""An offline restore as a list of steps.

hold the backup → keep the broker and other restores away → what lies in the directories → plan (`preview` ends here) →
refuse what is not safe → store that it begins → each partition in a task: write, prove, put in place → report and
receipt. Run again, it proves what is there and writes what is missing.
"""

from pathlib import Path

from logkeep.errors import LogkeepError
from logkeep.kafka.disks.directories import look, remembered_starts
from logkeep.kafka.disks.layout import LogDirState as DirectoryStanding
from logkeep.kafka.offline_restore.locks import alone, broker_stopped
from logkeep.kafka.offline_restore.plan import check_room, foresee, unit_of
from logkeep.kafka.offline_restore.receipt import begin_offline, put_report
from logkeep.kafka.offline_restore.safety import check, check_configs, check_starts, check_topics
from logkeep.kafka.offline_restore.staging import bring_back
from logkeep.kafka.offline_restore.task import restore_log
from logkeep.kafka.offline_restore.values import LogWritten, OfflineReport, OfflineRestorePlan, OfflineUnit, OfflineWish
from logkeep.model.findings import Finding, Severity
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.model.work import Engine
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process

_OPERATION = "restore"


def preview(wish: OfflineWish, place: SourceRef, tokens: TokenSource) -> OfflineRestorePlan:
    """What a restore would do, and how; a running broker and missing topics are told, not refused. Writes no file."""
    with reading(place, wish.backup, this_process(tokens()), _OPERATION, tokens) as entry:
        return foresee(place, entry, wish).foreseen


def restore_offline(
    wish: OfflineWish,
    place: SourceRef,
    engine: Engine,
    clock: Clock,
    tokens: TokenSource,
    state: SourceRef | None = None,
) -> OfflineReport:
    """Write the files. Raises TargetUnsafe before anything is changed, RestoreFailed when a disk gives up on the way;
    a log that could not be restored or proven is a problem in the report.

    `state`: where plan and receipt go; the repository itself, unless it may only be read.
    """
    started = rfc3339(clock())
    with (
        reading(place, wish.backup, this_process(tokens()), _OPERATION, tokens) as entry,
        broker_stopped(wish.roots),
        alone(wish.roots),
    ):
        _bring_back(wish)
        prepared = foresee(place, entry, wish)
        foreseen = prepared.foreseen
        check(foreseen, wish)
        check_topics(prepared.image, foreseen.logs)
        check_configs(prepared.image, foreseen.logs)
        check_starts(remembered_starts(wish.roots), foreseen.logs)
        check_room(foreseen.logs)
        stored = begin_offline(state or place, wish, foreseen, clock, tokens)
        try:
            results = _restored([unit_of(log, place, wish) for log in foreseen.logs], engine)
        except LogkeepError as error:
            stored.failed(error, "the restore")
            raise
    findings = (*foreseen.findings, *(f for result in results for f in _findings(result)))
    report = OfflineReport(
        foreseen=foreseen,
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


def _bring_back(wish: OfflineWish) -> None:
    """What a crash left without a directory has it again."""
    for copy in look(wish.roots).copies:
        if copy.standing is DirectoryStanding.DELETED:
            bring_back(Path(copy.copy.directory).parent, *copy.log)


def _findings(result: LogWritten) -> list[Finding]:
    where = f"{result.topic}-{result.partition}"
    found = []
    if result.problem:
        what, remedy = f"it was not restored: {result.problem}", "see to the cause, then run the same again"
        found.append(Finding(code="not-restored", severity=Severity.DAMAGE, where=where, what=what, remedy=remedy))
    if result.markers:
        what = (
            f"{result.markers} transactions were open at the end and are aborted by markers behind it: the log ends at "
            f"{result.end}"
        )
        found.append(Finding(code="transactions-aborted", severity=Severity.NOTE, where=where, what=what))
    if result.cut_batch:
        what = "its end lies inside a batch, which was made anew without its later records"
        found.append(Finding(code="batch-cut", severity=Severity.NOTE, where=where, what=what))
    return found
