"""Asking many backups for what one has lost: all of them, some at a time, until nothing is missing any more.

What a backup says of itself tells whether it may help: the transactions of its logs, the hashes of its snapshots. Only
those that may are read. However many there are, no more are held than one round asks and earlier rounds found of use:
who gives something, and who contradicts them.

Who must be heard before a hole is filled: of every lost transaction one who holds it, and one who contradicts.

Others may be left out, however many there are. Who holds the same record as one that is heard has nothing to add, and
whoever is asked later and has another record contradicts one that is heard.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from logkeep.formats.zookeeper.txnlog import ScannedLog
from logkeep.zookeeper.model.archived import ArchivedLog, BackupView
from logkeep.zookeeper.model.spans import outside, runs_of
from logkeep.zookeeper.repair.donors import Views, differing, may_help
from logkeep.zookeeper.repair.plan import Donor, Past, plan_repair
from logkeep.zookeeper.repair.run import BackupRepairPlan, foreseen
from logkeep.zookeeper.timeline.log_check import good_runs, lost_of
from logkeep.zookeeper.timeline.object_check import Kept, ObjectChecks

_Spans = tuple[tuple[int, int], ...]


def witnesses(views: Views, log: ArchivedLog, scanned: ScannedLog | None, donors: Sequence[Donor]) -> tuple[Donor, ...]:
    """Those of the donors of a damaged log; earlier ones are preferred."""
    gone = tuple(lost_of(log, good_runs(scanned) if scanned is not None else []))
    heard, unheard, undisputed = list[Donor](), gone, gone
    for donor in donors:
        if donor.past is Past.OTHER:
            continue
        left = outside(unheard, donor.runs)
        contradicted = tuple(runs_of(iter(sorted(set(_contradicted(views, donor, heard, undisputed))))))
        if left != unheard or contradicted:
            heard.append(donor)
        unheard, undisputed = left, outside(undisputed, contradicted)
    return tuple(heard)


def _contradicted(views: Views, donor: Donor, heard: Sequence[Donor], spans: _Spans) -> Iterator[int]:
    """Transactions of the spans that somebody who was heard has another record of."""
    for other in heard:
        if both := _within(_within(spans, donor.runs), other.runs):
            yield from differing(views, (other.view, other.log), (donor.view, donor.log), both)


def _within(spans: _Spans, runs: _Spans) -> _Spans:
    return outside(spans, outside(spans, runs))


AT_ONCE: Final = 10


def helpful(
    view: BackupView, others: Iterable[BackupView], checks: ObjectChecks, at_once: int = AT_ONCE
) -> tuple[BackupView, ...]:
    """Those that a repair of the view takes something from, or might. `others`: in the order of preference."""
    damaged = tuple(dict.fromkeys(checks.unusable))
    asked = (other for other in others if any(may_help(kept, bad) for kept in _held(other) for bad in damaged))
    known: tuple[BackupView, ...] = ()
    while some := tuple(islice(asked, at_once)):
        views = Views(view, (*known, *some))
        with views.reading:
            found = foreseen(views, checks)
            known = tuple(_of_use(found, views))
        if not found.dropped and all(plan.whole for plan in found.repairs):
            break
    return known


def _held(other: BackupView) -> Iterator[Kept]:
    yield from other.snapshots
    yield from other.logs


def _of_use(found: BackupRepairPlan, views: Views) -> Iterator[BackupView]:
    """Who gives something, be it only together with somebody who is asked later, or has a say in what others give."""
    together = (
        plan_repair(case.log, case.scanned, case.donors, proven=proven)
        for case in found.cases
        for proven in (False, True)
    )
    numbers = {part.donor.view for plan in (*found.repairs, *together) for part in plan.spliced}
    for plan, case in zip(found.repairs, found.cases, strict=True):
        if not plan.whole:
            numbers |= {donor.view for donor in witnesses(views, case.log, case.scanned, case.donors)}
    for number, other in enumerate(views.beside, start=1):
        if number in numbers or any(source is other for _, source in found.copied):
            yield other
