"""Mend a backup: decide what can be made of each damaged object, write new ones beside the originals, verify again.

The one true repair is splicing: records that another member, or an earlier backup, holds byte for byte as the damaged
log held them around the loss. Everything else only tells honestly what is left. The sink writes; originals stay.
"""

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES, ScannedLog, header, tables
from logkeep.model.work import Progress
from logkeep.zookeeper.kept import BackupView, Ending, KeptLog, KeptSnapshot
from logkeep.zookeeper.line import spans_of
from logkeep.zookeeper.repair_plan import Donor, NewLog, Own, Repair, RepairPlan, Taken, own_parts, plan_repair
from logkeep.zookeeper.slicing import LogPart, Sink, give_records
from logkeep.zookeeper.snapshot_facts import Hashed
from logkeep.zookeeper.survey import compared
from logkeep.zookeeper.verify import Level, Verified, verify
from logkeep.zookeeper.verify_objects import Kept, ObjectChecks, check_data, check_files


class LogWriter(Protocol):
    def write(self, data: memoryview | bytes) -> object: ...

    def close(self, kept: KeptLog) -> object:
        """It is whole, and this is what it holds."""

    def abort(self) -> None:
        """Give up. Harmless after `close` and a second time."""


class RepairSink(Protocol):
    """Writes new objects of a backup; damaged ones are kept, and are no longer named as its logs and snapshots."""

    def new_log(self, repair: RepairPlan, first: int) -> LogWriter:
        """For a log that begins with this transaction. `repair` is its provenance: the original's hash, what is lost,
        and where spliced records are from."""

    def new_snapshot(self, snapshot: KeptSnapshot, source: BackupView) -> None:
        """A copy of a damaged snapshot was found, byte for byte the one that was kept: take it from there."""

    def complete(self, repairs: Sequence[RepairPlan], dropped: Sequence[KeptSnapshot]) -> BackupView:
        """The backup as it is from now on. `dropped`: snapshots that cannot be mended."""


@dataclass(frozen=True)
class Foreseen:
    """What can be made of everything that is damaged in a backup."""

    repairs: tuple[RepairPlan, ...]
    dropped: tuple[KeptSnapshot, ...]
    """Snapshots that nobody has a second copy of."""
    copied: tuple[tuple[KeptSnapshot, BackupView], ...]
    """Those that somebody has, and who."""

    @property
    def damaged(self) -> tuple[Kept, ...]:
        return (*(plan.of for plan in self.repairs), *self.dropped, *(kept for kept, _ in self.copied))


@dataclass(frozen=True)
class Repaired:
    repairs: tuple[RepairPlan, ...]
    copied: tuple[KeptSnapshot, ...]
    dropped: tuple[KeptSnapshot, ...]
    verified: Verified
    """Of the backup after all of it."""
    foreseen: Foreseen

    @property
    def lost(self) -> tuple[tuple[int, int], ...]:
        return tuple(sorted({lost for repair in self.repairs for lost in repair.lost}))

    @property
    def trimmed_only(self) -> bool:
        """Nothing but bytes behind the last transaction were wrong."""
        harmless = all(repair.kind in (Repair.TRIMMED, Repair.HEADER) for repair in self.repairs)
        return harmless and not self.dropped and not self.copied


def repair(
    view: BackupView,
    sink: RepairSink,
    *,
    earlier: Sequence[BackupView] = (),
    level: Level = Level.DATA,
    voters: int | None = None,
    accept_loss: bool = True,
    progress: Progress = lambda _: None,
) -> Repaired:
    """`earlier`: other backups of the same ensemble that may hold what this one lost.

    `accept_loss`: where something stays lost, keep what is left of it; else such objects are not touched.
    """
    found = foresee(view, earlier=earlier, progress=progress)
    repairs = tuple(each for each in found.repairs if accept_loss or not each.lost)
    dropped = found.dropped if accept_loss else ()
    for each in repairs:
        for log in each.logs:
            _write(each, log, (view, *earlier), sink)
    for snapshot, source in found.copied:
        sink.new_snapshot(snapshot, source)
    mended = sink.complete(repairs, dropped)
    copied = tuple(snapshot for snapshot, _ in found.copied)
    return Repaired(repairs, copied, dropped, verify(mended, level, voters=voters, progress=progress), found)


def foresee(view: BackupView, *, earlier: Sequence[BackupView] = (), progress: Progress = lambda _: None) -> Foreseen:
    """What would be done; nothing is written."""
    checks = check_data(view, check_files(view), progress)
    copied, dropped = _snapshots(checks, earlier)
    return Foreseen(tuple(plan_repairs(view, checks, earlier)), dropped, copied)


def plan_repairs(view: BackupView, checks: ObjectChecks, earlier: Sequence[BackupView] = ()) -> list[RepairPlan]:
    """What would be done; nothing is written."""
    damaged = [kept for kept in dict.fromkeys(checks.unusable) if isinstance(kept, KeptLog)]
    found = []
    for log in damaged:
        scanned = checks.scans.get(log)
        donors = list(_donors(view, log, scanned, set(damaged), earlier))
        found.append(plan_repair(log, scanned, donors))
    return found


def _donors(
    view: BackupView, log: KeptLog, scanned: ScannedLog | None, damaged: set[KeptLog], earlier: Sequence[BackupView]
) -> Iterator[Donor]:
    """Other members of the same backup first, then earlier backups. All that both hold must be the same."""
    own = [] if scanned is None else list(own_parts(log, scanned))
    for number, other in enumerate((view, *earlier)):
        for candidate in other.logs:
            if other is view and (candidate in damaged or candidate.history != log.history):
                continue
            overlap = candidate.first <= log.last and log.first <= candidate.last
            if overlap and _agrees(view, log, own, other, candidate):
                runs = tuple((span.first, span.last) for span in spans_of(candidate))
                yield Donor(number, candidate, runs)


def _agrees(view: BackupView, log: KeptLog, own: Sequence[Own], other: BackupView, candidate: KeptLog) -> bool:
    try:
        common = 0
        for part in own:
            with LogPart(view.open(log), part.start, part.end).buffered() as mine, other.open(candidate) as theirs:
                for count, differing in compared(tables(mine), tables(theirs)):
                    if differing:
                        return False
                    common += count
        return common > 0 or _has_last(log, other, candidate)
    except (Damaged, ObjectMissing, FileNotFoundError):
        return False


def _has_last(log: KeptLog, other: BackupView, candidate: KeptLog) -> bool:
    """Whether the checksum that was noted of the last record of a log is that of the same transaction there."""
    with other.open(candidate) as source:
        for records in tables(source):
            found = (records.zxid == log.last).nonzero()[0]
            if len(found):
                start, size = int(records.body_at[found[0]]), int(records.body_bytes[found[0]])
                return zlib.adler32(records.data[start : start + size]) == log.last_adler
    return False


def _write(plan: RepairPlan, log: NewLog, views: Sequence[BackupView], sink: RepairSink) -> None:
    writer = sink.new_log(plan, log.first)
    try:
        summed = hashlib.sha256(header())
        writer.write(header())

        def give(data: memoryview) -> None:
            summed.update(data)
            writer.write(data)

        found = [_give(plan, part, views, give) for part in log.parts]
        writer.close(_kept(plan.of, log, found, summed.hexdigest()))
    finally:
        writer.abort()


def _give(plan: RepairPlan, part: Own | Taken, views: Sequence[BackupView], give: Sink) -> ScannedLog:
    if isinstance(part, Own):
        return give_records(views[0], plan.of, part.first, part.last, give, start_at=part.start)
    return give_records(views[part.donor.view], part.donor.log, part.first, part.last, give)


def _kept(of: KeptLog, log: NewLog, found: Sequence[ScannedLog], sha256: str) -> KeptLog:
    inside = tuple(border for border in of.borders if log.first <= border[1] <= log.last)
    return replace(
        of,
        first=log.first,
        last=log.last,
        records=sum(part.records for part in found),
        min_time_ms=min(part.min_time_ms for part in found),
        max_time_ms=max(part.max_time_ms for part in found),
        last_adler=found[-1].last_adler,
        ending=of.ending if log.last == of.last else Ending.DAMAGED,
        size_bytes=HEADER_BYTES + sum(part.size_bytes for part in found),
        sha256=sha256,
        borders=inside,
    )


def _snapshots(
    checks: ObjectChecks, earlier: Sequence[BackupView]
) -> tuple[tuple[tuple[KeptSnapshot, BackupView], ...], tuple[KeptSnapshot, ...]]:
    """A snapshot has no second copy on other members: theirs were taken at other moments. Only an earlier backup may
    hold the very same file."""
    copied, dropped = [], []
    for kept in dict.fromkeys(checks.unusable):
        if isinstance(kept, KeptLog):
            continue
        source = next((other for other in earlier if _holds(other, kept)), None)
        if source is None:
            dropped.append(kept)
        else:
            copied.append((kept, source))
    return tuple(copied), tuple(dropped)


def _holds(view: BackupView, kept: KeptSnapshot) -> bool:
    for other in view.snapshots:
        if (other.sha256, other.name) == (kept.sha256, kept.name):
            with view.open(other) as source:
                hashed = Hashed(source)
                hashed.drain()
            if hashed.sha256 == kept.sha256:
                return True
    return False
