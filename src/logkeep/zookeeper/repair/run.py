"""Repair of a backup: plan what can be made of each damaged object, write new objects, verify again.

Lost records come back only by splicing: another member or an earlier backup has them, and agrees byte for byte with the
damaged log around the loss. Otherwise a repair only separates what is left. The sink writes; originals stay.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import msgspec

from logkeep.formats.zookeeper.txnlog import HEADER_BYTES, ScannedLog, header
from logkeep.zookeeper.model.archived import ArchivedFile, ArchivedLog, ArchivedSnapshot, BackupView, LogFileEnding
from logkeep.zookeeper.model.log_slices import Sink
from logkeep.zookeeper.model.snapshot_scan import Hashed
from logkeep.zookeeper.model.spans import runs_of
from logkeep.zookeeper.repair.donors import UNREADABLE, Views, disputed_in, donors_for
from logkeep.zookeeper.repair.plan import Donor, DonorRecords, NewLog, OwnBytes, RepairPlan, plan_repair
from logkeep.zookeeper.timeline.object_check import ObjectChecks, check_data, check_files
from logkeep.zookeeper.verify.run import Level, VerifiedFiles, verify


class LogWriter(Protocol):
    def write(self, data: memoryview | bytes) -> object: ...

    def close(self, kept: ArchivedLog) -> object:
        """The log is complete, and this is what it holds."""

    def abort(self) -> None:
        """Discard it. Does nothing after `close` or a second time."""


class RepairSink(Protocol):
    """Writes new objects of a backup. Damaged ones stay stored, and are no longer listed as its logs and snapshots."""

    def logs_of(self, repair: RepairPlan) -> Sequence[NewLog]:
        """The logs of a plan, or smaller ones where other backups refer to parts of them."""

    def new_log(self, repair: RepairPlan, first: int) -> LogWriter:
        """For a log that begins with this transaction. `repair` documents it: the original's hash, what is lost, and
        where spliced records come from."""

    def new_snapshot(self, snapshot: ArchivedSnapshot, source: BackupView) -> None:
        """Copy a damaged snapshot from a source that has the archived bytes."""

    def complete(self, repairs: Sequence[RepairPlan], dropped: Sequence[ArchivedSnapshot]) -> BackupView:
        """The backup as it is from now on. `dropped`: snapshots that cannot be repaired."""


@dataclass(frozen=True)
class RepairCase:
    """A damaged log, what is left of it, and its donors."""

    log: ArchivedLog
    scanned: ScannedLog | None
    donors: tuple[Donor, ...]

    def without(self, donor: Donor) -> "RepairCase":
        gone = donor.view, donor.log
        return replace(self, donors=tuple(other for other in self.donors if (other.view, other.log) != gone))


@dataclass(frozen=True)
class BackupRepairPlan:
    """The repairs of everything that is damaged in a backup."""

    repairs: tuple[RepairPlan, ...]
    dropped: tuple[ArchivedSnapshot, ...]
    """Snapshots without another copy."""
    copied: tuple[tuple[ArchivedSnapshot, BackupView], ...]
    """Snapshots with another copy, and the view that has it."""
    cases: tuple[RepairCase, ...] = ()
    """Of the repairs, in the same order."""

    @property
    def damaged(self) -> tuple[ArchivedFile, ...]:
        return (*(plan.of for plan in self.repairs), *self.dropped, *(kept for kept, _ in self.copied))


@dataclass(frozen=True)
class Repaired:
    repairs: tuple[RepairPlan, ...]
    copied: tuple[ArchivedSnapshot, ...]
    dropped: tuple[ArchivedSnapshot, ...]
    verified: VerifiedFiles
    """Result of the verification after the repair."""
    plan: BackupRepairPlan

    @property
    def lost(self) -> tuple[tuple[int, int], ...]:
        return tuple(sorted({lost for repair in self.repairs for lost in repair.lost}))


def repair(
    view: BackupView,
    sink: RepairSink,
    *,
    earlier: Sequence[BackupView] = (),
    beside: Sequence[BackupView] = (),
    level: Level = Level.DATA,
    accept_loss: bool = True,
    checks: ObjectChecks | None = None,
) -> Repaired:
    """`earlier`, `beside`: backups that may have what this one lost, see `Views`. `checks`: of the view, if known.

    `accept_loss`: where something stays lost, store what is left of it; otherwise such objects are not changed.
    """
    views = Views(view, beside, earlier)
    with views.reading:
        found = plan_with_views(views, checks or check_data(view, check_files(view), lambda _: None))
        carried = [
            _carry_out(case, plan, views, sink, accept_loss)
            for case, plan in zip(found.cases, found.repairs, strict=True)
        ]
    repairs = tuple(plan for plan, written in carried if written)
    copied = [
        (kept, by) for kept, source in found.copied if (by := _copy_snapshot(kept, source, views, sink)) is not None
    ]
    gone = {kept for kept, _ in found.copied} - {kept for kept, _ in copied}
    found = replace(
        found,
        repairs=tuple(plan for plan, _ in carried),
        copied=tuple(copied),
        dropped=(*found.dropped, *(kept for kept, _ in found.copied if kept in gone)),
    )
    dropped = found.dropped if accept_loss else ()
    verified = verify(sink.complete(repairs, dropped), level)
    return Repaired(repairs, tuple(kept for kept, _ in copied), dropped, verified, found)


def plan_backup_repair(
    view: BackupView,
    *,
    earlier: Sequence[BackupView] = (),
    beside: Sequence[BackupView] = (),
    checks: ObjectChecks | None = None,
) -> BackupRepairPlan:
    """What `repair` would do; nothing is written."""
    views = Views(view, beside, earlier)
    with views.reading:
        return plan_with_views(views, checks or check_data(view, check_files(view), lambda _: None))


def plan_with_views(views: Views, checks: ObjectChecks) -> BackupRepairPlan:
    """The same for a caller that continues to read the views."""
    copied, dropped = _snapshots(checks, views)
    cases = tuple(_cases(views, checks))
    return BackupRepairPlan(tuple(settled_plan(case, views) for case in cases), dropped, copied, cases)


def _cases(views: Views, checks: ObjectChecks) -> Iterator[RepairCase]:
    """A log whose records are all good needs no donors and can be one, even if its object is damaged."""
    unusable = {kept for kept in checks.unusable if isinstance(kept, ArchivedLog)}
    for log in (kept for kept in checks.damaged if isinstance(kept, ArchivedLog)):
        scanned = checks.scans.get(log)
        donors = donors_for(views, log, scanned, unusable) if log in unusable else ()
        yield RepairCase(log, scanned, tuple(donors))


def settled_plan(case: RepairCase, views: Views) -> RepairPlan:
    """The first plan that restores the archived bytes, as the hash proves; else the one with certain records only.

    Everything that it takes was read once: an unreadable donor is not used.
    """
    for plan in _plans(case, views):
        dry_run = _DryRun()
        failed = next((part for log in plan.logs if (part := _write(plan, log, views, dry_run))), None)
        if isinstance(failed, DonorRecords):
            return settled_plan(case.without(failed.donor), views)
        if dry_run.found == [case.log.sha256]:
            return replace(plan, whole=True)
    return plan


def _plans(case: RepairCase, views: Views) -> Iterator[RepairPlan]:
    """The last plan takes certain records only. It compares all holders, which is needless if a hash proves another."""
    for donors in dict.fromkeys((case.donors, *((donor,) for donor in case.donors))):
        plan = plan_repair(case.log, case.scanned, donors)
        if not plan.lost:
            yield plan
    yield _certain_plan(case, views)


def _certain_plan(case: RepairCase, views: Views) -> RepairPlan:
    """Only records on which every holder agrees, because no hash proves them."""
    disputed = set[int]()
    while True:
        spans = tuple(runs_of(sorted(disputed)))
        donors = [donor.without(spans) for donor in case.donors]
        plan = plan_repair(case.log, case.scanned, donors, proven=True)
        more = set(disputed_in(plan, views, case.donors))
        if not more:
            return replace(plan, disputed=spans)
        disputed |= more


@dataclass
class _DryRun:
    """Assembles logs without writing them. `found`: the hashes of the assembled logs."""

    found: list[str] = field(default_factory=list)

    def write(self, data: memoryview | bytes) -> None: ...

    def close(self, kept: ArchivedLog) -> None:
        self.found.append(kept.sha256)

    def abort(self) -> None: ...


def _carry_out(
    case: RepairCase, plan: RepairPlan, views: Views, sink: RepairSink, accept_loss: bool
) -> tuple[RepairPlan, bool]:
    """The plan that was carried out, and whether anything was written. If a donor has become unreadable, other donors
    give its records, or they are lost."""
    while accept_loss or not plan.lost:
        logs = sink.logs_of(plan)
        failed = next((part for log in logs if (part := _write(plan, log, views, sink.new_log(plan, log.first)))), None)
        if failed is None:
            return plan, True
        if isinstance(failed, OwnBytes):
            break
        case = case.without(failed.donor)
        plan = settled_plan(case, views)
    return plan, False


def _copy_snapshot(snapshot: ArchivedSnapshot, source: BackupView, views: Views, sink: RepairSink) -> BackupView | None:
    """The view that it was copied from."""
    for other in (source, *(each for each in views.others if each is not source)):
        if other is source or _holds(other, snapshot):
            try:
                sink.new_snapshot(snapshot, other)
            except UNREADABLE:
                continue
            return other
    return None


def _write(plan: RepairPlan, log: NewLog, views: Views, writer: LogWriter) -> OwnBytes | DonorRecords | None:
    """Returns None, or the part that cannot be read."""
    summed = hashlib.sha256(header())

    def give(data: memoryview) -> None:
        summed.update(data)
        writer.write(data)

    try:
        writer.write(header())
        found = []
        for part in log.parts:
            try:
                found.append(_give(plan, part, views, give))
            except UNREADABLE:
                return part
        writer.close(_archived(plan.of, log, found, summed.hexdigest()))
        return None
    finally:
        writer.abort()


def _give(plan: RepairPlan, part: OwnBytes | DonorRecords, views: Views, give: Sink) -> ScannedLog:
    reading, first, last = views.reading, part.first, part.last
    if isinstance(part, DonorRecords):
        return reading.give(views.all[part.donor.view], part.donor.log, first, last, give)
    begins = first if part.begins is None else part.begins
    return reading.give_from(views.view, plan.of, first, last, give, start=part.start, begins=begins)


def _archived(of: ArchivedLog, log: NewLog, found: Sequence[ScannedLog], sha256: str) -> ArchivedLog:
    inside = tuple(border for border in of.borders if log.first <= border[1] <= log.last)
    return msgspec.structs.replace(
        of,
        first=log.first,
        last=log.last,
        records=sum(part.records for part in found),
        min_time_ms=min(part.min_time_ms for part in found),
        max_time_ms=max(part.max_time_ms for part in found),
        last_adler=found[-1].last_adler,
        ending=of.ending if log.last == of.last else LogFileEnding.DAMAGED,
        size_bytes=HEADER_BYTES + sum(part.size_bytes for part in found),
        sha256=sha256,
        borders=inside,
    )


def _snapshots(
    checks: ObjectChecks, views: Views
) -> tuple[tuple[tuple[ArchivedSnapshot, BackupView], ...], tuple[ArchivedSnapshot, ...]]:
    """Snapshots with a copy, and those without. Other members have no copy: their snapshots are of other moments. Only
    an earlier backup may hold the same file, or this one, if only the stored object is damaged."""
    copied, dropped = [], []
    for kept in checks.damaged:
        if isinstance(kept, ArchivedLog):
            continue
        asked = views.others if kept in checks.unusable else views.all
        source = next((other for other in asked if _holds(other, kept)), None)
        if source is None:
            dropped.append(kept)
        else:
            copied.append((kept, source))
    return tuple(copied), tuple(dropped)


def _holds(view: BackupView, kept: ArchivedSnapshot) -> bool:
    return any(
        (other.sha256, other.name) == (kept.sha256, kept.name) and _sha256(view, other) == kept.sha256
        for other in view.snapshots
    )


def _sha256(view: BackupView, snapshot: ArchivedSnapshot) -> str | None:
    try:
        with view.open(snapshot) as source:
            hashed = Hashed(source)
            hashed.drain()
    except UNREADABLE:
        return None
    return hashed.sha256
