"""`zkbackup restore`: put a backup in place of a stopped server's data, undo that, or finish an interrupted restore.

The replaced data is kept beside the new data. Nothing is written before the plan is complete: the transaction that the
tree will be at and how that is proven, what is replaced, whether a server runs there.
"""

from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from logkeep.cli.frame.execute import CommandAnswer
from logkeep.cli.terminal.messages import message, words
from logkeep.cli.verbs.zookeeper.restore.resume_hints import ending_hints, resume_hints
from logkeep.cli.zkbackup.command import CommandRun
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
    HOST,
    LOG_DIR,
    MIN_EPOCH,
    RESTORE_CONFIRMATION,
    ROLLBACK,
    SESSIONS,
    SKIP_VERIFY,
    TO_TIME,
    TO_ZXID,
    VERIFY_BEFORE_RESTORE,
    ZK_VERSION,
)
from logkeep.cli.zkbackup.receipts import complete, drop, unfinished_path, write_ahead
from logkeep.cli.zkbackup.restore_text import finish_text, plan_text, restored_text
from logkeep.cli.zkbackup.verification.run import end_of, usable_holdings
from logkeep.config.settings import SettingPlace
from logkeep.directories.folder import Folder
from logkeep.errors import ConfigError, LogkeepError, RestoreFailed, UsageError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.shell_words import shell_word
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.restore.finish import RestoreEnd, RestoreEndState, continue_restore, roll_back
from logkeep.zookeeper.restore.prepare import PreparedRestore, check_targets, prepare
from logkeep.zookeeper.restore.run import carry_out, journal_name
from logkeep.zookeeper.restore.target.directories import named_folder
from logkeep.zookeeper.restore.target.journal import Phase, read_journal
from logkeep.zookeeper.restore.values import Form, RestoreReceipt, ServerTarget, Sessions, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import RestorePath, RestoreRefused, Target, ToEnd, ToTime, ToZxid, plan
from logkeep.zookeeper.timeline.survey import LogTimes, survey

_COMMAND = "zkbackup restore --zk-data-dir"
_CONTINUE: Final = message("continue the interrupted restore of {path}?")
_ROLL_BACK: Final = message("roll back the last restore of {path}?")


def restore(run: CommandRun) -> CommandAnswer:
    if run[CONTINUE] or run[ROLLBACK]:
        return _finish(run)
    _check_options(run)
    started = run.world.monotonic()
    view, options = BundleView(run.required(BACKUP_DIR, "--backup-dir").absolute()), _options(run)
    if not run[DRY_RUN]:
        _check_before_reading(run, view, options)
    path = _path(run, view)
    prepared = prepare(view, path, options)
    if run[DRY_RUN]:
        code = prepared.planned.obstacles[0].exit_code if prepared.planned.obstacles else 0
        return CommandAnswer(plan_document(view, prepared), lambda look: plan_text(view, prepared, look), code)
    _confirm(run, view, prepared)
    receipt, kept = _carry_out(run, prepared)
    files = len(path.slices) + (path.base.snapshot is not None)
    samples = restore_samples(run[HOST], took_s=run.took_s(started), ended_s=run.clock().timestamp(), files=files)
    document = {**msgspec.to_builtins(receipt), "receipt": str(kept) if kept else None}
    code = 0 if prepared.replayed.first_mismatch is None else 2
    return CommandAnswer(document, lambda look: restored_text(view, receipt, kept, run[HOST], look), code, samples)


def _check_options(run: CommandRun) -> None:
    if not run[BACKUP_BEFORE_RESTORE]:
        raise ConfigError(
            message("restore.backup_before_restore cannot be false: a restore never deletes the data that it replaces"),
            remedy=message("remove the key; delete the kept data by hand once you have checked the restored server"),
        )
    if run[TO_ZXID] is not None and run[TO_TIME] is not None:
        raise UsageError(message("--to-zxid and --to-time name two points in time"), remedy=message("give one of them"))


def _target(run: CommandRun) -> ServerTarget:
    return ServerTarget(
        data_dir=run.required(DATA_DIR, "--zk-data-dir"),
        log_dir=run[LOG_DIR],
        host=run[HOST],
        host_from=_host_from(run),
    )


def _host_from(run: CommandRun) -> str:
    """Why this server is asked: one that the user did not name may be a different server than the target."""
    origin = run.settings.origin(HOST)
    if origin.place is SettingPlace.FLAG:
        return ""
    return "the default of --zk-host" if origin.place is SettingPlace.DEFAULT else f"set by {origin}"


def _options(run: CommandRun) -> ZooKeeperRestoreOptions:
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
    """What is replayed. Raises RestoreFailed, with the points in time that can be restored instead."""
    holdings = usable_holdings(view, run, verify=_verifies(run))
    times = LogTimes(view)
    found = plan(holdings, _wanted(run), times, believe=run[BELIEVE])
    if isinstance(found, RestoreRefused):
        raise found.error(view.name)
    _check_reached(view, _wanted_zxid(run, view, times), found)
    return found


def _wanted_zxid(run: CommandRun, view: BundleView, times: LogTimes) -> int:
    """The transaction that the user asks for, if all files of the backup were good; 0: no check is needed."""
    if run[TO_TIME] is None:
        return end_of(view) if run[TO_ZXID] is None else 0
    path = plan(survey(view), _wanted(run), times, believe=run[BELIEVE])
    return path.until if isinstance(path, RestorePath) else 0


def _check_reached(view: BundleView, wanted: int, path: RestorePath) -> None:
    """The end of the backup, or a time, means what the backup had then, not what is left. Raises RestoreFailed."""
    if path.until < wanted:
        raise RestoreFailed(
            f"{hex_zxid(wanted)} cannot be restored: a file that contains it is damaged",
            subject=view.name,
            remedy=f"`zkbackup verify --fix` may repair it; --to-zxid {hex_zxid(path.until)} restores what is left",
        )


def _wanted(run: CommandRun) -> Target:
    zxid, time_ms = run[TO_ZXID], run[TO_TIME]
    if zxid is not None:
        return ToZxid(zxid)
    return ToEnd() if time_ms is None else ToTime(time_ms)


def _confirm(run: CommandRun, view: BundleView, prepared: PreparedRestore) -> None:
    if prepared.planned.obstacles:
        raise prepared.planned.obstacles[0]
    disproven = prepared.replayed.first_mismatch
    if disproven is not None:
        at, say = hex_zxid(disproven.zxid), words(run.console.err_look)
        run.warn(say("THIS TREE IS NOT THE ONE THAT THE SERVER HAD: its digest at {zxid} differs", zxid=at))
    if run[FORCE] or not run[RESTORE_CONFIRMATION]:
        return
    if run.console.interactive:
        run.console.show(plan_text(view, prepared, run.console.err_look))
    run.confirm(_question(run, view, prepared.places[0].data_dir))


def _check_before_reading(run: CommandRun, view: BundleView, options: ZooKeeperRestoreOptions) -> None:
    """Quick checks before the data is read, which may take hours.

    Raises Damaged, UsageError, TargetUnsafe, Declined.
    """
    if _verifies(run):
        view.require_intact()
    check_targets(options)
    if not (run[FORCE] or run.console.interactive) and run[RESTORE_CONFIRMATION]:
        run.confirm(_question(run, view, options.targets[0].data_dir))


def _verifies(run: CommandRun) -> bool:
    return run[VERIFY_BEFORE_RESTORE] and not run[SKIP_VERIFY]


def _question(run: CommandRun, view: BundleView, data_dir: Path) -> str:
    return words(run.console.err_look)("restore {name} to {path}?", name=view.name, path=data_dir)


def _carry_out(run: CommandRun, prepared: PreparedRestore) -> tuple[RestoreReceipt, Path | None]:
    """The receipt, and its file. A restore that is refused before the first file is moved leaves no receipt."""
    name, folder = journal_name(run.clock(), run.token), prepared.places[0].data_folder
    data_dir, ahead = prepared.places[0].data_dir, partial(write_ahead, folder)
    try:
        with resume_hints(_COMMAND, data_dir, name, more=_host_flag(run)):
            receipt = carry_out(prepared, replace=True, clock=run.clock, token=run.token, name=name, staged=ahead)
    except LogkeepError:  # Ctrl-C too
        if not _can_be_continued(data_dir, name):
            drop(folder, name)
        raise
    return receipt, _complete_receipt(run, folder, name)


def _host_flag(run: CommandRun) -> str:
    """The command that finishes the restore must ask the same server that the user named."""
    return f" --zk-host {shell_word(run[HOST])}" if run.settings.origin(HOST).place is SettingPlace.FLAG else ""


def _can_be_continued(data_dir: Path, restore: str) -> bool:
    try:
        journal = read_journal(data_dir)
    except LogkeepError:  # not known; the user gets the reason why the restore failed, not this one
        return True
    return journal is not None and journal.restore == restore and journal.phase is not Phase.STAGING


def _complete_receipt(run: CommandRun, folder: Folder, restore: str) -> Path | None:
    """The data is in place, so a problem with its receipt is only a warning."""
    try:
        return complete(folder, restore, run.clock())
    except (OSError, LogkeepError, msgspec.MsgspecError) as error:
        ahead = unfinished_path(str(folder.path), restore)
        run.warn(f"the receipt cannot be written ({error}): see {ahead}")
        return None


def _finish(run: CommandRun) -> CommandAnswer:
    """--continue or --rollback. A --continue that leaves the old data in place has failed."""
    started = run.world.monotonic()
    _check_finish_options(run)
    target = _target(run)
    question = _CONTINUE if run[CONTINUE] else _ROLL_BACK
    if not run[FORCE] and run[RESTORE_CONFIRMATION]:
        run.confirm(words(run.console.err_look)(question, path=target.data_dir))
    with ending_hints(_COMMAND, target, _host_flag(run)):
        ended = continue_restore(target) if run[CONTINUE] else roll_back(target)
    receipt = _receipt_of(run, ended)
    document = {**msgspec.to_builtins(ended), "receipt": str(receipt) if receipt else None}
    nothing = ended.outcome is RestoreEndState.NOTHING
    code, samples = (RestoreFailed.exit_code, restore_failed(run.took_s(started))) if nothing else (0, ())
    return CommandAnswer(document, lambda look: finish_text(ended, look, receipt), code, samples)


def _check_finish_options(run: CommandRun) -> None:
    """Raises UsageError for options that would have no effect, above all for --dry-run."""
    if run[CONTINUE] and run[ROLLBACK]:
        raise UsageError(message("--continue and --rollback are opposites"), remedy=message("give one of them"))
    if run[DRY_RUN]:
        raise UsageError(message("--continue and --rollback have no dry run"), remedy=message("leave --dry-run out"))
    if run[TO_ZXID] is not None or run[TO_TIME] is not None:
        raise UsageError(
            message("the interrupted restore already has its point in time"),
            remedy=message("leave --to-zxid and --to-time out"),
        )


def _receipt_of(run: CommandRun, ended: RestoreEnd) -> Path | None:
    folder = named_folder(Path(ended.data_dirs[0]))
    if ended.outcome is not RestoreEndState.NEW:
        drop(folder, ended.restore)
        return None
    receipt = _complete_receipt(run, folder, ended.restore)
    if receipt is None and folder.find(unfinished_path("", ended.restore).name) is None:
        run.warn("there is no receipt: this restore was started by another program or an earlier version of zkbackup")
    return receipt


def plan_document(view: BundleView, prepared: PreparedRestore) -> dict[str, Any]:
    planned, path = prepared.planned, prepared.path
    return {
        "dry_run": True,
        "backup_id": view.name,
        "backup_dir": str(view.path),
        "zxid": planned.zxid,
        "named_zxid": planned.named,
        "epoch": planned.epoch,
        "proof": path.proof.value,
        "labels": list(path.labels),
        "stands_at": _moment(path.last_restored.zxid, path.last_restored.time_ms),
        "next_left_out": _moment(path.next_left_out.zxid, path.next_left_out.time_ms) if path.next_left_out else None,
        "nodes": planned.nodes,
        "size_bytes": planned.size_bytes,
        "sessions": planned.sessions.value,
        "form": planned.form.value,
        "data_dir": str(prepared.places[0].data.path),
        "log_dir": str(prepared.places[0].log.path),
        "unchecked": list(planned.unchecked),
        "findings": msgspec.to_builtins(planned.findings),
        "obstacles": [{"error": o.slug(), "message": str(o), "remedy": o.remedy} for o in planned.obstacles],
    }


def _moment(zxid: int, time_ms: int | None) -> dict[str, Any]:
    return {"hex": hex_zxid(zxid), "decimal": zxid, "time_ms": time_ms}
