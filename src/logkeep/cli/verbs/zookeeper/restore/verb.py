"""`logkeep zookeeper restore`: replace the data of stopped servers by a backup."""

from collections.abc import Iterator

import msgspec

from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.verbs.next_steps import after_restore
from logkeep.cli.verbs.zookeeper.members import given_members
from logkeep.cli.verbs.zookeeper.restore.apply_plan import agreed_in, as_agreed
from logkeep.cli.verbs.zookeeper.restore.declarations import RESTORE
from logkeep.cli.verbs.zookeeper.restore.report import (
    NOT_BEGUN,
    ZooKeeperRestoreReport,
    exit_code_of,
    plan_text,
    restore_text,
    steps_after,
    targets_of,
    tree_of,
)
from logkeep.cli.verbs.zookeeper.restore.resume_hints import Begun, rerun_hint, resume_hints
from logkeep.cli.wiring import (
    chosen_source,
    named_backup,
    note_failed,
    opened_repository,
    restores_place,
    stored_options,
)
from logkeep.config.options import (
    ACCEPT_MISMATCH,
    BELIEVE,
    CONTINUE,
    DIGESTS,
    ENSEMBLE,
    FORM,
    JUTE_MAXBUFFER,
    MIN_EPOCH,
    QUIET,
    RESTORE_PLAN,
    ROLLBACK,
    SESSIONS,
    TO_TIME,
    TO_ZXID,
    YES,
    ZK_DATA_DIRS,
    ZK_LOG_DIRS,
    ZK_MOMENT,
    ZK_VERSION,
    Options,
)
from logkeep.errors import LogkeepError, UsageError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.reports.backups import read_source
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process
from logkeep.repository.restores import ReceiptDocument
from logkeep.zookeeper.repo.view import view_of
from logkeep.zookeeper.restore.prepare import PreparedRestore, check_targets, prepare
from logkeep.zookeeper.restore.receipts import PlanBody, ZooKeeperRestoreStart, begin, facts_of, verdict_of
from logkeep.zookeeper.restore.run import carry_out, journal_name
from logkeep.zookeeper.restore.values import Form, RestoreReceipt, ServerTarget, Sessions, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import Target as Moment
from logkeep.zookeeper.timeline.plan import ToEnd, ToTime, ToZxid
from logkeep.zookeeper.timeline.verified_path import VerifiedPath, choose

_STORED_OPTIONS: Options = (
    RESTORE_PLAN, ZK_DATA_DIRS, ZK_LOG_DIRS, *ZK_MOMENT, SESSIONS, FORM, ENSEMBLE, MIN_EPOCH, BELIEVE,
    ACCEPT_MISMATCH, ZK_VERSION, DIGESTS,
)  # fmt: skip


def _metrics(outcome: CommandOutcome[ZooKeeperRestoreReport]) -> Iterator[MetricSample]:
    report = outcome.report
    source = (report.source if report else None) or outcome.source
    yield sample("logkeep_restore_duration_seconds", outcome.duration.total_seconds(), source=source)
    yield sample("logkeep_restore_success", 1 if report and report.verdict != NOT_BEGUN else 0, source=source)


@verb(
    RESTORE,
    next_step=after_restore,
    report=ZooKeeperRestoreReport,
    text=restore_text,
    exit_code=exit_code_of,
    metrics=_metrics,
)
def restore(run: Run, backup: str | None) -> ZooKeeperRestoreReport:
    if run[CONTINUE] or run[ROLLBACK]:
        from logkeep.cli.verbs.zookeeper.restore.finish import end  # noqa: PLC0415 - only this way needs it

        return end(run)
    with rerun_hint() as begun:
        return _restore(run, backup, begun)


def _restore(run: Run, backup: str | None, begun: Begun) -> ZooKeeperRestoreReport:
    agreed, options = agreed_in(run, backup), _restore_options(run)
    named = agreed.backup if agreed is not None else named_backup(backup, "logkeep zookeeper restore")
    if not run.dry_run:
        check_targets(options)
    if agreed is None:
        place, target = chosen_source(run), asked_moment(run)
    else:
        place, target = opened_repository(run).choose(agreed.source), ToZxid(agreed.zxid)
        options = as_agreed(options, agreed)
    entry = read_source(place, run.clock()).completed(named)
    with reading(place, BackupId(entry.id), this_process(run.token()), "restore", run.token) as held:
        began_s = run.world.monotonic()
        view = view_of(place, held)
        chosen = choose(view, target, believe=options.believe, accept_mismatch=bool(options.accept_mismatch))
        prepared = prepare(view, chosen.path, options, agreed=agreed, replayed=chosen.replayed, clock=run.clock)
        before_s = run.world.monotonic() - began_s
        planned = _plan_report(place.source, entry.id, prepared, chosen)
        if run.dry_run:
            return planned
        _confirm_plan(run, prepared, planned)
        state = restores_place(run, place, create=True)
        journal = journal_name(run.clock(), run.token)
        with resume_hints("logkeep zookeeper restore --data-dir", prepared.places[0].data_dir, journal):
            begun.yes = True
            return _carry_out(run, state, prepared, planned, journal, before_s)


def asked_moment(run: Run) -> Moment:
    zxid, time_ms = run[TO_ZXID], run[TO_TIME]
    if zxid is not None and time_ms is not None:
        raise UsageError("--to-zxid and --to-time exclude each other", remedy="give one of them")
    if zxid is not None:
        return ToZxid(zxid)
    return ToEnd() if time_ms is None else ToTime(time_ms)


def _restore_options(run: Run) -> ZooKeeperRestoreOptions:
    targets = tuple(ServerTarget(data_dir=g.data_dir, log_dir=g.log_dir, host=g.host) for g in given_members(run))
    return restore_options(run, targets, ensemble=run[ENSEMBLE], digests=run[DIGESTS])


def restore_options(
    run: Run, targets: tuple[ServerTarget, ...], *, ensemble: bool, digests: bool = False
) -> ZooKeeperRestoreOptions:
    """The options that a restore shares with the plan of several hosts."""
    return ZooKeeperRestoreOptions(
        targets=targets,
        sessions=Sessions(run[SESSIONS]),
        form=Form(run[FORM]),
        ensemble=ensemble,
        min_epoch=run[MIN_EPOCH],
        believe=run[BELIEVE],
        accept_mismatch=run[ACCEPT_MISMATCH] or "",
        version=run[ZK_VERSION] or "",
        jute_maxbuffer=run[JUTE_MAXBUFFER],
        digests=digests,
    )


def _plan_report(source: str, backup: int, prepared: PreparedRestore, chosen: VerifiedPath) -> ZooKeeperRestoreReport:
    obstacles = prepared.planned.obstacles
    return ZooKeeperRestoreReport(
        source=source,
        backup=backup,
        restore=None,
        journal=None,
        verdict="planned",
        tree=tree_of(prepared),
        targets=tuple(targets_of(prepared)),
        findings=(*prepared.planned.findings, *passed_over(chosen)),
        unchecked=prepared.planned.unchecked,
        refusals=tuple(f"{each}; {each.remedy}" for each in obstacles),
        refusal_code=obstacles[0].exit_code if obstacles else 0,
        dry_run=True,
    )


def passed_over(chosen: VerifiedPath) -> tuple[Finding, ...]:
    """Damage in files that the restore does not use is only a warning."""
    found = (each.finding for each in chosen.passed_over)
    return tuple(msgspec.structs.replace(one, severity=Severity.WARNING) for one in found)


def _confirm_plan(run: Run, prepared: PreparedRestore, planned: ZooKeeperRestoreReport) -> None:
    if prepared.planned.obstacles:
        raise prepared.planned.obstacles[0]
    if run.console.interactive and not run[YES]:
        run.show(plan_text, planned)
    where = ", ".join(str(place.data_dir) for place in prepared.places)
    word = "replace what is in" if prepared.planned.replaces else "restore to"
    if prepared.replayed.first_mismatch is None:
        run.confirm(f"{word} {where}?")
        return
    zxid = hex_zxid(prepared.replayed.first_mismatch.zxid)
    run.console.warn(f"THIS TREE IS NOT THE ONE THAT THE SERVER HAD: the digests differ at {zxid}")
    run.confirm(f"{word} {where} all the same?", typed="disproven")


def _carry_out(
    run: Run,
    state: SourceRef,
    prepared: PreparedRestore,
    planned: ZooKeeperRestoreReport,
    journal: str,
    before_s: float,
) -> ZooKeeperRestoreReport:
    wanted = ZooKeeperRestoreStart(
        journal, int(prepared.planned.backup), stored_options(run, _STORED_OPTIONS), before_s=before_s
    )
    stored = begin(state, prepared, wanted, run.clock, run.token)
    if not run[QUIET]:
        run.console.note(f"restore {stored.id} begins, its journal is {wanted.journal}")
    try:
        receipt = carry_out(prepared, replace=True, clock=run.clock, token=run.token, name=wanted.journal)
    except LogkeepError as error:
        note_failed(run, stored, error)
        raise
    body = stored.body(PlanBody)
    document = stored.ended(verdict_of(body), planned.findings, facts_of(body, receipt))
    return _result_report(planned, prepared, receipt, document, wanted.journal)


def _result_report(
    planned: ZooKeeperRestoreReport,
    prepared: PreparedRestore,
    receipt: RestoreReceipt,
    document: ReceiptDocument,
    journal: str,
) -> ZooKeeperRestoreReport:
    return msgspec.structs.replace(
        planned,
        restore=document.restore,
        journal=journal,
        verdict=document.verdict,
        targets=tuple(targets_of(prepared, receipt)),
        next_steps=tuple(steps_after(receipt, document.restore)),
        seconds=document.duration_s,
        dry_run=False,
    )
