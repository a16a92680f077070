"""Search many backups for what one has lost, a few at a time, until nothing is missing any more.

The records of a backup show whether it may help: the transactions of its logs, the hashes of its snapshots. Only those
that may help are read. However many there are, only those of one round are open, and those that earlier rounds found
useful: backups that give something, and backups that contradict them.

For every lost transaction one backup that has it and one that contradicts are enough, see `donors_to_compare`. A backup
with the same record as a chosen one adds nothing, and a later one with another record contradicts a chosen one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from logkeep.formats.zookeeper.txnlog import ScannedLog
from logkeep.zookeeper.model.archived import ArchivedFile, ArchivedLog, BackupView
from logkeep.zookeeper.model.spans import Span, inside, outside, runs_of
from logkeep.zookeeper.repair.donors import Views, differing, may_help
from logkeep.zookeeper.repair.plan import Donor, DonorHistory, plan_repair
from logkeep.zookeeper.repair.run import BackupRepairPlan, plan_with_views
from logkeep.zookeeper.timeline.log_check import good_runs, lost_of
from logkeep.zookeeper.timeline.object_check import ObjectChecks

AT_ONCE: Final = 10


def helpful_backups(
    view: BackupView, others: Iterable[BackupView], checks: ObjectChecks, at_once: int = AT_ONCE
) -> tuple[BackupView, ...]:
    """The backups that a repair of the view takes something from, or might. `others`: in order of preference."""
    damaged = tuple(dict.fromkeys(checks.unusable))
    asked = (other for other in others if any(may_help(kept, bad) for kept in _files_of(other) for bad in damaged))
    known: tuple[BackupView, ...] = ()
    while some := tuple(islice(asked, at_once)):
        views = Views(view, (*known, *some))
        with views.reading:
            found = plan_with_views(views, checks)
            known = tuple(_useful_views(found, views))
        if not found.dropped and all(plan.whole for plan in found.repairs):
            break
    return known


def _files_of(other: BackupView) -> Iterator[ArchivedFile]:
    yield from other.snapshots
    yield from other.logs


def _useful_views(found: BackupRepairPlan, views: Views) -> Iterator[BackupView]:
    """Views that give something, perhaps only together with a later one, or that must be compared with others."""
    together = (
        plan_repair(case.log, case.scanned, case.donors, proven=proven)
        for case in found.cases
        for proven in (False, True)
    )
    numbers = {part.donor.view for plan in (*found.repairs, *together) for part in plan.spliced}
    for plan, case in zip(found.repairs, found.cases, strict=True):
        if not plan.whole:
            numbers |= {donor.view for donor in donors_to_compare(views, case.log, case.scanned, case.donors)}
    for number, other in enumerate(views.beside, start=1):
        if number in numbers or any(source is other for _, source in found.copied):
            yield other


def donors_to_compare(
    views: Views, log: ArchivedLog, scanned: ScannedLog | None, donors: Sequence[Donor]
) -> tuple[Donor, ...]:
    """The donors of a damaged log that a decision needs; earlier ones are preferred."""
    gone = tuple(lost_of(log, good_runs(scanned) if scanned is not None else []))
    chosen, missing, undisputed = list[Donor](), gone, gone
    for donor in donors:
        if donor.past is DonorHistory.OTHER:
            continue
        left = outside(missing, donor.runs)
        contradicted = tuple(runs_of(sorted(set(_contradicted(views, donor, chosen, undisputed)))))
        if left != missing or contradicted:
            chosen.append(donor)
        missing, undisputed = left, outside(undisputed, contradicted)
    return tuple(chosen)


def _contradicted(views: Views, donor: Donor, chosen: Sequence[Donor], spans: Sequence[Span]) -> Iterator[int]:
    """Transactions of the spans of which a chosen donor has another record."""
    for other in chosen:
        if both := inside(inside(spans, donor.runs), other.runs):
            yield from differing(views, (other.view, other.log), (donor.view, donor.log), both)
