"""Who may give records to a damaged log: logs that have the same records wherever both have any, and can be read.

What a donor is said to hold was read when it was chosen, up to the first thing that is wrong with it.
"""

import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.zookeeper.txnlog import ScannedLog, scan, tables
from logkeep.zookeeper.kept import BackupView, KeptLog
from logkeep.zookeeper.line import spans_of
from logkeep.zookeeper.repair_plan import Donor, Own, Past, RepairPlan, own_parts
from logkeep.zookeeper.slicing import LogPart
from logkeep.zookeeper.survey import compared
from logkeep.zookeeper.verify_objects import Kept

UNREADABLE: Final = (Damaged, ObjectMissing, FileNotFoundError)


@dataclass(frozen=True)
class Views:
    """A damaged backup, and who may have what it lost, in the order of preference."""

    view: BackupView
    beside: Sequence[BackupView] = ()
    """Servers' directories, other bundles: the names of histories mean nothing there."""
    earlier: Sequence[BackupView] = ()
    """Other backups of the same archive."""

    @property
    def others(self) -> tuple[BackupView, ...]:
        return (*self.beside, *self.earlier)

    @property
    def all(self) -> tuple[BackupView, ...]:
        """In the order in which donors are numbered."""
        return (self.view, *self.others)

    def past_of(self, number: int, candidate: KeptLog, log: KeptLog) -> Past:
        if 0 < number <= len(self.beside):
            return Past.UNKNOWN
        return Past.SAME if candidate.history == log.history else Past.OTHER


def may_help(kept: Kept, bad: Kept) -> bool:
    """By what is said of both: whether one can have something that the other, which is damaged, has lost."""
    if isinstance(kept, KeptLog):
        return isinstance(bad, KeptLog) and kept.first <= bad.last and bad.first <= kept.last
    return not isinstance(bad, KeptLog) and (kept.name, kept.sha256) == (bad.name, bad.sha256)


def donors_for(views: Views, log: KeptLog, scanned: ScannedLog | None, damaged: Collection[KeptLog]) -> Iterator[Donor]:
    """Other members of the same backup first. All that both hold must be the same."""
    own = [] if scanned is None else list(own_parts(log, scanned))
    for number, other in enumerate(views.all):
        for candidate in other.logs:
            if number == 0 and (candidate in damaged or candidate.history != log.history):
                continue
            if candidate.first <= log.last and log.first <= candidate.last:
                yield from _donor(views, log, own, number, candidate)


def disputed_in(plan: RepairPlan, views: Views, donors: Sequence[Donor]) -> Iterator[int]:
    """Of the transactions that a plan takes from somebody: those that another holder has a different record of.

    Holders are all logs of the same history, also those that do not fit elsewhere, and all donors that may be of it."""
    known = {(donor.view, donor.log) for donor in donors if donor.past is not Past.OTHER}
    for giver in dict.fromkeys((part.donor.view, part.donor.log) for part in plan.spliced):
        spans = [(part.first, part.last) for part in plan.spliced if (part.donor.view, part.donor.log) == giver]
        for number, other in enumerate(views.all):
            for log in other.logs:
                holds = views.past_of(number, log, plan.of) is Past.SAME or (number, log) in known
                another = log not in (plan.of, giver[1]) or number not in (0, giver[0])
                if holds and another and log.first <= spans[-1][1] and spans[0][0] <= log.last:
                    yield from differing(views, giver, (number, log), spans)


def differing(
    views: Views, one: tuple[int, KeptLog], another: tuple[int, KeptLog], spans: Sequence[tuple[int, int]]
) -> Iterator[int]:
    """Transactions within the spans of which two logs, each named by its view, have different records.

    Behind damage nothing is compared."""
    try:
        with views.all[one[0]].open(one[1]) as ours, views.all[another[0]].open(another[1]) as theirs:
            for _, found in compared(tables(ours), tables(theirs)):
                yield from (zxid for zxid in found if any(first <= zxid <= last for first, last in spans))
    except UNREADABLE:
        return


def _donor(views: Views, log: KeptLog, own: Sequence[Own], number: int, candidate: KeptLog) -> Iterator[Donor]:
    other, before = views.all[number], _before(views.view, log)
    try:
        ends = _has(other, candidate, log.last, log.last_adler)
        if not _agrees(views.view, log, own, other, candidate, enough=ends):
            return
        with other.open(candidate) as source:
            good = scan(source, until_zxid=min(candidate.last, log.last))
        begins = before is not None and _has(other, candidate, before.last, before.last_adler)
    except UNREADABLE:
        return
    found = ((span.first, min(span.last, good.last_zxid)) for span in spans_of(candidate) if good.records)
    runs = tuple((first, last) for first, last in found if first <= last)
    if runs:
        yield Donor(number, candidate, runs, views.past_of(number, candidate, log), begins, ends)


def _agrees(
    view: BackupView, log: KeptLog, own: Sequence[Own], other: BackupView, candidate: KeptLog, *, enough: bool
) -> bool:
    """`enough`: something that both have is known to be the same already."""
    common = 0
    for part in own:
        try:
            with LogPart(view.salvage(log), part.start, part.end).buffered() as mine, other.open(candidate) as theirs:
                for count, differing in compared(tables(mine), tables(theirs)):
                    if differing:
                        return False
                    common += count
        except Damaged:  # nothing behind that is taken from it
            continue
    return common > 0 or enough


def _before(view: BackupView, log: KeptLog) -> KeptLog | None:
    """The log of the same member that ends right before this one."""
    last = {after: end for end, after in log.borders}.get(log.first, log.first - 1)
    same = (other for other in view.logs if (other.member, other.history) == (log.member, log.history))
    return next((other for other in same if other.last == last), None)


def _has(other: BackupView, candidate: KeptLog, zxid: int, adler: int) -> bool:
    """Whether a transaction is there with a record of this checksum."""
    if not candidate.first <= zxid <= candidate.last:
        return False
    try:
        with other.open(candidate) as source:
            for records in tables(source):
                found = (records.zxid == zxid).nonzero()[0]
                if len(found):
                    start, size = int(records.body_at[found[0]]), int(records.body_bytes[found[0]])
                    return zlib.adler32(records.data[start : start + size]) == adler
    except Damaged:
        return False
    return False
