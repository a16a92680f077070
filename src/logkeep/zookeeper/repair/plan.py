"""Plan of the repair of one damaged log: its own good records, and lost ones from donors. Pure.

A repair never invents anything: a record is taken as it was written, or it is reported as lost. Good parts around a
loss become separate logs and are never joined.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.formats.zookeeper.scanned_log import DamageKind, Padding, ScannedLog
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.model.spans import Span, contains, outside
from logkeep.zookeeper.timeline.log_check import good_runs, lost_of

_HEADER_BYTES = 16


class Repair(StrEnum):
    TRIMMED = "trimmed"
    """Only bytes after the last transaction were wrong: nothing is lost."""
    REPACKED = "repacked"
    """Every record was good, and the stored object was damaged."""
    HEADER = "header-rewritten"
    """Only the first 16 bytes, which hold no information, were damaged."""
    SPLICED = "spliced"
    """All that was lost came from another member or an earlier backup."""
    SPLIT = "split"
    """Transactions are lost."""


class DonorHistory(StrEnum):
    """Whether a donor belongs to the history of the damaged log."""

    SAME = "same"
    OTHER = "other"
    """The histories diverge at some point; what both have before it is equal."""
    UNKNOWN = "unknown"
    """The files do not show it."""


@dataclass(frozen=True)
class Donor:
    """A log that agrees with the damaged one wherever both have records."""

    view: int
    """Number of the view that it is in."""
    log: ArchivedLog
    runs: tuple[Span, ...]
    """Its readable transactions, in runs of one epoch."""
    past: DonorHistory = DonorHistory.UNKNOWN
    begins_alike: bool = False
    """It has the record that came directly before the damaged log."""
    ends_alike: bool = False
    """It has the record that the damaged log ended with."""

    def has(self, zxid: int) -> bool:
        return contains(self.runs, zxid)

    def without(self, disputed: Sequence[Span]) -> "Donor":
        """The same without transactions on which others disagree."""
        return replace(self, runs=outside(self.runs, disputed)) if disputed else self


@dataclass(frozen=True)
class OwnBytes:
    """Good bytes `[start, end)` of the damaged object itself."""

    first: int
    last: int
    start: int
    end: int
    begins: int | None = None
    """The transaction at `start`, if it is before `first`."""


@dataclass(frozen=True)
class DonorRecords:
    """Records `first` to `last` of a donor."""

    first: int
    last: int
    donor: Donor


@dataclass(frozen=True)
class NewLog:
    first: int
    last: int
    parts: tuple[OwnBytes | DonorRecords, ...]


@dataclass(frozen=True)
class RepairPlan:
    of: ArchivedLog
    kind: Repair
    logs: tuple[NewLog, ...]
    lost: tuple[Span, ...]
    whole: bool = False
    """Its bytes were assembled once and have the archived hash."""
    disputed: tuple[Span, ...] = ()
    """Lost transactions of which others have different records: it is unknown which is right."""

    @property
    def spliced(self) -> tuple[DonorRecords, ...]:
        return tuple(part for log in self.logs for part in log.parts if isinstance(part, DonorRecords))

    def __str__(self) -> str:
        text = f"{self.of.name}: {self.kind}" + (f", lost transactions {_spans(self.lost)}" if self.lost else "")
        return text + (f", others do not agree on {_spans(self.disputed)}" if self.disputed else "")


def _spans(spans: Sequence[Span]) -> str:
    return ", ".join(f"{hex_zxid(first)} to {hex_zxid(last)}" for first, last in spans)


def plan_repair(
    log: ArchivedLog, scanned: ScannedLog | None, donors: Sequence[Donor], *, proven: bool = False
) -> RepairPlan:
    """`scanned`: a deep scan; None if the object is missing. Donors come in order of preference.

    `proven`: no hash will prove the result, so only certain records are taken.
    """
    own = list(own_parts(log, scanned)) if scanned is not None else []
    parts: list[OwnBytes | DonorRecords] = list(own)
    gone = list(lost_of(log, good_runs(scanned) if scanned is not None else []))
    lost: list[Span] = []
    for first, last in gone:
        fit = [donor for donor in donors if _is_certain(donor, log, first, last)] if proven else donors
        taken, left = _from_donors(log, first, last, fit)
        parts += taken
        lost += left
    logs = tuple(_joined(log, sorted(parts, key=lambda part: part.first)))
    return RepairPlan(log, _kind(scanned, gone, lost), logs, tuple(lost))


def own_parts(log: ArchivedLog, scanned: ScannedLog) -> Iterator[OwnBytes]:
    """Good records of the log itself. What was never part of it is left out, with everything after it."""
    if scanned.records and scanned.last_zxid <= log.last:
        yield OwnBytes(scanned.first_zxid, scanned.last_zxid, _HEADER_BYTES, scanned.size_bytes)
    for stretch in scanned.behind:
        if stretch.records and log.first <= stretch.first_zxid and stretch.last_zxid <= log.last:
            yield OwnBytes(stretch.first_zxid, stretch.last_zxid, stretch.start, stretch.end)


def _is_certain(donor: Donor, log: ArchivedLog, first: int, last: int) -> bool:
    """Whether the donor's records between two transactions must be those of the damaged log, if no other log disagrees.

    A history has one committed record per zxid: if both logs are known to be committed, the donor's record is it. Other
    donors must agree with the log on both sides of the loss: one that has what came before, but not what came after,
    may have diverged.
    """
    if donor.past is DonorHistory.OTHER:
        return False
    if donor.past is DonorHistory.SAME and donor.log.proof is Proof.PROVEN and log.proof is Proof.PROVEN:
        return True
    before = {after: end for end, after in log.borders}.get(first, first - 1)
    after = dict(log.borders).get(last, last + 1)
    begins = donor.begins_alike if first == log.first else donor.has(before)
    return begins and (donor.ends_alike if last == log.last else donor.has(after))


def _from_donors(
    log: ArchivedLog, first: int, last: int, donors: Sequence[Donor]
) -> tuple[list[DonorRecords], list[Span]]:
    following = dict(log.borders)
    taken: list[DonorRecords] = []
    lost: list[Span] = []
    at = first
    while at <= last:
        found = next(((donor, run) for donor in donors for run in donor.runs if run[0] <= at <= run[1]), None)
        if found is not None:
            end = min(found[1][1], last, *(before for before in following if before >= at), last)
            taken.append(DonorRecords(at, end, found[0]))
        else:
            starts = [run[0] for donor in donors for run in donor.runs if at < run[0] <= last]
            end = min(starts) - 1 if starts else last
            lost.append((at, end))
        at = following.get(end, end + 1)
    return taken, lost


def _joined(log: ArchivedLog, parts: Sequence[OwnBytes | DonorRecords]) -> Iterator[NewLog]:
    """One log per run of parts with no loss between them."""
    following = dict(log.borders)
    run: list[OwnBytes | DonorRecords] = []
    for part in parts:
        if run and part.first != following.get(run[-1].last, run[-1].last + 1):
            yield NewLog(run[0].first, run[-1].last, tuple(run))
            run = []
        run.append(part)
    if run:
        yield NewLog(run[0].first, run[-1].last, tuple(run))


def _kind(scanned: ScannedLog | None, gone: Sequence[object], lost: Sequence[object]) -> Repair:
    if lost:
        return Repair.SPLIT
    if gone:
        return Repair.SPLICED
    if scanned is None or any(each.kind is DamageKind.BAD_HEADER for each in scanned.damage):
        return Repair.HEADER if scanned is not None else Repair.TRIMMED
    return Repair.TRIMMED if scanned.damage or scanned.padding is not Padding.NOTHING else Repair.REPACKED
