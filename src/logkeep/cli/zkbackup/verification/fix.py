"""`verify --fix`: repair a bundle with the help of the bundles beside it.

A lost record is only replaced by the same bytes from another backup; everything else is trimmed, or reported as lost.
Damaged originals are kept in `damaged/`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from logkeep.cli.zkbackup.bundles import list_bundles
from logkeep.cli.zkbackup.command import CommandRun
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
    Repair.TRIMMED: "trimmed after its last transaction; nothing is lost",
    Repair.REPACKED: "stored again; every record was good",
    Repair.HEADER: "its header was rewritten; nothing is lost",
    Repair.SPLICED: "the damaged part was replaced from another backup, byte for byte; nothing is lost",
    Repair.SPLIT: "the good parts are kept as logs of their own",
}


@dataclass(frozen=True)
class FixedBundle:
    """`view`: the bundle as it is now."""

    view: BundleView
    repaired: int = 0
    """Files that were rewritten."""
    dropped: int = 0
    """Files that are no longer used."""
    messages: tuple[str, ...] = ()
    lost: bool = False
    """Transactions are lost for good, or points in time can no longer be restored."""


def fix(view: BundleView, run: CommandRun) -> FixedBundle:
    if not view.intact:  # a wrong checksum in the document would make a good file a damaged one
        return FixedBundle(view, messages=("nothing was repaired: the document was changed since it was written",))
    sink = BundleRepairSink(view, run.clock, run.token)
    checks = check_data(view, check_files(view), lambda _: None)
    beside = helpful_backups(view, neighbours(view.path), checks) if checks.unusable else ()
    done = repair(view, sink, beside=beside, level=Level.FILES, checks=checks)
    messages = [_repair_text(each) for each in done.repairs]
    messages += [f"{snapshot.name}: restored from another backup, byte for byte" for snapshot in done.copied]
    names = {snapshot.name for snapshot in done.dropped}
    dropped = [note for note in repair_notes(view.path) if note.kind == DROPPED and note.of in names]
    messages += [_dropped_text(note) for note in dropped]
    return FixedBundle(
        BundleView(view.path),
        repaired=len(done.repairs) + len(done.copied),
        dropped=len(done.dropped),
        messages=tuple(messages),
        lost=bool(done.lost) or any(note.unreachable for note in dropped),
    )


def neighbours(bundle: Path) -> Iterator[BundleView]:
    """All other backups of the same directory, newest first; damaged ones last, as their good parts help too.

    Whether one fits is decided record by record.
    """
    for one in sorted(list_bundles(bundle.parent), key=lambda one: one.condition is Condition.DAMAGED):
        view = BundleView(one.directory)
        if one.directory != bundle and _is_readable(view):
            yield view


def _is_readable(view: BundleView) -> bool:
    try:
        return bool(view.logs or view.snapshots)
    except (LogkeepError, ValueError, OSError):  # an unreadable backup cannot help
        return False


def _dropped_text(note: RepairNote) -> str:
    spans = ", ".join(map(str, note.unreachable))
    left = f"{spans} can no longer be restored" if spans else "every point in time can be restored without it"
    return f"{note.of}: damaged, and no other backup has it; it is no longer used; {left}"


def _repair_text(plan: RepairPlan) -> str:
    lost = ", ".join(f"0x{first:x} to 0x{last:x}" for first, last in plan.lost)
    text = f"{plan.of.name}: {_WORDS[plan.kind]}" + (f"; lost transactions {lost}" if lost else "")
    return text + ("; other backups disagree on some of them" if plan.disputed else "")
