"""The verification levels of ZooKeeper for a backup in a repository, from `data` on.

The repository checks that every object exists. This reads them, with the engine of the verification, and reports its
findings under the names of objects, so that other backups that share a damaged object are known to be damaged too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.model.work import Engine
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.verify.run import BackupToCheck, DeeperCheck
from logkeep.zookeeper.model.archived import ArchivedFile
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.repo.view import ArchiveView, view_of
from logkeep.zookeeper.timeline.object_check import ObjectChecks, named, to_read
from logkeep.zookeeper.verify.boot import Boot
from logkeep.zookeeper.verify.recorded_losses import missing_when_taken
from logkeep.zookeeper.verify.run import Level, VerifiedFiles, verify
from logkeep.zookeeper.verify.tasks import ObjectsUnit, checked_by, shares
from logkeep.zookeeper.verify.verdict import JudgedBackup, judge

_GONE = frozenset({"object-missing", "size-mismatch"})


@dataclass
class DeepVerification:
    """For one verification; `verified` is its result, set by the call."""

    entry: BackupEntry
    level: Level
    boot: Boot | None = None
    scratch: Path | None = None
    verified: VerifiedFiles | None = None
    judged: JudgedBackup | None = None
    """The same with a verdict, as for bundles."""

    def __call__(self, asked: BackupToCheck) -> DeeperCheck:
        view = view_of(asked.place, self.entry)
        everything: list[ArchivedFile] = [*view.snapshots, *view.logs]
        names = {named(kept): view.object_name(kept) for kept in everything}
        gone = {finding.where for finding in asked.checked.findings if finding.code in _GONE}
        found = verify(
            view,
            self.level,
            boot=self.boot,
            scratch=self.scratch,
            objects=_present(view, gone),
            read=lambda _view, checks, _progress: _read(view, checks, asked.engine),
        )
        missing = missing_when_taken(asked.manifest.findings, found, view.members, repaired=bool(view.repaired))
        self.judged = judge(
            found, end=view.record.backup_zxid, where=f"backup {view.name}", repaired_files=view.repaired,
            missing=list(missing),
        )  # fmt: skip
        found = self.judged.verified
        asked.checked.read_objects = sum(name not in gone for name in names.values())
        asked.checked.findings += _findings(found, names, gone)
        self.verified = found
        return DeeperCheck(found.level)


def _read(view: ArchiveView, checks: ObjectChecks, engine: Engine) -> ObjectChecks:
    units = [ObjectsUnit(view.only(share), share) for share in shares(to_read(view, checks))]
    return checked_by(engine, units, checks)


def _present(view: ArchiveView, gone: set[str]) -> ObjectChecks:
    """What the repository's own check has found already."""
    kept: list[ArchivedFile] = [*view.snapshots, *view.logs]
    missing = tuple(one for one in kept if view.object_name(one) in gone)
    there = [one for one in kept if one not in missing]
    seen = tuple(
        FileFinding(kind=Class.OBJECT_MISSING, severity=Severity.DAMAGE, where=named(one), what="is missing")
        for one in missing
    )
    return ObjectChecks(seen, missing, len(there), sum(one.size_bytes for one in there))


def _findings(found: VerifiedFiles, names: dict[str, str], gone: set[str]) -> Iterator[Finding]:
    """Without what the repository's own check has reported, and without the broken seal of an object whose damage is
    reported. A note or a warning on the same object does not replace it."""
    grave = (seen for seen in found.seen if seen.severity is Severity.DAMAGE)
    damaged = {names.get(seen.where) for seen in grave if seen.kind is not Class.SEAL_BROKEN}
    for seen in found.seen:
        finding = seen.finding
        where = names.get(finding.where)
        if (where in gone and finding.code in _GONE) or (where in damaged and seen.kind is Class.SEAL_BROKEN):
            continue
        if where is None:
            yield finding
        else:
            yield Finding(
                code=finding.code, severity=finding.severity, where=where, what=f"{finding.where}: {finding.what}",
                remedy=finding.remedy,
            )  # fmt: skip


def intervals(found: VerifiedFiles) -> Iterable[str]:
    """The intervals that can be restored to, as text, the newest history last."""
    for history, reachable in found.reachable.items():
        for interval in reachable:
            yield f"history {history}: {interval}" if len(found.reachable) > 1 else str(interval)


def ended_at(found: VerifiedFiles) -> str | None:
    return None if found.end is None else hex_zxid(found.end)
