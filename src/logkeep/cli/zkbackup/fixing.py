"""`verify --fix`: what can honestly be mended in a bundle, with the help of the bundles beside it.

Only records that another backup holds byte for byte replace lost ones; everything else is trimmed, or named as lost.
Damaged originals are kept in `damaged/`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from logkeep.cli.zkbackup.catalogue import shelved
from logkeep.cli.zkbackup.frame import Run
from logkeep.errors import LogkeepError
from logkeep.zookeeper.bundle.repairing import BundleRepairSink
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.repair import repair
from logkeep.zookeeper.repair_plan import Repair, RepairPlan
from logkeep.zookeeper.score import Condition
from logkeep.zookeeper.verify import Level

_MOST_NEIGHBOURS: Final = 10
_WORDS: Final = {
    Repair.TRIMMED: "trimmed behind its last transaction; nothing is lost",
    Repair.HEADER: "its header was written anew; nothing is lost",
    Repair.SPLICED: "what was damaged came from another backup, byte for byte; nothing is lost",
    Repair.SPLIT: "the good parts are kept as logs of their own",
}


@dataclass(frozen=True)
class Fixed:
    """`view`: the bundle as it is now."""

    view: BundleView
    repaired: int = 0
    told: tuple[str, ...] = ()
    lost: bool = False
    """Transactions are gone for good."""


def fix(view: BundleView, run: Run) -> Fixed:
    sink = BundleRepairSink(view, run.clock, run.world.token)
    done = repair(view, sink, beside=neighbours(view.path), level=Level.FILES)
    told = [_words(each) for each in done.repairs]
    told += [f"{snapshot.name}: taken from another backup, byte for byte" for snapshot in done.copied]
    told += [
        f"{snapshot.name}: damaged, and no other backup has it; it is not used any more" for snapshot in done.dropped
    ]
    return Fixed(BundleView(view.path), len(done.repairs) + len(done.copied), tuple(told), bool(done.lost))


def neighbours(bundle: Path) -> list[BundleView]:
    """Other backups of the same directory, newest first; whether one fits is decided record by record."""
    found: list[BundleView] = []
    for one in shelved(bundle.parent):
        if one.directory == bundle or one.condition is Condition.DAMAGED or len(found) == _MOST_NEIGHBOURS:
            continue
        view = BundleView(one.directory)
        try:
            view.info  # noqa: B018  what cannot be read is no help
        except LogkeepError:
            continue
        found.append(view)
    return found


def _words(plan: RepairPlan) -> str:
    lost = ", ".join(f"0x{first:x} to 0x{last:x}" for first, last in plan.lost)
    return f"{plan.of.name}: {_WORDS[plan.kind]}" + (f"; lost transactions {lost}" if lost else "")
