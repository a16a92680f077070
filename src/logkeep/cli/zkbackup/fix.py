"""`verify --fix`: what can honestly be mended in a bundle, with the help of the bundles beside it.

Only records that another backup holds byte for byte replace lost ones; everything else is trimmed, or named as lost.
Damaged originals are kept in `damaged/`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from logkeep.cli.zkbackup.bundles import shelved
from logkeep.cli.zkbackup.frame import CommandRun
from logkeep.errors import LogkeepError
from logkeep.zookeeper.bundle.repair import BundleRepairSink
from logkeep.zookeeper.bundle.repair_notes import DROPPED, RepairNote, repair_notes
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.model.condition import Condition
from logkeep.zookeeper.repair.donor_search import helpful_backups
from logkeep.zookeeper.repair.plan import Repair, RepairPlan
from logkeep.zookeeper.repair.run import repair
from logkeep.zookeeper.timeline.object_check import check_data, check_files
from logkeep.zookeeper.verify.run import Level

_WORDS: Final = {
    Repair.TRIMMED: "trimmed behind its last transaction; nothing is lost",
    Repair.REPACKED: "stored again; every record was whole",
    Repair.HEADER: "its header was written anew; nothing is lost",
    Repair.SPLICED: "what was damaged came from another backup, byte for byte; nothing is lost",
    Repair.SPLIT: "the good parts are kept as logs of their own",
}


@dataclass(frozen=True)
class Fixed:
    """`view`: the bundle as it is now."""

    view: BundleView
    repaired: int = 0
    """Files that were written again."""
    dropped: int = 0
    """Those that are no longer used."""
    told: tuple[str, ...] = ()
    lost: bool = False
    """Transactions are gone for good, or moments that could be restored to."""


def fix(view: BundleView, run: CommandRun) -> Fixed:
    if not view.intact:  # what it says wrongly of a good file would make that a damaged one
        return Fixed(view, told=("nothing was mended: what tells which files are good is not what was written",))
    sink = BundleRepairSink(view, run.clock, run.world.token)
    checks = check_data(view, check_files(view), lambda _: None)
    beside = helpful_backups(view, neighbours(view.path), checks) if checks.unusable else ()
    done = repair(view, sink, beside=beside, level=Level.FILES, checks=checks)
    told = [_words(each) for each in done.repairs]
    told += [f"{snapshot.name}: brought back, byte for byte" for snapshot in done.copied]
    names = {snapshot.name for snapshot in done.dropped}
    given_up = [note for note in repair_notes(view.path) if note.kind == DROPPED and note.of in names]
    told += [_dropped_words(note) for note in given_up]
    return Fixed(
        BundleView(view.path),
        repaired=len(done.repairs) + len(done.copied),
        dropped=len(done.dropped),
        told=tuple(told),
        lost=bool(done.lost) or any(note.unreachable for note in given_up),
    )


def neighbours(bundle: Path) -> Iterator[BundleView]:
    """All other backups of the same directory, newest first; damaged ones last, for what is whole in them helps too.
    Whether one fits is decided record by record."""
    for one in sorted(shelved(bundle.parent), key=lambda one: one.condition is Condition.DAMAGED):
        view = BundleView(one.directory)
        if one.directory != bundle and _is_readable(view):
            yield view


def _is_readable(view: BundleView) -> bool:
    try:
        return bool(view.logs or view.snapshots)
    except (LogkeepError, ValueError, OSError):  # what cannot be read is no help
        return False


def _dropped_words(note: RepairNote) -> str:
    spans = ", ".join(map(str, note.unreachable))
    left = f"{spans} cannot be restored to any more" if spans else "every moment can be restored to without it"
    return f"{note.of}: damaged, and no other backup has it; it is not used any more; {left}"


def _words(plan: RepairPlan) -> str:
    lost = ", ".join(f"0x{first:x} to 0x{last:x}" for first, last in plan.lost)
    told = f"{plan.of.name}: {_WORDS[plan.kind]}" + (f"; lost transactions {lost}" if lost else "")
    return told + ("; other backups do not agree on some of them" if plan.disputed else "")
