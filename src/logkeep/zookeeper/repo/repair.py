"""Repair a backup in a repository: write new objects beside the damaged ones, and replace those with one commit.

From then on all backups that need a damaged object use the new ones. A process that is killed before the commit leaves
everything as it was, and its objects are garbage; one that is killed after it leaves only the verification to do. An
object stays as it is if nothing of it can be recovered, or if its records are readable but not the archived ones. Where
transactions stay lost, the rest of the object is only kept if the user accepts the loss: no later repair can fill such
a hole. An object that was merged from pieces of several backups is then cut, so that each backup finds its own rest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from logkeep.errors import UnknownBackup
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.ids import BackupId
from logkeep.model.segments import Segment
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import Progress
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.lease import DEFAULT_TTL
from logkeep.repository.chain.write_session import Writing, writing
from logkeep.repository.object_writer import StoredObject, StoredWriter
from logkeep.zookeeper.model.archived import ArchivedFile, ArchivedLog, ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.packing import RepairedLog
from logkeep.zookeeper.repair.cuts import cut_at, cuts_for
from logkeep.zookeeper.repair.plan import NewLog, Repair, RepairPlan
from logkeep.zookeeper.repair.run import BackupRepairPlan, plan_backup_repair, repair
from logkeep.zookeeper.repo.record import ROLE, EnsembleRecord
from logkeep.zookeeper.repo.repair_commit import ObjectRepair, commit_repairs, run_of, same_bytes
from logkeep.zookeeper.repo.repair_donors import DonorBackups, find_donors
from logkeep.zookeeper.repo.view import ArchiveView, view_of
from logkeep.zookeeper.repo.whole_objects import whole_view
from logkeep.zookeeper.timeline.object_check import ObjectChecks, check_data, check_files, named
from logkeep.zookeeper.verify.run import Level

_FAILED: Final = "it could no longer be read during the repair"


@dataclass
class ArchiveRepairSink:
    """A `logkeep.zookeeper.repair.run.RepairSink`. `donors`: names of the views that records may come from."""

    session: Writing
    entry: BackupEntry
    view: ArchiveView
    donors: Sequence[str]
    repaired: dict[ArchivedFile, ObjectRepair] = field(default_factory=dict)
    """The replaced objects; filled by `complete`."""
    _logs: list[tuple[RepairPlan, ArchivedLog, StoredObject]] = field(default_factory=list)
    _snapshots: list[tuple[ArchivedSnapshot, str, StoredObject]] = field(default_factory=list)

    def logs_of(self, repair: RepairPlan) -> Sequence[NewLog]:
        """Cut so that every backup finds what is left of its pieces, up to the end of the object's row."""
        if not repair.lost:
            return repair.logs
        end = self.view.row_of(repair.of).end
        pieces = pieces_in(self.session.place, self.session.folded, repair.of)
        firsts = cuts_for(repair.lost, pieces, repair.of.borders)
        return [log for log in cut_at(repair, {*firsts, end}) if log.first < end]

    def new_log(self, repair: RepairPlan, first: int) -> RepairedLog:
        writer = self._open(self.view.row_of(repair.of), first)
        return RepairedLog(writer, lambda kept, stored: self._logs.append((repair, kept, stored)))

    def new_snapshot(self, snapshot: ArchivedSnapshot, source: BackupView) -> None:
        row = self.view.row_of(snapshot)
        writer = self._open(row, row.first)
        held = next(s for s in source.snapshots if (s.name, s.sha256) == (snapshot.name, snapshot.sha256))
        try:
            with source.open(held) as file:
                while piece := file.read(1 << 20):
                    writer.write(piece)
            self._snapshots.append((snapshot, source.name, writer.close()))
        finally:
            writer.abort()

    def complete(self, repairs: Sequence[RepairPlan], dropped: Sequence[ArchivedSnapshot]) -> ArchiveView:
        """The backup as it is from now on."""
        self.repaired = {kept: one for kept, one in self._object_repairs(repairs, dropped) if one is not None}
        if not self.repaired:
            return self.view
        commit_repairs(self.session, list(self.repaired.values()))
        return view_of(self.session.place, self.entry)

    def _object_repairs(
        self, repairs: Sequence[RepairPlan], dropped: Sequence[ArchivedSnapshot]
    ) -> Iterator[tuple[ArchivedFile, ObjectRepair | None]]:
        for plan in repairs:
            new = [(kept, stored) for of, kept, stored in self._logs if of is plan]
            fits = not why_unusable(plan, accept_loss=True)
            text = provenance_of(plan, self.donors)
            yield plan.of, _log_repair(plan, self.view.row_of(plan.of), new, text) if fits else None
        for snapshot, donor, stored in self._snapshots:
            row = self.view.row_of(snapshot)
            same = same_bytes(row, stored)
            text = f"{named(snapshot)}: {origin(donor, self.view.name)}"
            yield snapshot, None if same is None else ObjectRepair(row, (same,), text)
        if len(dropped) < len(self.view.snapshots):
            for snapshot in dropped:
                text = f"{named(snapshot)}: not used any more, no other copy was found"
                yield snapshot, ObjectRepair(self.view.row_of(snapshot), (), text)

    def _open(self, row: Segment, first: int) -> StoredWriter:
        token, place = self.session.tokens(), self.session.place
        name = layout.object_of(place.source, row.log, first, token, row.codec)
        return StoredWriter(place.store.open_new(name), name, token, row.codec)


def pieces_in(place: SourceRef, folded: Folded, log: ArchivedLog) -> set[tuple[int, int]]:
    """First and last transaction of every piece, of any backup, that overlaps a log."""
    found: set[tuple[int, int]] = set()
    for entry in folded.completed:
        record = read_attachment(place, read_manifest(place, entry), ROLE, EnsembleRecord)
        logs = record.logs if record is not None else ()
        same = (one for one in logs if (one.member, one.history) == (log.member, log.history))
        found |= {(one.first, one.last) for one in same if one.first <= log.last and log.first <= one.last}
    return found


def _log_repair(
    plan: RepairPlan, row: Segment, new: Sequence[tuple[ArchivedLog, StoredObject]], text: str
) -> ObjectRepair | None:
    """None where nothing usable was written."""
    if plan.lost:
        return ObjectRepair(row, tuple(run_of(row, kept, stored) for kept, stored in new), text) if new else None
    same = [same_bytes(row, stored) for _, stored in new]
    whole = tuple(each for each in same if each is not None)
    return ObjectRepair(row, whole, text) if len(whole) == len(same) == 1 else None


def provenance_of(plan: RepairPlan, donors: Sequence[str]) -> str:
    """How a log was repaired, for people."""
    parts = [f"{named(plan.of)}: {plan.kind}"]
    parts += [
        f"{_span(part.first, part.last)} taken from {donors[part.donor.view]}, member {part.donor.log.member}"
        for part in plan.spliced
    ]
    parts += [f"lost transactions {_span(first, last)}" for first, last in plan.lost]
    parts += [f"others do not agree on {_span(first, last)}" for first, last in plan.disputed]
    return ", ".join([*parts, f"sha256 {'is' if plan.kind is Repair.REPACKED else 'was'} {plan.of.sha256}"])


def origin(donor: str, backup: str) -> str:
    """Where the bytes of a repaired snapshot are from."""
    itself = "its own bytes, which are whole" if donor == backup else f"backup {donor}, byte for byte"
    return f"written again from {itself}"


def _span(first: int, last: int) -> str:
    return hex_zxid(first) if first == last else f"{hex_zxid(first)} to {hex_zxid(last)}"


def unrepaired(found: BackupRepairPlan, snapshots: int, *, accept_loss: bool) -> Iterator[tuple[ArchivedFile, str]]:
    """Objects that stay as they are, and why. `snapshots`: how many the backup has. Pure."""
    for plan in found.repairs:
        if why := why_unusable(plan, accept_loss=accept_loss):
            yield plan.of, why
    for snapshot in found.dropped:
        if not accept_loss:
            yield snapshot, "there is no other copy; with --accept-loss it is not used any more"
        elif len(found.dropped) >= snapshots:
            yield snapshot, "there is no other copy, and without it the backup has no snapshot at all"


def why_unusable(plan: RepairPlan, *, accept_loss: bool) -> str:
    """Why the repaired log may not replace the damaged one; empty: it may. Pure."""
    if not plan.logs:
        return "nothing of it can be read, and there is no other copy"
    if not plan.lost:
        return "" if plan.whole else "the records that were found do not have the hash of the archived ones"
    why = "other copies differ in some records" if plan.disputed else "transactions stay lost"
    return "" if accept_loss else f"{why}; --accept-loss keeps the rest, for good"


@dataclass(frozen=True)
class RepairOutcome:
    """The result of a repair. `foreseen` holds what was decided, `repaired` what was replaced."""

    foreseen: BackupRepairPlan
    repaired: dict[ArchivedFile, ObjectRepair]
    names: dict[ArchivedFile, str]
    """Of the damaged objects, in the store."""
    donors: tuple[str, ...]
    before: Folded
    """The chain as it was."""
    left: dict[ArchivedFile, str]
    """Objects that stay as they are, and why."""
    unread: int = 0
    """Number of other backups that may have what is lost and were not read."""


@dataclass(frozen=True)
class RepairRun:
    """Everything a repair needs besides the backup. `beside`: directories of servers that may have what is lost."""

    place: SourceRef
    clock: Clock
    tokens: TokenSource
    lease_ttl: timedelta = DEFAULT_TTL
    beside: tuple[BackupView, ...] = ()
    accept_loss: bool = False
    progress: Progress = lambda _: None

    def preview(self, backup_id: BackupId) -> RepairOutcome:
        """What a run would do. Writes nothing."""
        folded = read_chain(self.place)
        damage = self._read(folded, backup_id)
        found = plan_backup_repair(damage.view, earlier=damage.donors.views, beside=self.beside, checks=damage.checks)
        return self._outcome(damage, found, {}, folded)

    def run(self, backup_id: BackupId) -> RepairOutcome:
        with writing(self.place, "repair", self.clock, self.tokens, self.lease_ttl) as session:
            before = session.folded
            damage = self._read(before, backup_id)
            sink = ArchiveRepairSink(session, damage.entry, damage.view, self._donor_names(damage))
            done = repair(
                damage.view,
                sink,
                earlier=damage.donors.views,
                beside=self.beside,
                level=Level.FILES,
                accept_loss=self.accept_loss,
                checks=damage.checks,
            )
            return self._outcome(damage, done.plan, sink.repaired, before, ran=True)

    def _read(self, folded: Folded, backup_id: BackupId) -> "_BackupDamage":
        """Read the whole backup first: the donors depend on what is damaged."""
        entry = folded.entry(backup_id)
        if entry is None:
            raise UnknownBackup("there is no such backup", subject=f"{self.place.source} {backup_id}")
        view = whole_view(view_of(self.place, entry, folded))
        checks = check_data(view, check_files(view), self.progress)
        donors = find_donors(self.place, folded, view, list(dict.fromkeys(checks.unusable)))
        return _BackupDamage(entry, view, checks, donors)

    def _donor_names(self, damage: "_BackupDamage") -> tuple[str, ...]:
        donors = (*self.beside, *damage.donors.views)
        names = (f"backup {d.name}" if isinstance(d, ArchiveView) else f"the directories of {d.name}" for d in donors)
        return (f"backup {damage.view.name} itself", *names)

    def _outcome(
        self,
        damage: "_BackupDamage",
        found: BackupRepairPlan,
        repaired: dict[ArchivedFile, ObjectRepair],
        before: Folded,
        *,
        ran: bool = False,
    ) -> RepairOutcome:
        view = damage.view
        left = dict(unrepaired(found, len(view.snapshots), accept_loss=self.accept_loss))
        if ran:
            left |= {kept: _FAILED for kept in found.damaged if kept not in repaired and kept not in left}
        names = {kept: view.object_name(kept) for kept in found.damaged}
        return RepairOutcome(found, repaired, names, self._donor_names(damage), before, left, damage.donors.unread)


@dataclass(frozen=True)
class _BackupDamage:
    """A backup, its damage, and the backups that may help."""

    entry: BackupEntry
    view: ArchiveView
    checks: ObjectChecks
    donors: DonorBackups
