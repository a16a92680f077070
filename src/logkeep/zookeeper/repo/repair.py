"""A backup in a repository that is mended: new objects beside the damaged ones, and one commit that lets them serve.

All backups that need a damaged object are served by the new ones from then on. Killed before the commit, everything is
as it was, and what was written is garbage; killed after it, it only remains to verify. An object of which nothing can
be had stays as it is, and so does one whose records are all whole and not those that were archived. Where something
stays lost, only who accepts the loss gets what is left of it: no later repair fills such a hole. What was merged from
pieces of several backups is cut then, so that each finds what is left of its own.
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
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.packing import RepairedLog
from logkeep.zookeeper.repair.cuts import cut_at, cuts_for
from logkeep.zookeeper.repair.plan import DonorRecords, NewLog, Repair, RepairPlan
from logkeep.zookeeper.repair.run import BackupRepairPlan, foresee, repair
from logkeep.zookeeper.repo.record import ROLE, EnsembleRecord
from logkeep.zookeeper.repo.repair_commit import Mend, commit_mends, run_of, same_bytes
from logkeep.zookeeper.repo.repair_donors import Helping, donors_of
from logkeep.zookeeper.repo.repair_fitness import why_left, why_not
from logkeep.zookeeper.repo.view import ArchiveView, view_of
from logkeep.zookeeper.repo.whole_objects import whole_view
from logkeep.zookeeper.timeline.object_check import Kept, ObjectChecks, check_data, check_files, named
from logkeep.zookeeper.verify.run import Level

_FAILED: Final = "it could not be read any more when its turn came"


@dataclass
class ArchiveRepairSink:
    """See `logkeep.zookeeper.repair.run.RepairSink`. `donors`: names of the views that records may come from."""

    session: Writing
    entry: BackupEntry
    view: ArchiveView
    donors: Sequence[str]
    mended: dict[Kept, Mend] = field(default_factory=dict)
    """What was replaced; filled by `complete`."""
    _logs: list[tuple[RepairPlan, ArchivedLog, StoredObject]] = field(default_factory=list)
    _snapshots: list[tuple[ArchivedSnapshot, str, StoredObject]] = field(default_factory=list)

    def logs_of(self, repair: RepairPlan) -> Sequence[NewLog]:
        """Cut so that every backup finds what is left of its pieces, and no further than the object answers for."""
        if not repair.lost:
            return repair.logs
        end = self.view.row_of(repair.of).end
        pieces = pieces_in(self.session.place, self.session.folded, repair.of)
        firsts = cuts_for(repair.lost, pieces, repair.of.borders)
        return [log for log in cut_at(repair, {*firsts, end}) if log.first < end]

    def new_log(self, repair: RepairPlan, first: int) -> RepairedLog:
        writer = self._opened(self.view.row_of(repair.of), first)
        return RepairedLog(writer, lambda kept, stored: self._logs.append((repair, kept, stored)))

    def new_snapshot(self, snapshot: ArchivedSnapshot, source: BackupView) -> None:
        row = self.view.row_of(snapshot)
        writer = self._opened(row, row.first)
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
        self.mended = {kept: mend for kept, mend in self._mends(repairs, dropped) if mend is not None}
        if not self.mended:
            return self.view
        commit_mends(self.session, list(self.mended.values()))
        return view_of(self.session.place, self.entry)

    def _mends(
        self, repairs: Sequence[RepairPlan], dropped: Sequence[ArchivedSnapshot]
    ) -> Iterator[tuple[Kept, Mend | None]]:
        for plan in repairs:
            new = [(kept, stored) for of, kept, stored in self._logs if of is plan]
            fits = not why_not(plan, accept_loss=True)
            yield plan.of, _mend_of(plan, self.view.row_of(plan.of), new, told_of(plan, self.donors)) if fits else None
        for snapshot, donor, stored in self._snapshots:
            row = self.view.row_of(snapshot)
            same = same_bytes(row, stored)
            told = f"{named(snapshot)}: {origin(donor, self.view.name)}"
            yield snapshot, None if same is None else Mend(row, (same,), told)
        if len(dropped) < len(self.view.snapshots):
            for snapshot in dropped:
                told = f"{named(snapshot)}: not used any more, no other copy was found"
                yield snapshot, Mend(self.view.row_of(snapshot), (), told)

    def _opened(self, row: Segment, first: int) -> StoredWriter:
        token, place = self.session.tokens(), self.session.place
        name = layout.object_of(place.source, row.log, first, token, row.codec)
        return StoredWriter(place.store.open_new(name), name, token, row.codec)


def pieces_in(place: SourceRef, folded: Folded, log: ArchivedLog) -> set[tuple[int, int]]:
    """What backups know of the transactions of a log: first and last of every piece that has any of them."""
    found: set[tuple[int, int]] = set()
    for entry in folded.completed:
        record = read_attachment(place, read_manifest(place, entry), ROLE, EnsembleRecord)
        logs = record.logs if record is not None else ()
        same = (one for one in logs if (one.member, one.history) == (log.member, log.history))
        found |= {(one.first, one.last) for one in same if one.first <= log.last and log.first <= one.last}
    return found


def _mend_of(plan: RepairPlan, row: Segment, new: Sequence[tuple[ArchivedLog, StoredObject]], told: str) -> Mend | None:
    """None where nothing can be made of it."""
    if plan.lost:
        return Mend(row, tuple(run_of(row, kept, stored) for kept, stored in new), told) if new else None
    same = [same_bytes(row, stored) for _, stored in new]
    whole = tuple(each for each in same if each is not None)
    return Mend(row, whole, told) if len(whole) == len(same) == 1 else None


def told_of(plan: RepairPlan, donors: Sequence[str]) -> str:
    """What a repair is, for people: provenance."""
    told = [f"{named(plan.of)}: {plan.kind}"]
    told += [f"{_span(part.first, part.last)} taken from {_from(part, donors)}" for part in plan.spliced]
    told += [f"lost transactions {_span(first, last)}" for first, last in plan.lost]
    told += [f"others do not agree on {_span(first, last)}" for first, last in plan.disputed]
    return ", ".join([*told, f"sha256 {'is' if plan.kind is Repair.REPACKED else 'was'} {plan.of.sha256}"])


def origin(donor: str, backup: str) -> str:
    """Where a snapshot is from that is written again."""
    itself = "its own bytes, which are whole" if donor == backup else f"backup {donor}, byte for byte"
    return f"written again from {itself}"


def _span(first: int, last: int) -> str:
    return hex_zxid(first) if first == last else f"{hex_zxid(first)} to {hex_zxid(last)}"


def _from(part: DonorRecords, donors: Sequence[str]) -> str:
    return f"{donors[part.donor.view]}, member {part.donor.log.member}"


@dataclass(frozen=True)
class Mended:
    """What a repair came to. `foreseen` holds what was decided, `mends` what was really replaced."""

    foreseen: BackupRepairPlan
    mends: dict[Kept, Mend]
    names: dict[Kept, str]
    """Under which the damaged objects lie."""
    donors: tuple[str, ...]
    before: Folded
    """The chain as it was."""
    left: dict[Kept, str]
    """What stays as it is, and why."""
    unread: int = 0
    """Other backups that may have what is lost and were not looked at."""


@dataclass(frozen=True)
class Repairing:
    """Everything a repair needs besides the backup. `beside`: directories of servers that may have what is lost."""

    place: SourceRef
    clock: Clock
    tokens: TokenSource
    lease_ttl: timedelta = DEFAULT_TTL
    beside: tuple[BackupView, ...] = ()
    accept_loss: bool = False
    progress: Progress = lambda _: None

    def preview(self, backup_id: BackupId) -> Mended:
        """What a run would do. Writes nothing."""
        folded = read_chain(self.place)
        looked = self._looked(folded, backup_id)
        view, helping = looked.view, looked.helping
        found = foresee(view, earlier=helping.views, beside=self.beside, checks=looked.checks)
        return self._told(looked, found, {}, folded)

    def run(self, backup_id: BackupId) -> Mended:
        with writing(self.place, "repair", self.clock, self.tokens, self.lease_ttl) as session:
            before = session.folded
            looked = self._looked(before, backup_id)
            sink = ArchiveRepairSink(session, looked.entry, looked.view, self._called(looked))
            done = repair(
                looked.view,
                sink,
                earlier=looked.helping.views,
                beside=self.beside,
                level=Level.FILES,
                accept_loss=self.accept_loss,
                checks=looked.checks,
            )
            return self._told(looked, done.foreseen, sink.mended, before, ran=True)

    def _looked(self, folded: Folded, backup_id: BackupId) -> "_Looked":
        """Read everything first: what is damaged decides who is asked for it."""
        entry = _entry(folded, backup_id, self.place.source)
        view = whole_view(view_of(self.place, entry, folded))
        checks = check_data(view, check_files(view), self.progress)
        return _Looked(entry, view, checks, donors_of(self.place, folded, view, list(dict.fromkeys(checks.unusable))))

    def _called(self, looked: "_Looked") -> tuple[str, ...]:
        return _called(looked.view, (*self.beside, *looked.helping.views))

    def _told(
        self, looked: "_Looked", found: BackupRepairPlan, mends: dict[Kept, Mend], before: Folded, *, ran: bool = False
    ) -> Mended:
        view = looked.view
        left = dict(why_left(found, len(view.snapshots), accept_loss=self.accept_loss))
        if ran:
            left |= {kept: _FAILED for kept in found.damaged if kept not in mends and kept not in left}
        return Mended(found, mends, _names(view, found), self._called(looked), before, left, looked.helping.unread)


@dataclass(frozen=True)
class _Looked:
    entry: BackupEntry
    view: ArchiveView
    checks: ObjectChecks
    helping: Helping


def _called(view: ArchiveView, donors: Sequence[BackupView]) -> tuple[str, ...]:
    return (f"backup {view.name} itself", *(_name(other) for other in donors))


def _name(other: BackupView) -> str:
    return f"backup {other.name}" if isinstance(other, ArchiveView) else f"the directories of {other.name}"


def _names(view: ArchiveView, found: BackupRepairPlan) -> dict[Kept, str]:
    return {kept: view.object_name(kept) for kept in found.damaged}


def _entry(folded: Folded, backup_id: BackupId, source: str) -> BackupEntry:
    entry = folded.entry(backup_id)
    if entry is None:
        raise UnknownBackup("there is no such backup", subject=f"{source} {backup_id}")
    return entry
