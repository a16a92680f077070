"""Verification levels `files` and `data`: each stored object against what the backup says about it."""

import hashlib
import io
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import msgspec

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.zookeeper.txnlog import ScannedLog, scan
from logkeep.model.findings import Severity
from logkeep.model.work import Progress
from logkeep.zookeeper.model.archived import ArchivedFile, ArchivedLog, ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.model.snapshot_scan import Hashed, read_facts
from logkeep.zookeeper.model.spans import inside
from logkeep.zookeeper.timeline.log_check import good_runs, log_findings, lost_of

_CHUNK = 1 << 20
_BRING_BACK = "restore the object from a copy, or splice what is lost from another member or an earlier backup"
_GONE = "archived transactions are gone"
_UNSEALED = "its content is undamaged, but the stored object is not what was written"
_WRITE_AGAIN = "nothing of it is lost: a repair (`zkbackup verify --fix`, `logkeep zookeeper repair`) writes it again"
LARGEST_SALVAGED = 32 << 20
"""Longer records are not searched for after damage: any bytes may look like a length, and memory is allocated."""


@dataclass(frozen=True)
class ObjectChecks:
    seen: tuple[FileFinding, ...] = ()
    unusable: tuple[ArchivedFile, ...] = ()
    """Objects that a plan must not use."""
    objects: int = 0
    bytes: int = 0
    scans: dict[ArchivedLog, ScannedLog] = field(default_factory=dict)
    """Of logs that are not what was written: their remaining records."""
    unsealed: tuple[ArchivedFile, ...] = ()
    """The content is undamaged; the stored bytes are not those that were written."""

    @property
    def damaged(self) -> tuple[ArchivedFile, ...]:
        """Files that must be written again."""
        return tuple(dict.fromkeys((*self.unusable, *self.unsealed)))


def named(kept: ArchivedFile) -> str:
    """The name in findings: one file may be archived in several pieces."""
    piece = f"@{kept.first:x}" if isinstance(kept, ArchivedLog) and kept.name != f"log.{kept.first:x}" else ""
    return f"{kept.member}/{kept.name}{piece}"


def check_files(view: BackupView) -> ObjectChecks:
    """Presence and size."""
    checks = ObjectChecks()
    everything: list[ArchivedFile] = [*view.snapshots, *view.logs]
    for kept in everything:
        try:
            with view.open(kept) as source:
                size = size_of(source)
        except (ObjectMissing, FileNotFoundError) as error:
            checks = _worse(checks, kept, Class.OBJECT_MISSING, f"cannot be read: {error}")
            continue
        except Damaged as error:
            checks = _worse(checks, kept, _damaged(kept), str(error))
            continue
        checks = replace(checks, objects=checks.objects + 1, bytes=checks.bytes + size)
        if size != kept.size_bytes:
            what = f"has {size} bytes instead of {kept.size_bytes}"
            checks = _worse(checks, kept, Class.SIZE_MISMATCH, what)
    return checks


def size_of(source: BinaryIO) -> int:
    if source.seekable():
        return source.seek(0, io.SEEK_END)
    size = 0
    while piece := source.read(_CHUNK):
        size += len(piece)
    return size


def check_data(view: BackupView, checks: ObjectChecks, progress: Progress) -> ObjectChecks:
    """Check every byte. Files of a wrong size are read too, to find where the damage begins."""
    for kept in to_read(view, checks):
        checks = with_object(checks, kept, checked_object(view, kept))
        progress(kept.size_bytes)
    return checks


def to_read(view: BackupView, checks: ObjectChecks) -> list[ArchivedFile]:
    missing = {each.where for each in checks.seen if each.kind is Class.OBJECT_MISSING}
    everything: list[ArchivedFile] = [*view.snapshots, *view.logs]
    return [kept for kept in everything if named(kept) not in missing]


class CheckedObject(msgspec.Struct, frozen=True):
    """Result of reading one object; empty if it is what was written."""

    seen: tuple[FileFinding, ...] = ()
    scanned: ScannedLog | None = None
    """Of a log that is not what was written: its remaining records."""
    whole: bool = False
    """Only the stored object is damaged, not its content."""


def checked_object(view: BackupView, kept: ArchivedFile) -> CheckedObject:
    try:
        found = _log(view, kept) if isinstance(kept, ArchivedLog) else _snapshot(view, kept)
        return _unsealed(view, kept) if not found.seen and view.unsealed(kept) else found
    except ObjectMissing as error:
        return _bad(kept, Class.OBJECT_MISSING, f"cannot be read: {error}")
    except Damaged as error:  # the compressed form
        bad = _damage(kept, _damaged(kept), str(error))
        return _salvaged(view, kept, bad) if isinstance(kept, ArchivedLog) else CheckedObject((bad,))


def with_object(checks: ObjectChecks, kept: ArchivedFile, found: CheckedObject) -> ObjectChecks:
    if not found.seen:
        return checks
    scans = {kept: found.scanned} if isinstance(kept, ArchivedLog) and found.scanned is not None else {}
    return replace(
        checks,
        seen=(*checks.seen, *(each for each in found.seen if each not in checks.seen)),
        unusable=checks.unusable if found.whole else (*checks.unusable, kept),
        unsealed=(*checks.unsealed, kept) if found.whole else checks.unsealed,
        scans={**checks.scans, **scans},
    )


def _snapshot(view: BackupView, snapshot: ArchivedSnapshot) -> CheckedObject:
    with view.open(snapshot) as stored:
        facts = read_facts(Hashed(stored), snapshot.name)
    if facts.sha256 != snapshot.sha256:
        return _bad(snapshot, Class.HASH_MISMATCH, "its bytes are not those that were archived")
    expected = (snapshot.fuzzy_end, snapshot.digest, snapshot.digest_zxid, snapshot.nodes)
    if (facts.fuzzy_end, facts.digest, facts.digest_zxid, facts.nodes) != expected:
        return _bad(snapshot, Class.FACTS_DIFFER, "it does not contain what the backup says about it")
    return CheckedObject()


def _log(view: BackupView, log: ArchivedLog) -> CheckedObject:
    """A log was undamaged when it was archived: any damage happened later."""
    summed = hashlib.sha256()
    with view.open(log) as source:
        size = size_of(source) if source.seekable() else log.size_bytes
    with view.open(log) as source:
        scanned = scan(source, most_bytes=size, sink=summed.update, deep=True)
        _read_to_end(source)
    expected = (log.first, log.last, log.records, log.size_bytes, log.last_adler)
    found = (scanned.first_zxid, scanned.last_zxid, scanned.records, scanned.size_bytes, scanned.last_adler)
    wrong = [] if found == expected else _wrong(log, scanned)
    if not wrong and not scanned.damage and summed.hexdigest() != log.sha256:
        wrong = [_damage(log, Class.HASH_MISMATCH, "its bytes are not those that were archived")]
    if not wrong and not scanned.damage:
        return CheckedObject()
    return CheckedObject((*wrong, *log_findings(named(log), scanned, newest=False)), scanned)


def _read_to_end(source: BinaryIO) -> None:
    """The checksum of the compressed form is at its end: Damaged may be raised there."""
    while not source.seekable() and source.read(_CHUNK):
        pass


def _unsealed(view: BackupView, kept: ArchivedFile) -> CheckedObject:
    bad = replace(_damage(kept, Class.SEAL_BROKEN, _UNSEALED), remedy=_WRITE_AGAIN)
    if not isinstance(kept, ArchivedLog):
        return CheckedObject((bad,), whole=True)
    with view.open(kept) as source:
        return CheckedObject((bad,), scan(source, deep=True), whole=True)


def _salvaged(view: BackupView, log: ArchivedLog, bad: FileFinding) -> CheckedObject:
    """What is left of a log whose compressed form is damaged. Other logs in the same object are not reported."""
    try:
        with view.salvage(log) as source:
            scanned = scan(source, deep=True, largest_record=LARGEST_SALVAGED)
    except (Damaged, ObjectMissing):
        return CheckedObject((bad,))
    gone = lost_of(log, inside(good_runs(scanned), [(log.first, log.last)]))
    lost = (replace(_damage(log, Class.LOST_TRANSACTIONS, _GONE), lost=each) for each in gone)
    return CheckedObject((bad, *lost), scanned)


def _wrong(log: ArchivedLog, scanned: ScannedLog) -> list[FileFinding]:
    """It does not contain what the backup says: the transactions that are gone, if any."""
    gone = [
        replace(_damage(log, Class.LOST_TRANSACTIONS, _GONE), lost=lost) for lost in lost_of(log, good_runs(scanned))
    ]
    return gone or [_damage(log, Class.FACTS_DIFFER, "it does not contain what the backup says about it")]


def _damaged(kept: ArchivedFile) -> Class:
    return Class.LOG_DAMAGED if isinstance(kept, ArchivedLog) else Class.SNAPSHOT_DAMAGED


def _bad(kept: ArchivedFile, kind: Class, what: str) -> CheckedObject:
    return CheckedObject((_damage(kept, kind, what),))


def _worse(checks: ObjectChecks, kept: ArchivedFile, kind: Class, what: str) -> ObjectChecks:
    return replace(checks, seen=(*checks.seen, _damage(kept, kind, what)), unusable=(*checks.unusable, kept))


def _damage(kept: ArchivedFile, kind: Class, what: str) -> FileFinding:
    return FileFinding(kind=kind, severity=Severity.DAMAGE, where=named(kept), what=what, remedy=_BRING_BACK)
