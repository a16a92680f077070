"""What can honestly be made of a damaged log: the good records it still has, and the lost ones from somebody else.

Pure. A repair never invents anything: a record is taken as it was written, or it is lost and named as lost. Good parts
around a loss become logs of their own and are never glued together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.formats.zookeeper.scanned_log import DamageKind, Padding, ScannedLog
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.model.spans import outside
from logkeep.zookeeper.timeline.log_check import good_runs, lost_of

_HEADER_BYTES = 16


class Repair(StrEnum):
    TRIMMED = "trimmed"
    """Only bytes behind the last transaction were wrong: nothing is lost."""
    REPACKED = "repacked"
    """Every record was whole, and what they were stored in was not."""
    HEADER = "header-rewritten"
    """The first 16 bytes, which hold no information."""
    SPLICED = "spliced"
    """All that was lost came from another member or an earlier backup."""
    SPLIT = "split"
    """Transactions are lost."""


class Past(StrEnum):
    """Whether a donor is of the history that the damaged log is of."""

    SAME = "same"
    OTHER = "other"
    """They part somewhere; what both have before that is the same."""
    UNKNOWN = "unknown"
    """Files tell nothing of it."""


@dataclass(frozen=True)
class Donor:
    """A log that has the same records as the damaged one wherever both have any."""

    view: int
    """Which of the views that were offered it is in."""
    log: ArchivedLog
    runs: tuple[tuple[int, int], ...]
    """What can be read of it, in runs of one epoch."""
    past: Past = Past.UNKNOWN
    begins_alike: bool = False
    """It has the very record that came right before the damaged log."""
    ends_alike: bool = False
    """It has the very record that the damaged log ended with."""

    def has(self, zxid: int) -> bool:
        return any(first <= zxid <= last for first, last in self.runs)

    def without(self, disputed: Sequence[tuple[int, int]]) -> "Donor":
        """The same, with no more to give than others agree on."""
        return replace(self, runs=outside(self.runs, disputed)) if disputed else self


@dataclass(frozen=True)
class Own:
    """Good bytes `[start, end)` of the damaged object itself."""

    first: int
    last: int
    start: int
    end: int
    begins: int | None = None
    """The transaction at `start`, where it comes before the first one that is meant."""


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
    parts: tuple[Own | DonorRecords, ...]


@dataclass(frozen=True)
class RepairPlan:
    of: ArchivedLog
    kind: Repair
    logs: tuple[NewLog, ...]
    lost: tuple[tuple[int, int], ...]
    whole: bool = False
    """Its bytes were put together once, and have the hash of those that were kept."""
    disputed: tuple[tuple[int, int], ...] = ()
    """Those of the lost that others have, and not all of them the same: nobody knows which is right."""

    @property
    def spliced(self) -> tuple[DonorRecords, ...]:
        return tuple(part for log in self.logs for part in log.parts if isinstance(part, DonorRecords))

    def __str__(self) -> str:
        told = f"{self.of.name}: {self.kind}" + (f", lost transactions {_spans(self.lost)}" if self.lost else "")
        return told + (f", others do not agree on {_spans(self.disputed)}" if self.disputed else "")


def _spans(spans: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{hex_zxid(first)} to {hex_zxid(last)}" for first, last in spans)


def plan_repair(
    log: ArchivedLog, scanned: ScannedLog | None, donors: Sequence[Donor], *, proven: bool = False
) -> RepairPlan:
    """`scanned`: deep; None where the object is not there at all. Donors come in the order of preference.

    `proven`: no hash will tell whether the whole is right, so only what is certain is taken.
    """
    own = list(own_parts(log, scanned)) if scanned is not None else []
    parts: list[Own | DonorRecords] = list(own)
    gone = list(lost_of(log, good_runs(scanned) if scanned is not None else []))
    lost: list[tuple[int, int]] = []
    for first, last in gone:
        fit = [donor for donor in donors if _is_certain(donor, log, first, last)] if proven else donors
        taken, left = _from_donors(log, first, last, fit)
        parts += taken
        lost += left
    logs = tuple(_joined(log, sorted(parts, key=lambda part: part.first)))
    return RepairPlan(log, _kind(scanned, gone, lost), logs, tuple(lost))


def own_parts(log: ArchivedLog, scanned: ScannedLog) -> Iterator[Own]:
    """Records of the log itself; what was never part of it is left out with everything behind it."""
    if scanned.records and scanned.last_zxid <= log.last:
        yield Own(scanned.first_zxid, scanned.last_zxid, _HEADER_BYTES, scanned.size_bytes)
    for stretch in scanned.behind:
        if stretch.records and log.first <= stretch.first_zxid and stretch.last_zxid <= log.last:
            yield Own(stretch.first_zxid, stretch.last_zxid, stretch.start, stretch.end)


def _is_certain(donor: Donor, log: ArchivedLog, first: int, last: int) -> bool:
    """Whether what it has between two transactions can only be what the damaged log had, if nobody has another thing.

    Of one history there is one committed record for a zxid: where both logs are known to be committed, it is enough
    that the donor has it. Others must be the same on both sides of the loss: who has what came before it, and not what
    came behind it, may have gone another way.
    """
    if donor.past is Past.OTHER:
        return False
    if donor.past is Past.SAME and donor.log.proof is Proof.PROVEN and log.proof is Proof.PROVEN:
        return True
    before = {after: end for end, after in log.borders}.get(first, first - 1)
    behind = dict(log.borders).get(last, last + 1)
    begins = donor.begins_alike if first == log.first else donor.has(before)
    return begins and (donor.ends_alike if last == log.last else donor.has(behind))


def _from_donors(
    log: ArchivedLog, first: int, last: int, donors: Sequence[Donor]
) -> tuple[list[DonorRecords], list[tuple[int, int]]]:
    following = dict(log.borders)
    taken: list[DonorRecords] = []
    lost: list[tuple[int, int]] = []
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


def _joined(log: ArchivedLog, parts: Sequence[Own | DonorRecords]) -> Iterator[NewLog]:
    """One log per run of parts without a loss between them."""
    following = dict(log.borders)
    run: list[Own | DonorRecords] = []
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
