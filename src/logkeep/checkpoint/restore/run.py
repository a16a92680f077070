"""The steps of a restore: plan, stage with an engine, declare ready, swap. The caller holds the directory's lock."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from logkeep.checkpoint.restore.histories import reserved_histories
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan, plan_restore
from logkeep.checkpoint.restore.points import ArchivedSegments, archived_records
from logkeep.checkpoint.restore.stage_task import StagedPartition, StageUnit, stage_partition
from logkeep.checkpoint.restore.swap import clear, interrupted, ready, staged, swap
from logkeep.checkpoint.steps import Steps
from logkeep.errors import TargetUnsafe
from logkeep.model.ids import BackupId
from logkeep.model.plurals import plural
from logkeep.model.time import TokenSource
from logkeep.model.work import Engine
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.owner import Owner


@dataclass(frozen=True)
class RestoredApplication:
    partitions: tuple[StagedPartition, ...]
    before: Path | None
    """Where the old files are."""


def prepare(place: SourceRef, folded: Folded, checkpoint: int) -> ApplicationRestorePlan:
    """What will be restored. Reads documents only. Raises UnknownBackup, Damaged."""
    return plan_restore(archived_records(place, folded), checkpoint)


def known_history(place: SourceRef, folded: Folded, target: int) -> int:
    """The largest history that is archived, reserved by a restore, or in the target."""
    archived = (record.history for record in archived_records(place, folded))
    return max([target, *archived, *reserved_histories(place)])


def check_partitions(plan: ApplicationRestorePlan, expected: int | None) -> None:
    """Raises TargetUnsafe if the target is for another number of partitions."""
    if expected is not None and expected != len(plan.partitions):
        raise TargetUnsafe(
            f"the backup has {plural(len(plan.partitions), 'partition')}, the target has {expected}",
            subject=plan.name,
            remedy="the number of partitions is fixed: restore to an empty directory",
        )


@contextmanager
def holding(place: SourceRef, plan: ApplicationRestorePlan, owner: Owner, tokens: TokenSource) -> Iterator[Folded]:
    """Hold every backup that the plan reads, so that none is pruned meanwhile; the chain with all of them.

    Raises UnknownBackup if one was deleted since the plan was made.
    """
    with ExitStack() as held:
        for backup in plan.backups:
            held.enter_context(reading(place, BackupId(backup), owner, "restore", tokens))
        yield read_chain(place)


def restore(
    place: SourceRef, folded: Folded, plan: ApplicationRestorePlan, directory: Path, document: bytes, label: str,
    engine: Callable[[int], Engine],
) -> Steps[RestoredApplication]:  # fmt: skip
    """Stage every partition with one task, then swap. An interrupted swap is finished first, by `finish`."""
    yield from clear(directory)
    units = [
        msgspec.structs.replace(unit, directory=str((staged(directory) / f"p{unit.partition}").absolute()))
        for unit in stage_units(place, folded, plan)
    ]
    yield "stage"
    runner = engine(sum(unit.bytes for unit in units))
    results = runner.map(
        stage_partition, units, StagedPartition, label="restore partitions", weight=lambda unit: unit.bytes
    )
    yield from ready(directory, document, label)
    before = yield from swap(directory)
    return RestoredApplication(tuple(results), before)


def stage_units(place: SourceRef, folded: Folded, plan: ApplicationRestorePlan) -> list[StageUnit]:
    """The work for each partition, without a directory."""
    found = ArchivedSegments(place, folded)
    return [
        StageUnit(
            place=place,
            partition=each.partition,
            log=found.log(plan, each),
            snapshot=found.snapshot(plan, each),
            log_start=each.log_start,
            cut_end=each.cut_end,
            state_digest=each.state_digest,
            directory="",
        )
        for each in plan.partitions
    ]


def finish(directory: Path) -> Steps[bool]:
    """Continue a swap that was interrupted; whether there was one."""
    yield "finish"
    if not interrupted(directory):
        return False
    yield from swap(directory)
    return True
