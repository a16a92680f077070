"""Whether what can be made of a damaged object may serve in its place, and why not. Pure; asked before any write."""

from collections.abc import Iterator

from logkeep.zookeeper.model.archived import ArchivedFile
from logkeep.zookeeper.repair.plan import RepairPlan
from logkeep.zookeeper.repair.run import BackupRepairPlan


def why_left(found: BackupRepairPlan, snapshots: int, *, accept_loss: bool) -> Iterator[tuple[ArchivedFile, str]]:
    """Everything that stays as it is. `snapshots`: how many the backup has."""
    for plan in found.repairs:
        if why := why_not(plan, accept_loss=accept_loss):
            yield plan.of, why
    for snapshot in found.dropped:
        if not accept_loss:
            yield snapshot, "nobody has another copy; with --accept-loss it is not used any more"
        elif len(found.dropped) >= snapshots:
            yield snapshot, "nobody has another copy, and without it the backup has no snapshot at all"


def why_not(plan: RepairPlan, *, accept_loss: bool) -> str:
    """Empty: it may serve."""
    if not plan.logs:
        return "nothing of it can be read, and nobody else has it"
    if not plan.lost:
        return "" if plan.whole else "the records that can be had do not have the hash of those that were archived"
    why = "others have different records of some" if plan.disputed else "transactions stay lost"
    return "" if accept_loss else f"{why}; --accept-loss keeps what is around them, for good"
