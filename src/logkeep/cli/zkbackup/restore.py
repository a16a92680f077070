"""`zkbackup restore`: put a backup in place of a stopped server's data; undo it, or end one that was interrupted.

Whatever the directories hold is kept beside the new data. Nothing is written before the plan stands: which transaction
the tree will be at and how that is proven, what is replaced, whether a server runs there.
"""

import shlex
from pathlib import Path

import msgspec

from logkeep.cli.verbs.zookeeper.restore.resume_hints import ending_hints, resume_hints
from logkeep.cli.zkbackup.frame import CommandAnswer, CommandJob, CommandRun
from logkeep.cli.zkbackup.metrics import restore_failed, restore_samples
from logkeep.cli.zkbackup.options import (
    ACCEPT_MISMATCH,
    BACKUP_BEFORE_RESTORE,
    BACKUP_DIR,
    BELIEVE,
    CONTINUE,
    DATA_DIR,
    DRY_RUN,
    ENSEMBLE,
    FORCE,
    FORM,
    FORMAT,
    HOST,
    LOG_DIR,
    METRICS_FILE,
    MIN_EPOCH,
    RESTORE_CONFIRMATION,
    ROLLBACK,
    SERVER,
    SESSIONS,
    SKIP_VERIFY,
    TO_TIME,
    TO_ZXID,
    VALIDATION_TIMEOUT,
    VERIFY_BEFORE_RESTORE,
    ZK_VERSION,
)
from logkeep.cli.zkbackup.receipts import drop, settle, unfinished_path, write_ahead
from logkeep.cli.zkbackup.restore_text import ended_text, plan_document, plan_text, restored_text
from logkeep.cli.zkbackup.verify_run import end_of, usable_holdings
from logkeep.config.settings import SettingPlace
from logkeep.errors import ConfigError, LogkeepError, RestoreFailed, UsageError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.restore.finish import RestoreEnd, RestoreEndState, continue_restore, roll_back
from logkeep.zookeeper.restore.journal import Phase, read_journal
from logkeep.zookeeper.restore.prepare import PreparedRestore, check_targets, prepare
from logkeep.zookeeper.restore.run import carry_out, journal_name
from logkeep.zookeeper.restore.values import Form, RestoreReceipt, Sessions, ZooKeeperRestoreOptions
from logkeep.zookeeper.restore.values import ServerTarget as TargetPlace
from logkeep.zookeeper.timeline.plan import RestorePath, RestoreRefused, Target, ToEnd, ToTime, ToZxid, plan
from logkeep.zookeeper.timeline.survey import LogTimes, survey

HELP = """The server must be stopped. By default the tree comes back as it was at the end of the backup; --to-zxid and
--to-time choose another moment, and one that cannot be proven is refused with a list of those that can."""
OPTIONS = (
    *(BACKUP_DIR, *SERVER, FORCE, DRY_RUN, SKIP_VERIFY, TO_ZXID, TO_TIME, SESSIONS, FORM),
    *(
        BELIEVE,
        ACCEPT_MISMATCH,
        ENSEMBLE,
        MIN_EPOCH,
        ZK_VERSION,
        CONTINUE,
        ROLLBACK,
        FORMAT,
        METRICS_FILE,
        VALIDATION_TIMEOUT,
    ),
)
_COMMAND = "zkbackup restore --zk-data-dir"
EXITS = (0, 2, 3, 10, 30, 31, 40, 130, 143)


def restore(run: CommandRun) -> CommandAnswer:
    if run[CONTINUE] or run[ROLLBACK]:
        return _ended(run)
    _check_options(run)
    started = run.world.monotonic()
    view, wish = BundleView(run.needed(BACKUP_DIR, "--backup-dir").absolute()), _wish(run)
    if not run[DRY_RUN]:
        _check_before_reading(run, view, wish)
    path = _path(run, view)
    prepared = prepare(view, path, wish)
    if run[DRY_RUN]:
        code = prepared.planned.obstacles[0].exit_code if prepared.planned.obstacles else 0
        return CommandAnswer(plan_document(view, prepared), lambda look: plan_text(view, prepared, look), code)
    _confirm(run, view, prepared)
    receipt, kept = _carried_out(run, prepared)
    files = len(path.slices) + (path.base.snapshot is not None)
    samples = restore_samples(run[HOST], took_s=run.took_s(started), ended_s=run.clock().timestamp(), files=files)
    document = {**msgspec.to_builtins(receipt), "receipt": _told(kept)}
    code = 0 if prepared.replayed.first_mismatch is None else 2
    return CommandAnswer(document, lambda look: restored_text(view, receipt, kept, run[HOST], look), code, samples)


def _check_options(run: CommandRun) -> None:
    if not run[BACKUP_BEFORE_RESTORE]:
        raise ConfigError(
            "restore.backup_before_restore cannot be false: a restore never deletes what it replaces",
            remedy="leave the key out; remove what was kept by hand, when the restored server is known to be right",
        )
    if run[TO_ZXID] is not None and run[TO_TIME] is not None:
        raise UsageError("--to-zxid and --to-time name two moments", remedy="give one of them")


def _target(run: CommandRun) -> TargetPlace:
    return TargetPlace(
        data_dir=run.needed(DATA_DIR, "--zk-data-dir"), log_dir=run[LOG_DIR], host=run[HOST], host_from=_host_from(run)
    )


def _host_from(run: CommandRun) -> str:
    """A server that nobody named here may be another one's: who is refused for it must know why it was asked."""
    origin = run.settings.origin(HOST)
    if origin.place is SettingPlace.FLAG:
        return ""
    return (
        "asked by default, for no --zk-host was given" if origin.place is SettingPlace.DEFAULT else f"as {origin} says"
    )


def _wish(run: CommandRun) -> ZooKeeperRestoreOptions:
    return ZooKeeperRestoreOptions(
        targets=(_target(run),),
        sessions=Sessions(run[SESSIONS]),
        form=Form(run[FORM]),
        ensemble=run[ENSEMBLE],
        min_epoch=run[MIN_EPOCH],
        version=run[ZK_VERSION],
        believe=run[BELIEVE],
        accept_mismatch=run[ACCEPT_MISMATCH],
    )


def _path(run: CommandRun, view: BundleView) -> RestorePath:
    """Raises RestoreFailed, with what can be restored to instead."""
    holdings = usable_holdings(view, run, verify=_verifies(run), timeout=VALIDATION_TIMEOUT)
    times = LogTimes(view)
    found = plan(holdings, _moment(run), times, believe=run[BELIEVE])
    if isinstance(found, RestoreRefused):
        raise found.error(view.name)
    _check_reached(view, _meant(run, view, times), found)
    return found


def _meant(run: CommandRun, view: BundleView, times: LogTimes) -> int:
    """The transaction that is asked for by the backup's own account, which counts its damaged files too."""
    if run[TO_TIME] is None:
        return end_of(view) if run[TO_ZXID] is None else 0
    path = plan(survey(view), _moment(run), times, believe=run[BELIEVE])
    return path.until if isinstance(path, RestorePath) else 0


def _check_reached(view: BundleView, meant: int, path: RestorePath) -> None:
    """Who asks for the end or for a time wants what the backup had then, not what is left. Raises RestoreFailed."""
    if path.until < meant:
        raise RestoreFailed(
            f"{hex_zxid(meant)}, which is asked for, cannot be restored: a file that holds it is damaged",
            subject=view.name,
            remedy=f"`zkbackup verify --fix` may mend it; --to-zxid {hex_zxid(path.until)} restores what is left",
        )


def _moment(run: CommandRun) -> Target:
    zxid, time_ms = run[TO_ZXID], run[TO_TIME]
    if zxid is not None:
        return ToZxid(zxid)
    return ToEnd() if time_ms is None else ToTime(time_ms)


def _confirm(run: CommandRun, view: BundleView, prepared: PreparedRestore) -> None:
    if prepared.planned.obstacles:
        raise prepared.planned.obstacles[0]
    disproven = prepared.replayed.first_mismatch
    if disproven is not None:
        at = hex_zxid(disproven.zxid)
        run.console.warn(f"THIS TREE IS NOT THE ONE THAT THE SERVER HAD: its digest at {at} is another one")
    if run[FORCE] or not run[RESTORE_CONFIRMATION]:
        return
    if run.console.interactive:
        run.console.note(plan_text(view, prepared, run.console.err_look))
    run.confirm(_question(view, prepared.places[0].data_dir))


def _check_before_reading(run: CommandRun, view: BundleView, wish: ZooKeeperRestoreOptions) -> None:
    """What is known in a moment, before hours go into the data. Raises Damaged, UsageError, TargetUnsafe, Declined."""
    if _verifies(run):
        view.require_intact()
    check_targets(wish)
    if not (run[FORCE] or run.console.interactive) and run[RESTORE_CONFIRMATION]:
        run.confirm(_question(view, wish.targets[0].data_dir))


def _verifies(run: CommandRun) -> bool:
    return run[VERIFY_BEFORE_RESTORE] and not run[SKIP_VERIFY]


def _question(view: BundleView, data_dir: Path) -> str:
    return f"restore {view.name} to {data_dir}?"


def _carried_out(run: CommandRun, prepared: PreparedRestore) -> tuple[RestoreReceipt, Path | None]:
    """With its receipt. One that is refused before a file is moved leaves none."""
    name, data_dir = journal_name(run.clock(), run.world.token), prepared.places[0].data_dir
    try:
        with resume_hints(_COMMAND, data_dir, name, more=_host(run)):
            receipt = carry_out(
                prepared, replace=True, clock=run.clock, token=run.world.token, name=name, staged=write_ahead
            )
    except LogkeepError:  # also one that Ctrl-C has become
        if not _can_be_continued(data_dir, name):
            drop(str(data_dir), name)
        raise
    return receipt, _settled(run, str(data_dir), name)


def _host(run: CommandRun) -> str:
    """A server that was named is asked again when it is ended."""
    return f" --zk-host {shlex.quote(run[HOST])}" if run.settings.origin(HOST).place is SettingPlace.FLAG else ""


def _can_be_continued(data_dir: Path, restore: str) -> bool:
    try:
        journal = read_journal(data_dir)
    except LogkeepError:  # who knows; the reason why the restore failed is told, not this one
        return True
    return journal is not None and journal.restore == restore and journal.phase is not Phase.STAGING


def _settled(run: CommandRun, data_dir: str, restore: str) -> Path | None:
    """The data is in place, whatever becomes of its receipt: trouble with that is said, and nothing else."""
    try:
        return settle(data_dir, restore, run.clock())
    except (OSError, msgspec.MsgspecError) as error:
        run.console.warn(f"the receipt cannot be written ({error}): see {unfinished_path(data_dir, restore)}")
        return None


def _told(receipt: Path | None) -> str | None:
    return None if receipt is None else str(receipt)


def _ended(run: CommandRun) -> CommandAnswer:
    """--continue or --rollback. Who continues wants the restored data, so to be left with the old is a failure."""
    started = run.world.monotonic()
    _check_ending(run)
    target = _target(run)
    word = "continue the interrupted restore" if run[CONTINUE] else "roll the last restore back"
    if not run[FORCE] and run[RESTORE_CONFIRMATION]:
        run.confirm(f"{word} of {target.data_dir}?")
    with ending_hints(_COMMAND, target, _host(run)):
        ended = continue_restore(target) if run[CONTINUE] else roll_back(target)
    receipt = _receipt_of(run, ended)
    document = {**msgspec.to_builtins(ended), "receipt": _told(receipt)}
    nothing = ended.outcome is RestoreEndState.NOTHING
    code, samples = (RestoreFailed.exit_code, restore_failed(run.took_s(started))) if nothing else (0, ())
    return CommandAnswer(document, lambda look: ended_text(ended, look, receipt), code, samples)


def _check_ending(run: CommandRun) -> None:
    """Raises UsageError for what would be passed over: above all for a trial that would be none."""
    if run[CONTINUE] and run[ROLLBACK]:
        raise UsageError("--continue and --rollback are opposites", remedy="give one of them")
    if run[DRY_RUN]:
        raise UsageError("what --continue and --rollback do stands in the journal", remedy="leave --dry-run out")
    if run[TO_ZXID] is not None or run[TO_TIME] is not None:
        raise UsageError("a restore that was begun has its moment already", remedy="leave --to-zxid and --to-time out")


def _receipt_of(run: CommandRun, ended: RestoreEnd) -> Path | None:
    data_dir = ended.data_dirs[0]
    if ended.outcome is not RestoreEndState.NEW:
        drop(data_dir, ended.restore)
        return None
    receipt = _settled(run, data_dir, ended.restore)
    if receipt is None and not unfinished_path(data_dir, ended.restore).exists():
        run.console.warn("there is no receipt: another program began this restore, or an earlier version of this one")
    return receipt


JOB = CommandJob("restore", restore, restore_failed)
