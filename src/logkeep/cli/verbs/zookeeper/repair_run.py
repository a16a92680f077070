"""Repair a backup of ZooKeeper, and verify every backup that it changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from logkeep.cli.frame.execute import Run
from logkeep.cli.terminal.text import plural
from logkeep.cli.verbs.zookeeper.members import given_members, member_places
from logkeep.cli.verbs.zookeeper.repair_report import RepairedObject, RepairedToo, ZooKeeperRepairReport
from logkeep.config.options import ACCEPT_LOSS, LEASE_TTL, ZK_DATA_DIRS
from logkeep.engine.inline import InlineEngine
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.ids import BackupId
from logkeep.model.work import Progress
from logkeep.reports.backups import read_source
from logkeep.repository.backups.verdicts import verdicts
from logkeep.repository.backups.verification import stored_verifications
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier, VerifyResult, sharing
from logkeep.zookeeper.model.archived import ArchivedFile, Member
from logkeep.zookeeper.repair.plan import RepairPlan
from logkeep.zookeeper.repo.repair import RepairOutcome, RepairRun, origin, provenance_of
from logkeep.zookeeper.repo.verify import DeepVerification
from logkeep.zookeeper.timeline.object_check import named
from logkeep.zookeeper.verify.directory_view import DirectoryView, directory_view
from logkeep.zookeeper.verify.run import Level


def repair_backup(run: Run, place: SourceRef, backup_id: BackupId) -> ZooKeeperRepairReport:
    """Preview, ask, repair, verify."""
    entry = read_source(place, run.clock()).completed(str(backup_id))
    task = RepairRun(place, run.clock, run.token, run[LEASE_TTL], tuple(_directories(run)), run[ACCEPT_LOSS])
    with _progress(run, entry.summary.stored_bytes) as progress:
        found = replace(task, progress=progress).preview(backup_id)
    changes = [kept for kept, kind in _kinds(found) if kind != "left"]
    if run.dry_run or not changes:
        return _report(run, place, backup_id, found, None, ())
    damaged = plural(len(changes), "damaged object")
    run.confirm(f"repair {damaged} of backup {backup_id}? The original objects are kept.")
    with _progress(run, entry.summary.stored_bytes) as progress:
        done = replace(task, progress=progress).run(backup_id)
    verified = _verify(run, place, backup_id)
    also = tuple(
        RepairedToo(id=other, verdict=_verify(run, place, other).document.verdict)
        for other in _sharing(place, done, backup_id)
    )
    return _report(run, place, backup_id, done, verified, also)


def _directories(run: Run) -> Iterator[DirectoryView]:
    """Servers' directories whose logs may have lost records. The servers are not contacted: records must match."""
    if run[ZK_DATA_DIRS]:
        for place in member_places(given_members(run)):
            member = Member(name=place.name, data_dir=str(place.data_dir), log_dir=str(place.log_dir))
            yield directory_view(member)


def _verify(run: Run, place: SourceRef, backup_id: BackupId) -> VerifyResult:
    """At the level that found the damage, if deeper than `data`: a lower level would not replace its verdict."""
    entry = read_source(place, run.clock()).completed(str(backup_id))
    said = verdicts(each for each, _ in stored_verifications(place)).get(backup_id)
    level = Level.REPLAY if said is not None and said.damaged and said.level in ("replay", "boot") else Level.DATA
    owner, look = this_process(run.token()), DeepVerification(entry, level)
    return Verifier(place, InlineEngine(), owner, run.clock, run.token, deeper=look).verify(backup_id, level)


def _sharing(place: SourceRef, done: RepairOutcome, backup_id: BackupId) -> list[BackupId]:
    """Backups that use repaired objects, and whose latest verdict is damaged."""
    said = verdicts(each for each, _ in stored_verifications(place))
    names = {done.names[kept] for kept in done.repaired}
    needing = sharing(place, done.before, backup_id, names) if names else []
    return [other for other in needing if other in said and said[other].damaged]


def _report(
    run: Run,
    place: SourceRef,
    backup_id: BackupId,
    done: RepairOutcome,
    verified: VerifyResult | None,
    also: tuple[RepairedToo, ...],
) -> ZooKeeperRepairReport:
    return ZooKeeperRepairReport(
        source=place.source,
        id=backup_id,
        objects=tuple(_objects(place, done, str(backup_id))),
        lost=tuple(sorted({lost for plan in done.foreseen.repairs for lost in _lost(plan)})),
        verdict=verified.document.verdict if verified else None,
        findings=verified.findings if verified else (),
        also=also,
        unread=done.unread,
        dry_run=run.dry_run,
    )


def _kinds(done: RepairOutcome) -> Iterator[tuple[ArchivedFile, str]]:
    """The planned or done change of each damaged object."""
    kinds: list[tuple[ArchivedFile, str]] = [(plan.of, plan.kind.value) for plan in done.foreseen.repairs]
    kinds += [(snapshot, "copied") for snapshot, _ in done.foreseen.copied]
    kinds += [(snapshot, "dropped") for snapshot in done.foreseen.dropped]
    for kept, kind in kinds:
        yield kept, "left" if kept in done.left else kind


def _objects(place: SourceRef, done: RepairOutcome, backup: str) -> Iterator[RepairedObject]:
    described: dict[ArchivedFile, tuple[str, tuple[str, ...]]]
    described = {plan.of: (provenance_of(plan, done.donors), tuple(_lost(plan))) for plan in done.foreseen.repairs}
    described |= {kept: (f"{named(kept)}: {origin(by.name, backup)}", ()) for kept, by in done.foreseen.copied}
    described |= {
        kept: (f"{named(kept)}: no other copy was found, it cannot be used", ()) for kept in done.foreseen.dropped
    }
    for kept, kind in _kinds(done):
        yield _object(place, done, kept, kind, *described[kept])


def _object(
    place: SourceRef, done: RepairOutcome, kept: ArchivedFile, kind: str, what: str, lost: tuple[str, ...] = ()
) -> RepairedObject:
    repaired = done.repaired.get(kept)
    new = tuple(layout.segment(place.source, row) for row in repaired.new) if repaired else ()
    return RepairedObject(
        file=f"{kept.member}/{kept.name}",
        object=done.names[kept],
        kind=kind,
        what=what,
        why=done.left.get(kept, ""),
        lost=lost,
        new_objects=new,
    )


@contextmanager
def _progress(run: Run, total_bytes: int) -> Iterator[Progress]:
    """Progress in bytes."""
    sink, done = run.progress(), [0]

    def more(size_bytes: int) -> None:
        done[0] += size_bytes
        sink.update(done[0], 0, 0)

    sink.start("repair", total_bytes, 1)
    try:
        yield more
        sink.update(total_bytes, 1, 0)
    finally:
        sink.finish()


def _lost(plan: RepairPlan) -> Iterator[str]:
    for first, last in plan.lost:
        yield f"{hex_zxid(first)} to {hex_zxid(last)}"
