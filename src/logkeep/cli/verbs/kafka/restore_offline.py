"""`logkeep kafka restore --to-log-dirs`: restore a backup as segment files of a stopped broker."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.terminal.text import plural
from logkeep.cli.verbs.kafka.restore_report import KafkaRestoreReport, OfflineFile, OfflinePart, confirm_plan
from logkeep.cli.wiring import chosen_engine, restores_place, use_directories
from logkeep.config.options import (
    BROKERS,
    EXCLUDE,
    HERE_ONLY,
    PARTITIONS,
    RENAME,
    REPLACE_RECORDS,
    REPO,
    TO_LOG_DIRS,
    TOPICS,
    UNTIL_OFFSET,
    UNTIL_TIME,
)
from logkeep.errors import UsageError
from logkeep.kafka.disks.directories import log_dirs
from logkeep.kafka.offline_restore.receipt import row_of
from logkeep.kafka.offline_restore.run import preview, restore_offline
from logkeep.kafka.offline_restore.values import (
    LogEnd,
    LogWritten,
    OfflineReport,
    OfflineRestoreLog,
    OfflineRestoreOptions,
    OfflineRestorePlan,
)
from logkeep.kafka.record.backup_view import KafkaBackupView, view_backup
from logkeep.kafka.restore.plan.refusals import refuse_damage, refuse_nothing_before
from logkeep.kafka.restore.plan.selection import RestoreSelection, SelectedLogs, select_logs
from logkeep.kafka.restore.plan.torn_transactions import torn_findings
from logkeep.kafka.restore.prepare import survey_logs
from logkeep.kafka.restore.transaction_check import compare_transactions
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId
from logkeep.model.segments import LogName
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.restores import RestoredPartition

_WHY = "files hold every record at its own offset"


def restore_to_log_dirs(run: Run, place: SourceRef, entry: BackupEntry) -> KafkaRestoreReport:
    """The dry run shows the whole procedure; a run writes the files and proves them."""
    options = _offline_options(run, place, entry)
    plan = preview(options, place, run.token)
    if run.dry_run:
        return _plan_report(place.source, plan)
    question = f"write the files of {plural(len(plan.logs), 'partition')}?"
    confirm_plan(run, _plan_report(place.source, plan), question, plan.cluster_id if plan.own_cluster else "")
    use_directories(run, *options.roots, written=True)
    engine = chosen_engine(run, plan.size_bytes)
    state = restores_place(run, place, create=True)
    return _result_report(place.source, restore_offline(options, place, engine, run.clock, run.token, state))


def _offline_options(run: Run, place: SourceRef, entry: BackupEntry) -> OfflineRestoreOptions:
    named: tuple[str, ...] = run[TO_LOG_DIRS]
    choice = RestoreSelection(
        run[TOPICS], run[EXCLUDE], run[RENAME], run[PARTITIONS], run[UNTIL_OFFSET],
        configured=not run.settings.typed(TOPICS),
    )  # fmt: skip
    roots, view = log_dirs(named), view_backup(place, entry)
    chosen = select_logs(view.record, view.manifest.cut, choice)
    ends = _ends(run, view, chosen)
    return OfflineRestoreOptions(
        backup=BackupId(entry.id),
        roots=roots,
        selection=choice,
        ends=tuple(LogEnd(log.name, log.partition, end) for log, end in ends.items()),
        torn=_torn(run, view, chosen, ends),
        until_ms=run[UNTIL_TIME],
        repo=run.repo() if run.settings.typed(REPO) else "",
        replace=run[REPLACE_RECORDS],
        here_only=run[HERE_ONLY],
        brokers=_brokers(run[BROKERS]),
    )


def _ends(run: Run, view: KafkaBackupView, chosen: SelectedLogs) -> dict[LogName, int]:
    """The end of each log by --until-time. Raises UsageError when that is before all records, Damaged."""
    until = run[UNTIL_TIME]
    if until is None:
        return {}
    found, _ = survey_logs(view, chosen, until, lambda total: chosen_engine(run, total))
    refuse_damage(list(found.values()))
    refuse_nothing_before(list(found.values()))
    return {log: each.end for log, each in found.items()}


def _torn(run: Run, view: KafkaBackupView, chosen: SelectedLogs, ends: Mapping[LogName, int]) -> tuple[Finding, ...]:
    """Transactions that these ends tear. Files hold whole logs: they cannot be left out."""
    if run[UNTIL_TIME] is None and not run[UNTIL_OFFSET]:
        return ()
    wanted = {log.log: min(log.end, ends.get(log.log, log.end)) for log in chosen.logs}
    tears, not_compared = compare_transactions(view, chosen, wanted, chosen_engine(run, 0))
    remedy = "choose another time or offset; a restore to a running cluster can leave them out"
    return (
        *(msgspec.structs.replace(f, remedy=remedy) for f in torn_findings(tears.torn, left_out=False)),
        *not_compared,
    )


def _brokers(texts: tuple[str, ...]) -> tuple[int, ...]:
    numbers = [number for text in texts for number in text.split(",")]
    if not all(number.isascii() and number.isdecimal() for number in numbers):
        raise UsageError(f"--brokers {','.join(texts)} names no brokers", remedy="give their ids: --brokers 1,2,3")
    return tuple(map(int, numbers))


def _plan_report(source: str, plan: OfflineRestorePlan) -> KafkaRestoreReport:
    return KafkaRestoreReport(
        source=source,
        backup=plan.backup,
        restore=None,
        cluster_id=plan.cluster_id,
        offsets="preserve",
        why=_WHY,
        topics=tuple(dict.fromkeys(log.topic for log in plan.logs)),
        records=sum(s.records for log in plan.logs for s in log.segments),
        bytes=plan.size_bytes,
        seconds=0.0,
        verdict="planned",
        partitions=tuple(_plan_row(log) for log in plan.logs),
        groups=(),
        group_names=(),
        refusals=(),
        findings=plan.findings,
        offline=_offline_part(plan),
        dry_run=True,
    )


def _plan_row(log: OfflineRestoreLog) -> RestoredPartition:
    return RestoredPartition(
        source_topic=log.log.name,
        source_partition=log.log.partition,
        topic=log.topic,
        partition=log.partition,
        mode="preserve",
        records=sum(s.records for s in log.segments),
        bytes=log.size_bytes,
        end=log.end,
        outcome="planned",
        detail=f"[{log.start}, {log.end})",
    )


def _offline_part(plan: OfflineRestorePlan, written: tuple[LogWritten, ...] = ()) -> OfflinePart:
    return OfflinePart(
        running=plan.running,
        elsewhere=plan.elsewhere,
        procedure=plan.procedure,
        files=tuple(
            OfflineFile(path=f"{log.directory}/{f.name}", size=f.size_bytes, records=f.records, sha256=f.sha256)
            for log in written
            for f in log.files
        ),
    )


def _result_report(source: str, done: OfflineReport) -> KafkaRestoreReport:
    """The plan with its results."""
    took = datetime.fromisoformat(done.finished) - datetime.fromisoformat(done.started)
    return msgspec.structs.replace(
        _plan_report(source, done.plan),
        restore=done.restore,
        records=done.records,
        bytes=sum(log.size_bytes for log in done.logs),
        seconds=took.total_seconds(),
        verdict="proven" if done.good else "failed",
        partitions=tuple(row_of(log) for log in done.logs),
        findings=done.findings,
        offline=_offline_part(done.plan, done.logs),
        dry_run=False,
    )
