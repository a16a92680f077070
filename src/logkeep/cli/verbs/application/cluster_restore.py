"""`logkeep app restore --bootstrap-servers`: to the topics of a cluster, as a new history."""

import threading
from pathlib import Path

import msgspec

from logkeep.application.kafka_log.restore import (
    ClusterTarget,
    check_stopped,
    check_target,
    restore_to_cluster,
    survey,
)
from logkeep.application.kafka_log.restore_task import ClusterUnit, WrittenPartition
from logkeep.checkpoint.restore.histories import reserve_history
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan, PartitionRestorePlan
from logkeep.checkpoint.restore.receipts import put_receipt, recorded
from logkeep.checkpoint.restore.run import holding, known_history, prepare, stage_units
from logkeep.checkpoint.steps import run as run_steps
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.signals import after_a_signal
from logkeep.cli.verbs.application.restore_report import (
    RUN_AGAIN,
    ApplicationRestoreReport,
    losses,
    planned_report,
)
from logkeep.cli.wiring import chosen_engine, chosen_source
from logkeep.config.options import CLIENT_CONFIG, REPLACE_DATA
from logkeep.kinds import APPLICATION, require_kind
from logkeep.model.ids import BackupId, RestoreId
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.owner import this_process


def restored_to_cluster(run: Run, checkpoint: BackupId, config: dict[str, str]) -> ApplicationRestoreReport:
    """Raises TargetUnsafe for an application that runs, or that the user did not say to replace."""
    place, servers = chosen_source(run, read_only=run.dry_run), config["bootstrap.servers"]
    require_kind(place, APPLICATION)
    folded = read_chain(place)
    plan = prepare(place, folded, checkpoint)
    target = survey(config, plan.name)
    check_target(target, plan, replace=run[REPLACE_DATA])
    check_stopped(config, plan.name)
    history = known_history(place, folded, target.document.history)
    planned = planned_report(
        place.source,
        plan,
        history + 1,
        lambda each: _dropped(target, each, plan.history),
        cluster=servers,
        old_topics=() if target.current is None or target.empty else target.current.topics.of_history,
    )
    if run.dry_run:
        return planned
    run.confirm(f"restore checkpoint {plan.checkpoint} of {place.source} to {servers}?{losses(planned)}")
    written, number, restore = _written(run, config, place, plan, history)
    return msgspec.structs.replace(
        planned,
        restore=restore,
        history=number,
        partitions=tuple(
            msgspec.structs.replace(one, proven=each.staged.proven)
            for one, each in zip(planned.partitions, written, strict=True)
        ),
        dry_run=False,
    )


def _written(
    run: Run, config: dict[str, str], place: SourceRef, plan: ApplicationRestorePlan, known: int
) -> tuple[list[WrittenPartition], int, RestoreId]:
    reserved: list[int] = []

    def reserve() -> int:
        reserved.append(reserve_history(place, plan.checkpoint, known, run.clock, run.token))
        return reserved[0]

    def units(history: int) -> list[ClusterUnit]:
        return _units(place, chain, plan, history, config["bootstrap.servers"], run[CLIENT_CONFIG])

    with (
        after_a_signal(RUN_AGAIN),
        holding(place, plan, this_process(run.token()), run.token) as chain,
        recorded(place, plan, config["bootstrap.servers"], run.clock, run.token) as stored,
    ):
        steps = restore_to_cluster(
            config, plan, reserve, units, lambda total: chosen_engine(run, total),
            replace=run[REPLACE_DATA],
        )  # fmt: skip
        written = run_steps(steps, threading.Event().wait)
    put_receipt(stored, reserved[0], [each.staged for each in written])
    return written, reserved[0], stored.id


def _units(
    place: SourceRef, chain: Folded, plan: ApplicationRestorePlan, history: int, servers: str, file: Path | None
) -> list[ClusterUnit]:
    return [
        ClusterUnit(
            stage=stage,
            bootstrap_servers=servers,
            client_config=None if file is None else str(file.absolute()),
            application=plan.name,
            history=history,
            end=each.position + 1,
        )
        for stage, each in zip(stage_units(place, chain, plan), plan.partitions, strict=True)
    ]


def _dropped(target: ClusterTarget, of: PartitionRestorePlan, history: int) -> int | None:
    """Positions are compared, so the target must be in the history that is restored."""
    if target.empty:
        return 0
    return max(0, target.ends[of.partition] - of.cut_end) if target.document.history == history else None
