"""Whether what can be made of a damaged object may serve in its place, and why not. Pure; asked before any write."""

from collections.abc import Callable, Iterator

from logkeep.zookeeper.kept import KeptLog
from logkeep.zookeeper.repair import Foreseen
from logkeep.zookeeper.repair_plan import RepairPlan
from logkeep.zookeeper.verify_objects import Kept


def why_left(
    found: Foreseen, snapshots: int, in_pieces: Callable[[KeptLog], bool], *, accept_loss: bool
) -> Iterator[tuple[Kept, str]]:
    """Everything that stays as it is. `snapshots`: how many the backup has; `in_pieces`: whether a backup knows a part
    of a log as a piece, which it would not find in what is left of it."""
    for plan in found.repairs:
        if why := why_not(plan, in_pieces, accept_loss=accept_loss):
            yield plan.of, why
    for snapshot in found.dropped:
        if not accept_loss:
            yield snapshot, "nobody has another copy; with --accept-loss it is not used any more"
        elif len(found.dropped) >= snapshots:
            yield snapshot, "nobody has another copy, and without it the backup has no snapshot at all"


def why_not(plan: RepairPlan, in_pieces: Callable[[KeptLog], bool], *, accept_loss: bool) -> str:
    """Empty: it may serve."""
    if not plan.logs:
        return "nothing of it can be read, and nobody else has it"
    if not plan.lost:
        return "" if plan.whole else "the records that can be had do not have the hash of those that were archived"
    if in_pieces(plan.of):
        return "transactions stay lost, and other backups have parts of it that they would not find in what is left"
    return "" if accept_loss else "transactions stay lost; --accept-loss keeps what is around them, for good"
