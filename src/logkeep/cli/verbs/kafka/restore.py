"""`logkeep kafka restore`: restore a backup into a running cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from logkeep.application.kafka.cluster_topics import ClusterTopics
from logkeep.application.kafka.cut_document import ParticipantCut, read_cut
from logkeep.application.kafka.restore import AppendedRecords, TransitRestore, restore_selection
from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.next_step import NextStep
from logkeep.cli.terminal.text import plural
from logkeep.cli.verbs.kafka.backup import client_settings
from logkeep.cli.verbs.kafka.datasets.restore_from import NOT_RESUMED, imported, refuse_without_from
from logkeep.cli.verbs.kafka.declarations import RESTORE
from logkeep.cli.verbs.kafka.restore_report import (
    BAD,
    KafkaRestoreReport,
    confirm_plan,
    plan_report,
    restore_code,
    restore_text,
    result_report,
)
from logkeep.cli.verbs.next_steps import after_restore
from logkeep.cli.wiring import (
    chosen_engine,
    chosen_source,
    named_backup,
    refuse_contradictions,
    restores_place,
    stored_options,
)
from logkeep.config.option import Option
from logkeep.config.options import (
    BOOTSTRAP_SERVERS,
    BROKERS,
    BY_RECORD,
    EXCLUDE,
    HERE_ONLY,
    INTO_EXISTING,
    ISOLATION,
    KEEP_ALL,
    LIMIT_PRODUCE,
    NO_PROOF,
    OFFSETS,
    PARTITIONS,
    QUIET,
    RENAME,
    REPARTITION,
    REPLACE_RECORDS,
    REPLICATION_FACTOR,
    RESTORE_FROM,
    RESTORED_GROUPS,
    RESUME_RESTORE,
    STATE_DIR,
    TO_LOG_DIRS,
    TOPIC_SELECTION,
    TOPICS,
    TRANSACTIONS,
    UNTIL_OFFSET,
    UNTIL_TIME,
    WHAT,
    Options,
)
from logkeep.errors import Interrupted, LogkeepError, TargetUnsafe, UsageError, VerificationFailed
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.record.backup_view import KafkaBackupView, view_backup
from logkeep.kafka.record.documents import KIND
from logkeep.kafka.restore.facts.units import Offsets, RestoreIsolation
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.kafka.restore.plan.torn_transactions import TORN_CODES
from logkeep.kafka.restore.plan.values import DEFAULT_PARTS, PARTS, PlanOptions, RestorePlan
from logkeep.kafka.restore.prepare import ClockAndTokens, KafkaRestoreOptions, PreparedKafkaRestore, prepare
from logkeep.kafka.restore.run import KafkaRestore
from logkeep.kafka.restore.write import write_label
from logkeep.model.findings import Severity
from logkeep.model.ids import BackupId, RestoreId
from logkeep.model.work import EngineFor
from logkeep.reports.backups import health_of, read_source
from logkeep.repository.backups.holds import reading
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import Owner, is_alive, is_dead, this_process
from logkeep.repository.restores import RestoreRow, RestoreState, list_restores


def _metrics(outcome: CommandOutcome[KafkaRestoreReport]) -> Iterator[MetricSample]:
    report = outcome.report
    source = report.source if report else outcome.source
    good = report is not None and report.verdict not in BAD
    yield sample("logkeep_restore_duration_seconds", outcome.duration.total_seconds(), source=source)
    yield sample("logkeep_restore_success", 1 if good else 0, source=source)
    if report is not None:
        yield sample("logkeep_restore_records", report.records, source=source)
        yield sample("logkeep_restore_size_bytes", report.bytes, source=source)
    if good:
        yield sample("logkeep_restore_last_success_timestamp_seconds", outcome.ended.timestamp(), source=source)


_STORED_OPTIONS: Options = (
    *TOPIC_SELECTION, RENAME, PARTITIONS, REPARTITION, UNTIL_TIME, UNTIL_OFFSET, OFFSETS, ISOLATION, WHAT,
    RESTORED_GROUPS,
)  # fmt: skip
_PLANNING = (*_STORED_OPTIONS, BY_RECORD, TRANSACTIONS, INTO_EXISTING, REPLICATION_FACTOR, KEEP_ALL, NO_PROOF)
_ONLINE: Options = (
    BOOTSTRAP_SERVERS, REPARTITION, BY_RECORD, TRANSACTIONS, OFFSETS, ISOLATION, WHAT, RESTORED_GROUPS, INTO_EXISTING,
    REPLICATION_FACTOR, RESUME_RESTORE, KEEP_ALL, NO_PROOF, LIMIT_PRODUCE,
)  # fmt: skip
"""Options that have no effect on a restore into files."""
_NOT_FOR_CUTS: Options = (
    TOPICS, EXCLUDE, RENAME, PARTITIONS, REPARTITION, UNTIL_TIME, UNTIL_OFFSET, INTO_EXISTING, WHAT, RESTORED_GROUPS,
)  # fmt: skip
_OFFLINE: Options = (REPLACE_RECORDS, HERE_ONLY, BROKERS)
"""Options that have no effect on any other restore."""


def _next_step(run: Run, report: KafkaRestoreReport) -> NextStep | None:
    """The receipt of a restore with --from is removed with its scratch repository, unless it is kept elsewhere."""
    if run[RESTORE_FROM] is not None and run[STATE_DIR] is None:
        return None
    ready = bool(report.groups) and report.verdict not in BAD
    return after_restore(run, report, "start the consumers; the receipt says what was proven" if ready else None)


@verb(
    RESTORE,
    next_step=_next_step,
    report=KafkaRestoreReport,
    text=restore_text,
    exit_code=restore_code,
    metrics=_metrics,
)
def restore(run: Run, backup: str | None) -> KafkaRestoreReport:
    refuse_contradictions(run)
    if (dataset := run[RESTORE_FROM]) is not None:
        return _restore_from(run, dataset, backup)
    refuse_without_from(run)
    resumed = run[RESUME_RESTORE]
    named = named_backup(backup, "logkeep kafka restore") if resumed is None else ""
    return _restore(run, chosen_source(run), named, resumed)


def _restore_from(run: Run, dataset: str, backup: str | None) -> KafkaRestoreReport:
    """The import's findings come first: they are about what the archive could not hold."""
    found = imported(run, dataset, backup)
    done = _restore(run, found.place, "latest", None)
    return msgspec.structs.replace(done, imported=True, findings=(*found.findings, *done.findings))


def _restore(run: Run, place: SourceRef, named: str, resumed: int | None) -> KafkaRestoreReport:
    if run[TO_LOG_DIRS]:
        return _restore_offline(run, place, named)
    if (other := _typed_flag(run, _OFFLINE)) is not None:
        raise UsageError(f"{other} is only for files of a broker", remedy="name its directories with --to-log-dirs")
    settings = client_settings(run)
    if resumed is not None:
        return _resume(run, place, settings, RestoreId(resumed))
    return restore_backup(run, place, settings, named, _restore_options(run), stored_options(run, _STORED_OPTIONS))


def restore_backup(
    run: Run,
    place: SourceRef,
    settings: ClientSettings,
    backup: str,
    options: KafkaRestoreOptions,
    typed: dict[str, str],
) -> KafkaRestoreReport:
    """Plan, ask, restore. With --dry-run only the plan. `typed` is stored with the plan."""
    entry = read_source(place, run.clock()).completed(backup)
    _refuse_damaged(place, BackupId(entry.id))
    with reading(place, BackupId(entry.id), this_process(run.token()), "restore", run.token) as held:
        view = view_backup(place, held)
        cut = application_cut(run, view)
        options = options if cut is None else replace(options, selection=restore_selection(cut, view.manifest.cut))
        engines = restore_engines(run, prove=options.plan.prove)
        prepared = prepare(view, options, settings, engines, ClockAndTokens(run.clock, run.token))
        if run.dry_run:
            return plan_report(place.source, prepared)
        _confirm_plan(run, prepared)
        state = restores_place(run, place, create=True)
        transit = TransitRecords(settings)
        task = KafkaRestore(place, state, settings, run.clock, run.token, transit.append)
        with _naming_restore(run) as begun:
            done = task.begin(prepared, options, engines(prepared.plan.bytes), typed, begun=begun)
        return _with_appended(result_report(place.source, done), cut, transit.appended)


def _restore_offline(run: Run, place: SourceRef, backup: str) -> KafkaRestoreReport:
    from logkeep.cli.verbs.kafka.restore_offline import restore_to_log_dirs  # noqa: PLC0415 - only this way needs it

    if (other := _typed_flag(run, _ONLINE)) is not None:
        raise UsageError(f"{other} is only for a running cluster, and --to-log-dirs is for a stopped broker")
    entry = read_source(place, run.clock()).completed(backup)
    _refuse_damaged(place, BackupId(entry.id))
    if read_cut(place, read_manifest(place, entry)) is not None:
        raise UsageError(
            "the backup has the cut of an application, whose records in transit must be appended by a broker",
            subject=f"backup {entry.id}",
            remedy="restore it into a running cluster, without --to-log-dirs",
        )
    return restore_to_log_dirs(run, place, entry)


def _typed_flag(run: Run, options: Sequence[Option[Any]]) -> str | None:
    """The first of these flags that the user typed."""
    return next((o.spellings()[0].flag for o in options if run.settings.typed(o)), None)


def _resume(run: Run, place: SourceRef, settings: ClientSettings, restore_id: RestoreId) -> KafkaRestoreReport:
    """The stored plan is carried out; options that change it are refused."""
    if run.dry_run:
        raise UsageError("a resumed restore already has its plan", remedy="leave --dry-run out")
    if (other := _typed_flag(run, _PLANNING)) is not None:
        raise UsageError(f"a resumed restore already has its plan: {other} cannot change it")
    transit = TransitRecords(settings)
    task = KafkaRestore(place, restores_place(run, place), settings, run.clock, run.token, transit.append)
    stored = task.stored(restore_id)
    backup = BackupId(stored.document.backup)
    with reading(place, backup, this_process(run.token()), "restore", run.token), _naming_restore(run) as begun:
        view = task.view(stored)
        if not stored.ended_well:
            begun(restore_id)
        done = task.resume(stored, view, restore_engines(run, prove=stored.plan.prove), run[LIMIT_PRODUCE])
        cut = read_cut(place, view.manifest)
    if stored.ended_well and not run[QUIET]:
        run.console.note(
            f"restore {restore_id} had already ended: nothing was sent, target and archive were compared again"
        )
    return _with_appended(result_report(place.source, done), cut, transit.appended)


def _with_appended(
    report: KafkaRestoreReport, cut: ParticipantCut | None, appended: tuple[AppendedRecords, ...]
) -> KafkaRestoreReport:
    """A transaction of the application that the cut tears is whole again: its other records are in transit."""
    if cut is None:
        return report
    findings = tuple(
        msgspec.structs.replace(f, severity=Severity.NOTE) if f.code in TORN_CODES else f for f in report.findings
    )
    return msgspec.structs.replace(report, appended=appended, findings=findings)


def application_cut(run: Run, view: KafkaBackupView) -> ParticipantCut | None:
    """The cut of the application whose backup this is. Raises UsageError for options that would not restore it."""
    cut = read_cut(view.place, view.manifest)
    if cut is None:
        return None
    if (other := _typed_flag(run, _NOT_FOR_CUTS)) is not None:
        raise UsageError(
            f"{other} cannot be used: the backup has the cut of application {cut.application}, which is restored whole",
            remedy=f"leave {other} out, or restore another backup",
        )
    return cut


@dataclass
class TransitRecords:
    """Appends records that were produced inside the cut and not read yet. Those that are there are not sent again."""

    settings: ClientSettings
    appended: tuple[AppendedRecords, ...] = ()

    def append(self, view: KafkaBackupView, plan: RestorePlan) -> None:
        cut = read_cut(view.place, view.manifest)
        if cut is not None:
            with Cluster(self.settings) as cluster:
                topics = ClusterTopics(cluster, self.settings)
                self.appended = TransitRestore(view, cut, topics, plan.offsets is Offsets.PRESERVE).run()


@contextmanager
def _naming_restore(run: Run) -> Iterator[Callable[[RestoreId], None]]:
    """Name the id at the start and with every later error, so that the user can resume or abort the restore."""
    begun_ids: list[RestoreId] = []

    def begun(restore_id: RestoreId) -> None:
        begun_ids.append(restore_id)
        if not run[QUIET] and run[RESTORE_FROM] is None:
            run.console.note(f"restore {restore_id} begins; to resume it after an interruption:")
            run.console.note(f"  logkeep kafka restore --resume {restore_id}")

    try:
        yield begun
    except LogkeepError as error:
        if begun_ids and run[RESTORE_FROM] is not None:
            error.remedy = NOT_RESUMED if isinstance(error, Interrupted) else f"{error.remedy}; then {NOT_RESUMED}"
        elif begun_ids:
            ways = f"`kafka restore --resume {begun_ids[0]}` resumes it, `kafka restore abort {begun_ids[0]}` aborts it"
            error.remedy = ways if isinstance(error, Interrupted) else f"{error.remedy}; then {ways}"
        raise


def restore_engines(run: Run, *, prove: bool) -> EngineFor:
    """Engines for a number of archived bytes: with a proof each of them is sent and compared."""
    return lambda total_bytes: chosen_engine(run, total_bytes * (2 if prove else 1), work=write_label(prove=prove))


def _refuse_damaged(place: SourceRef, backup_id: BackupId) -> None:
    verdict = health_of(place).get(backup_id)
    if verdict is not None and verdict.damaged:
        raise VerificationFailed(
            f"a verification at level {verdict.level} found this backup damaged",
            subject=f"backup {backup_id}",
            remedy="restore another backup; or repair the damaged objects, verify again, and restore then",
        )


def _restore_options(run: Run) -> KafkaRestoreOptions:
    parts = tuple(part for text in run[WHAT] for part in text.split(",") if part) or DEFAULT_PARTS
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise UsageError(f"--what {unknown[0]} is unknown", remedy=f"choose among {', '.join(PARTS)}")
    if "groups" in parts and "data" not in parts:
        raise UsageError(
            "offsets of groups are restored together with their records",
            remedy="add data to --what; or set groups alone with `logkeep kafka groups restore`",
        )
    if run[BY_RECORD] and run[UNTIL_TIME] is None:
        raise UsageError("--by-record needs a point in time", remedy="give one with --until-time")
    if run[TRANSACTIONS] == "whole" and ("data" not in parts or (run[UNTIL_TIME] is None and not run[UNTIL_OFFSET])):
        raise UsageError(
            "--transactions whole needs records and a point in time: nothing else tears a transaction",
            remedy="give one with --until-time or --until-offset, or leave --transactions out",
        )
    asked = run[OFFSETS]
    plan_options = PlanOptions(
        offsets=None if asked == "auto" else Offsets(asked),
        isolation=RestoreIsolation(run[ISOLATION]),
        parts=tuple(part for part in PARTS if part in parts),
        groups=run[RESTORED_GROUPS],
        into_existing=run[INTO_EXISTING],
        replication_factor=run[REPLICATION_FACTOR],
        prove=not run[NO_PROOF],
        until_ms=run[UNTIL_TIME],
        by_record=run[BY_RECORD],
        keep_all=run[KEEP_ALL],
        whole_transactions=run[TRANSACTIONS] == "whole",
    )
    choice = RestoreSelection(
        run[TOPICS], run[EXCLUDE], run[RENAME], run[PARTITIONS], run[UNTIL_OFFSET], run[REPARTITION],
        configured=not run.settings.typed(TOPICS),
    )  # fmt: skip
    return KafkaRestoreOptions(choice, plan_options, run[LIMIT_PRODUCE])


def _confirm_plan(run: Run, prepared: PreparedKafkaRestore) -> None:
    """Refuse what is unsafe, show the plan, ask. To write to the source cluster itself, its id must be typed."""
    if prepared.refusals:
        raise _refusal(run, prepared)
    target = prepared.target
    planned = plan_report(prepared.view.place.source, prepared)
    amount = f"up to {plural(planned.records, 'record')} to {plural(len(planned.topics), 'topic')}"
    confirm_plan(run, planned, f"restore {amount}?", target.cluster_id if target.is_source else "")


def _refusal(run: Run, prepared: PreparedKafkaRestore) -> LogkeepError:
    """The first refusal. Existing topics may be those of an interrupted restore."""
    refusal = prepared.refusals[0]
    rows = list_restores(restores_place(run, prepared.view.place)) if isinstance(refusal, TargetUnsafe) else []
    unfinished = [r for r in rows if r.state is RestoreState.ONGOING and not r.drill and r.kind == KIND]
    if unfinished:
        refusal.remedy = f"{refusal.remedy}. {_unfinished_text(unfinished[-1], this_process(run.token()))}"
    return refusal


def _unfinished_text(restore: RestoreRow, here: Owner) -> str:
    """What to do about a restore that has not ended: only one whose process is gone was interrupted."""
    if restore.owner is not None and is_alive(restore.owner, here):
        return f"Restore {restore.id} is running ({restore.owner}): wait until it ends"
    ways = f"`kafka restore --resume {restore.id}` resumes it, `kafka restore abort` deletes its topics"
    if restore.owner is None or is_dead(restore.owner, here):
        return f"Restore {restore.id} was interrupted: {ways}"
    return f"Restore {restore.id} has not ended. If {restore.owner} no longer works on it: {ways}"
