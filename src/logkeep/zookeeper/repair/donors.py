"""Donors of a damaged log: readable logs that agree with it wherever both have records.

What a donor is said to hold was read when it was chosen. A donor that is damaged itself gives its good records.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.zookeeper.txnlog import RecordStretch, ScannedLog, TransactionColumns
from logkeep.zookeeper.model.archived import ArchivedFile, ArchivedLog, BackupView
from logkeep.zookeeper.model.spans import Span, contains, overlap
from logkeep.zookeeper.repair.log_cache import LogCache
from logkeep.zookeeper.repair.plan import Donor, DonorHistory, OwnBytes, RepairPlan, own_parts
from logkeep.zookeeper.timeline.survey import compared
from logkeep.zookeeper.timeline.timeline import spans_of

UNREADABLE: Final = (Damaged, ObjectMissing, FileNotFoundError)


@dataclass(frozen=True)
class Views:
    """A damaged backup, and other backups that may have what it lost, in order of preference."""

    view: BackupView
    beside: Sequence[BackupView] = ()
    """Servers' directories and other bundles: their names of histories are unrelated."""
    earlier: Sequence[BackupView] = ()
    """Other backups of the same archive."""
    reading: LogCache = field(default_factory=LogCache)

    @property
    def others(self) -> tuple[BackupView, ...]:
        return (*self.beside, *self.earlier)

    @property
    def all(self) -> tuple[BackupView, ...]:
        """In the order in which donors are numbered."""
        return (self.view, *self.others)

    def records(self, number: int, log: ArchivedLog) -> Iterator[TransactionColumns]:
        """All good records of a log in one of the views."""
        return self.reading.good_records(self.all[number], log)

    def past_of(self, number: int, candidate: ArchivedLog, log: ArchivedLog) -> DonorHistory:
        if 0 < number <= len(self.beside):
            return DonorHistory.UNKNOWN
        return DonorHistory.SAME if candidate.history == log.history else DonorHistory.OTHER


def may_help(kept: ArchivedFile, bad: ArchivedFile) -> bool:
    """Whether the first may have something that the second, which is damaged, has lost. Neither is read."""
    if isinstance(kept, ArchivedLog):
        return isinstance(bad, ArchivedLog) and overlap((kept.first, kept.last), (bad.first, bad.last))
    return not isinstance(bad, ArchivedLog) and (kept.name, kept.sha256) == (bad.name, bad.sha256)


def donors_for(
    views: Views, log: ArchivedLog, scanned: ScannedLog | None, damaged: Collection[ArchivedLog]
) -> Iterator[Donor]:
    """Other members of the same backup come first. All records that both logs have must be equal."""
    own = [] if scanned is None else list(own_parts(log, scanned))
    for number, other in enumerate(views.all):
        for candidate in other.logs:
            if number == 0 and (candidate in damaged or candidate.history != log.history):
                continue
            if overlap((candidate.first, candidate.last), (log.first, log.last)):
                yield from _donor(views, log, own, number, candidate)


def disputed_in(plan: RepairPlan, views: Views, donors: Sequence[Donor]) -> Iterator[int]:
    """Of the transactions that a plan takes from donors: those of which another log has a different record.

    All logs of the same history count, also those that disagree elsewhere, and all donors that may be of it."""
    known = {(donor.view, donor.log) for donor in donors if donor.past is not DonorHistory.OTHER}
    for giver in dict.fromkeys((part.donor.view, part.donor.log) for part in plan.spliced):
        spans = [(part.first, part.last) for part in plan.spliced if (part.donor.view, part.donor.log) == giver]
        for number, other in enumerate(views.all):
            for log in other.logs:
                holds = views.past_of(number, log, plan.of) is DonorHistory.SAME or (number, log) in known
                another = log not in (plan.of, giver[1]) or number not in (0, giver[0])
                if holds and another and overlap((log.first, log.last), (spans[0][0], spans[-1][1])):
                    yield from differing(views, giver, (number, log), spans)


def differing(
    views: Views, one: tuple[int, ArchivedLog], another: tuple[int, ArchivedLog], spans: Sequence[Span]
) -> Iterator[int]:
    """Transactions within the spans of which two logs, each given with its view, have different records.

    Everything that can be read of both is compared."""
    try:
        for _, found in compared(views.records(*one), views.records(*another)):
            yield from (zxid for zxid in found if contains(spans, zxid))
    except UNREADABLE:
        return


def _donor(
    views: Views, log: ArchivedLog, own: Sequence[OwnBytes], number: int, candidate: ArchivedLog
) -> Iterator[Donor]:
    other, before, reading = views.all[number], _before(views.view, log), views.reading
    try:
        ends = reading.adler_of(other, candidate, log.last) == log.last_adler
        if not _agrees(views, log, own, (number, candidate), enough=ends):
            return
        begins = before is not None and reading.adler_of(other, candidate, before.last) == before.last_adler
        runs = tuple(_runs(candidate, reading.stretches(other, candidate)))
    except UNREADABLE:
        return
    if runs:
        yield Donor(number, candidate, runs, views.past_of(number, candidate, log), begins, ends)


def _runs(log: ArchivedLog, good: Sequence[RecordStretch]) -> Iterator[tuple[int, int]]:
    for span in spans_of(log):
        for each in good:
            first, last = max(span.first, each.first_zxid), min(span.last, each.last_zxid)
            if first <= last:
                yield first, last


def _agrees(
    views: Views, log: ArchivedLog, own: Sequence[OwnBytes], candidate: tuple[int, ArchivedLog], *, enough: bool
) -> bool:
    """`enough`: at least one common record is already known to be equal."""
    common = 0
    for count, found in compared(_own_records(views, log, own), views.records(*candidate)):
        if found:
            return False
        common += count
    return common > 0 or enough


def _own_records(views: Views, log: ArchivedLog, own: Sequence[OwnBytes]) -> Iterator[TransactionColumns]:
    for part in own:
        try:
            yield from views.reading.records(views.view, log, [(part.start, part.end)])
        except Damaged:  # nothing after the damage is taken from it
            continue


def _before(view: BackupView, log: ArchivedLog) -> ArchivedLog | None:
    """The log of the same member that ends directly before this one."""
    last = {after: end for end, after in log.borders}.get(log.first, log.first - 1)
    same = (other for other in view.logs if (other.member, other.history) == (log.member, log.history))
    return next((other for other in same if other.last == last), None)
