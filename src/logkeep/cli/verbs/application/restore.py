"""`logkeep app restore`: plan, stage, swap. This is the restore to files; `cluster_restore` is the one to topics."""

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from logkeep.application.client_config import client_config
from logkeep.application.directory_restore import check_directory, restore_directory, target_of
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan
from logkeep.checkpoint.restore.run import check_partitions, known_history, prepare
from logkeep.checkpoint.restore.target import dropped
from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.signals import after_a_signal
from logkeep.cli.frame.verb import verb
from logkeep.cli.verbs.application.backup import data_directory
from logkeep.cli.verbs.application.declarations import RESTORE
from logkeep.cli.verbs.application.restore_report import (
    RUN_AGAIN,
    ApplicationRestoreReport,
    losses,
    planned_report,
    restore_text,
)
from logkeep.cli.verbs.next_steps import after_application_restore
from logkeep.cli.wiring import chosen_engine, chosen_source
from logkeep.config.options import APP_DATA, BOOTSTRAP_SERVERS, CLIENT_CONFIG, REPLACE_DATA
from logkeep.errors import UsageError
from logkeep.kinds import APPLICATION, require_kind
from logkeep.model.ids import BackupId, backup_id, choose_id
from logkeep.repository.chain.commits import SourceRef, read_chain


def _metrics(outcome: CommandOutcome[ApplicationRestoreReport]) -> Iterator[MetricSample]:
    report = outcome.report
    source = report.source if report else outcome.source
    yield sample("logkeep_restore_duration_seconds", outcome.duration.total_seconds(), source=source)
    yield sample("logkeep_restore_success", 1 if report else 0, source=source)
    if report is not None:
        yield sample("logkeep_restore_last_success_timestamp_seconds", outcome.ended.timestamp(), source=source)


@verb(
    RESTORE,
    next_step=after_application_restore,
    report=ApplicationRestoreReport,
    text=restore_text,
    metrics=_metrics,
)
def restore_application(run: Run, checkpoint: str) -> ApplicationRestoreReport:
    wanted, servers = _checkpoint_id(run, checkpoint), run[BOOTSTRAP_SERVERS]
    if run[APP_DATA] is None and servers is not None:
        config = client_config(servers, run[CLIENT_CONFIG])
        from logkeep.cli.verbs.application.cluster_restore import restored_to_cluster  # noqa: PLC0415 - the client

        return restored_to_cluster(run, wanted, config)
    directory, place = data_directory(run), chosen_source(run, read_only=run.dry_run)
    require_kind(place, APPLICATION)
    folded = read_chain(place)
    plan = prepare(place, folded, wanted)
    known = target_of(directory)
    check_partitions(plan, known.document.partitions if known is not None else None)
    check_directory(directory, known, plan, replace=run[REPLACE_DATA])
    present = known.document.history if known is not None else None
    planned = planned_report(
        place.source,
        plan,
        known_history(place, folded, present or 0) + 1,
        lambda each: dropped(directory, each, present, plan.history),
        directory=str(directory),
    )
    if run.dry_run:
        return planned
    run.confirm(f"restore checkpoint {plan.checkpoint} of {place.source} to {directory}?{losses(planned)}")
    return _restored(run, place, plan, planned)


def _checkpoint_id(run: Run, text: str) -> BackupId:
    """A checkpoint between two backups has an id too, so a number need not be that of a backup."""
    if text == "latest":
        place = chosen_source(run, read_only=True)
        require_kind(place, APPLICATION)
        return choose_id(text, [BackupId(entry.id) for entry in read_chain(place).completed])
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"{text!r} is not the id of a checkpoint", remedy="give the number, or `latest`")
    return backup_id(int(text))


def _restored(
    run: Run, place: SourceRef, plan: ApplicationRestorePlan, planned: ApplicationRestoreReport
) -> ApplicationRestoreReport:
    with after_a_signal(RUN_AGAIN):
        done, history, number = restore_directory(
            place, plan, Path(planned.directory), planned.history - 1, run.clock, run.token,
            lambda total: chosen_engine(run, total), threading.Event().wait,
        )  # fmt: skip
    return msgspec.structs.replace(
        planned,
        restore=number,
        history=history,
        partitions=tuple(
            msgspec.structs.replace(one, proven=staged.proven)
            for one, staged in zip(planned.partitions, done.partitions, strict=True)
        ),
        before=None if done.before is None else str(done.before),
        dry_run=False,
    )
