"""`logkeep app restore`: plan, stage, swap. This is the restore to files; `cluster_restore` is the one to topics."""

import threading
from pathlib import Path

import msgspec

from logkeep.application.client_config import client_config
from logkeep.application.data_directory import (
    DOCUMENT,
    LOCK,
    ApplicationDocument,
    DataDirectory,
    DirectoryLock,
    read_directory,
)
from logkeep.checkpoint.restore.histories import reserve_history
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan
from logkeep.checkpoint.restore.run import check_partitions, finish, holding, known_history, prepare, restore
from logkeep.checkpoint.restore.swap import STAGED, interrupted
from logkeep.checkpoint.restore.target import dropped
from logkeep.checkpoint.steps import run as run_steps
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.verbs.application.backup import data_directory
from logkeep.cli.verbs.application.declarations import RESTORE
from logkeep.cli.verbs.application.restore_report import (
    ApplicationRestoreReport,
    RestoredPositions,
    losses,
    restore_text,
)
from logkeep.cli.wiring import chosen_engine, chosen_source
from logkeep.config.options import APP_DATA, BOOTSTRAP_SERVERS, CLIENT_CONFIG, REPLACE_DATA
from logkeep.errors import Locked, TargetUnsafe, UsageError
from logkeep.kinds import APPLICATION, require_kind
from logkeep.model.ids import backup_id
from logkeep.model.time import rfc3339
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.documents import seal
from logkeep.repository.chain.owner import this_process


@verb(RESTORE, report=ApplicationRestoreReport, text=restore_text)
def restore_application(run: Run, checkpoint: str) -> ApplicationRestoreReport:
    if not (checkpoint.isascii() and checkpoint.isdecimal()):
        raise UsageError(f"{checkpoint!r} is not the id of a checkpoint", remedy="give the number")
    if run[APP_DATA] is None and run[BOOTSTRAP_SERVERS] is not None:
        client_config(run[BOOTSTRAP_SERVERS] or "", run[CLIENT_CONFIG])
        from logkeep.cli.verbs.application.cluster_restore import restored_to_cluster  # noqa: PLC0415 - the client

        return restored_to_cluster(run, int(checkpoint))
    directory, place = data_directory(run), chosen_source(run, read_only=run.dry_run)
    require_kind(place, APPLICATION)
    folded = read_chain(place)
    plan = prepare(place, folded, backup_id(int(checkpoint)))
    known = _target(directory)
    check_partitions(plan, known.document.partitions if known is not None else None)
    _check_replaced(run, directory, known, plan)
    history = known_history(place, folded, known.document.history if known is not None else 0)
    planned = _planned(place.source, plan, directory, history + 1, known)
    if run.dry_run:
        return planned
    run.confirm(f"restore checkpoint {plan.checkpoint} of {place.source} to {directory}?{losses(planned)}")
    return _restored(run, place, plan, planned)


def _restored(
    run: Run, place: SourceRef, plan: ApplicationRestorePlan, planned: ApplicationRestoreReport
) -> ApplicationRestoreReport:
    directory = Path(planned.directory)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = _locked(directory)
    try:
        run_steps(finish(directory), threading.Event().wait)
        history = reserve_history(place, plan.checkpoint, planned.history - 1, run.clock, run.token)
        document = ApplicationDocument(
            repository="", application=plan.application, name=plan.name, partitions=len(plan.partitions),
            history=history, created=rfc3339(run.clock()),
        )  # fmt: skip
        label = f"{plan.checkpoint}-{run.token()}"
        with holding(place, plan, this_process(run.token()), run.token) as chain:
            steps = restore(
                place, chain, plan, directory, seal(document), label, lambda total: chosen_engine(run, total)
            )
            done = run_steps(steps, threading.Event().wait)
    finally:
        lock.release()
    return msgspec.structs.replace(
        planned,
        history=history,
        partitions=tuple(
            msgspec.structs.replace(one, proven=staged.proven)
            for one, staged in zip(planned.partitions, done.partitions, strict=True)
        ),
        before=None if done.before is None else str(done.before),
        dry_run=False,
    )


def _target(directory: Path) -> DataDirectory | None:
    return read_directory(directory) if (directory / DOCUMENT).exists() else None


def _locked(directory: Path) -> DirectoryLock:
    try:
        return DirectoryLock(directory)
    except Locked as error:
        raise TargetUnsafe(error.what, subject=error.subject, remedy="stop the application first") from error


def _check_replaced(run: Run, directory: Path, known: DataDirectory | None, plan: ApplicationRestorePlan) -> None:
    """Raises TargetUnsafe for a running application, and for files that the user did not say to replace."""
    if not directory.exists():
        return
    if known is not None:
        _locked(directory).release()
    if known is not None and known.document.application != plan.application:
        raise TargetUnsafe(f"it has another application, {known.document.name}", subject=str(directory))
    kept = (LOCK, STAGED)
    others = sorted(one.name for one in directory.iterdir() if one.name not in kept)
    allowed = run[REPLACE_DATA] if known is not None else interrupted(directory)
    if others and not allowed:
        remedy = "restore to an empty directory, or add --replace: the old files are kept beside the new ones"
        raise TargetUnsafe(f"it is not empty: it has {others[0]}", subject=str(directory), remedy=remedy)


def _planned(
    source: str, plan: ApplicationRestorePlan, directory: Path, history: int, target: DataDirectory | None
) -> ApplicationRestoreReport:
    known = target.document.history if target is not None else None
    return ApplicationRestoreReport(
        source=source,
        checkpoint=plan.checkpoint,
        backup=plan.backup,
        history=history,
        directory=str(directory),
        partitions=tuple(
            RestoredPositions(
                partition=p.partition,
                position=p.position,
                snapshot_position=p.snapshot_position,
                replayed=p.cut_end - max(p.snapshot_position + 1, p.log_start),
                dropped=dropped(directory, p, known, plan.history),
                sent_again=p.sent_again,
            )
            for p in plan.partitions
        ),
        dry_run=True,
    )
