"""A verification: hold the backup, check it, store the result, also for backups that share damaged objects."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime

import msgspec

from logkeep.errors import Damaged, StoreDenied, UnsafeName
from logkeep.model.findings import Finding, Severity, worst
from logkeep.model.ids import BackupId
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.model.work import Engine
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.backups.certificate import Certificate
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.holds import reading
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import read_manifest, read_trimmed_cuts
from logkeep.repository.backups.trim_floors import trim_findings
from logkeep.repository.backups.verdicts import DAMAGED, GOOD
from logkeep.repository.backups.verification import (
    MAX_STORED_DIGESTS,
    MAX_STORED_FINDINGS,
    MAX_STORED_NAMES,
    LogDigest,
    Verification,
    known_digests,
    put_verification,
)
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.lease import NOTHING_SEEN, Head
from logkeep.repository.chain.owner import Owner
from logkeep.repository.parts import SegmentTable, objects
from logkeep.repository.verify.checks import (
    EVERYTHING,
    CheckedObjects,
    ReadTask,
    VerifySample,
    check_backup,
    check_chain,
    check_data,
    hash_objects,
)
from logkeep.repository.verify.name_versions import backup_findings, commit_findings, versioned_bucket
from logkeep.store.address import Address


@dataclass(frozen=True)
class VerifyResult:
    """The result of a verification."""

    document: Verification
    findings: tuple[Finding, ...]
    """All findings; the stored document has the first thousand."""
    also_damaged: tuple[int, ...]
    """Other backups that share damaged objects."""
    stored: bool
    """False if the store refused the write."""
    read_objects: int = 0
    """How many objects were read, not only listed."""


@dataclass(frozen=True)
class BackupToCheck:
    """A backup whose objects exist, for a check that is deeper than `data`."""

    place: SourceRef
    manifest: Manifest
    rows: SegmentTable
    engine: Engine
    sample: VerifySample
    day: date
    checked: CheckedObjects
    """Collects the findings."""


@dataclass(frozen=True)
class DeeperCheck:
    """The result of a deeper check."""

    level: str
    """The level that was reached, which is not always the requested one."""
    digests: tuple[LogDigest, ...] = ()
    certificate: Certificate | None = None


Deeper = Callable[[BackupToCheck], DeeperCheck]


@dataclass(frozen=True)
class Verifier:
    """Everything a verification needs besides the backup."""

    place: SourceRef
    engine: Engine
    owner: Owner
    clock: Clock
    tokens: TokenSource
    read: ReadTask = hash_objects
    """How objects are read at the level `data`."""
    deeper: Deeper | None = None
    """A check of a kind of source that goes beyond the bytes of objects; replaces `read`."""
    doubts: Callable[[Folded, Manifest], tuple[Finding, ...]] = lambda *_: ()
    """What a backup may lack although all its objects are good."""

    def verify(self, backup_id: BackupId, level: str, sample: VerifySample = EVERYTHING) -> VerifyResult:
        """Check one backup at a level and store the result."""
        checked, proven = CheckedObjects([]), DeeperCheck(level)
        folded = check_chain(self.place, checked)
        versioned, notes = versioned_bucket(self.place.store.url)
        checked.findings += notes
        if versioned is not None:
            checked.findings += commit_findings(versioned, self.place)
        if folded is not None:
            with reading(self.place, backup_id, self.owner, "verify", self.tokens) as entry:
                proven = self._check(folded, entry, level, sample, checked, versioned)
        return self._store_result(backup_id, folded, level, sample, checked, proven)

    def _check(
        self,
        folded: Folded,
        entry: BackupEntry,
        level: str,
        sample: VerifySample,
        checked: CheckedObjects,
        versioned: Address | None,
    ) -> DeeperCheck:
        rows = check_backup(self.place, folded, entry, checked)
        if versioned is not None and rows is not None:
            checked.findings += backup_findings(versioned, self.place, folded, entry, rows)
        if rows is not None and worst(checked.findings) is not Severity.DAMAGE:  # doubts are read from what is whole
            checked.findings += self.doubts(folded, read_manifest(self.place, entry))
            checked.findings += trim_findings(read_trimmed_cuts(self.place, entry))
        if rows is None or level == "files":
            return DeeperCheck(level)
        if self.deeper is None:
            check_data(self.place, rows, self.engine, checked, sample, self._today(), self.read)
            return DeeperCheck("data")
        manifest = read_manifest(self.place, entry)
        try:
            proven = self.deeper(BackupToCheck(self.place, manifest, rows, self.engine, sample, self._today(), checked))
        except Damaged as error:  # of what the check needs to begin: a verdict is stored nevertheless
            if error.subject not in checked.damaged_objects:
                checked.from_error("metadata-damaged", error)
            return DeeperCheck("files")
        self._compare_digests(folded, BackupId(entry.id), proven, checked)
        return proven

    def _compare_digests(
        self, folded: Folded, backup_id: BackupId, proven: DeeperCheck, checked: CheckedObjects
    ) -> None:
        """The same backup, decoded again, must give the same records, unless a log was folded since."""
        known = known_digests(self.place, backup_id, {f.log: f.generation for f in folded.folds or ()})
        for now in proven.digests:
            before = known.get(now.log)
            trimmed = before is not None and before.start < now.start  # of another range: they cannot be compared
            if before is not None and not trimmed and before != now:
                where = layout.log_root(self.place.source, now.log)
                what = f"its records have the digest {now.digest}; an earlier verification found {before.digest}"
                checked.damage("digest-differs", where, f"{now.log}: {what}")

    def _today(self) -> date:
        return self.clock().date()

    def _store_result(
        self,
        backup_id: BackupId,
        folded: Folded | None,
        level: str,
        sample: VerifySample,
        checked: CheckedObjects,
        proven: DeeperCheck,
    ) -> VerifyResult:
        now = self.clock()
        bad = worst(checked.findings) is Severity.DAMAGE
        document = Verification(
            repository=self.place.repository,
            source=self.place.source,
            id=backup_id,
            level=level if bad else proven.level,
            verdict=DAMAGED if bad else GOOD,
            sample=str(sample),
            time=rfc3339(now),
            head=Head(folded.generation, folded.head) if folded else NOTHING_SEEN,
            objects=checked.objects,
            bytes=checked.bytes,
            findings=tuple(checked.findings[:MAX_STORED_FINDINGS]),
            damaged_objects=checked.damaged_objects[:MAX_STORED_NAMES],
            digests=proven.digests[:MAX_STORED_DIGESTS],
            certificate=proven.certificate or msgspec.UNSET,
        )
        stored = self._store([backup_id], document, now)
        also = self._sharing(backup_id, checked) if folded and bad else []
        stored = self._store(also, document, now) and stored
        return VerifyResult(document, tuple(checked.findings), tuple(also), stored, checked.read_objects)

    def _sharing(self, backup_id: BackupId, checked: CheckedObjects) -> list[BackupId]:
        """Other backups with this damage. Reads the chain again: one that was committed meanwhile may share it too."""
        return sharing(self.place, read_chain(self.place), backup_id, set(checked.damaged_objects))

    def _store(self, ids: list[BackupId], document: Verification, now: datetime) -> bool:
        """Store the result for these backups. A good sample never disproves damage."""
        if document.verdict == GOOD and document.sample != str(EVERYTHING):
            document = msgspec.structs.replace(document, level="files", digests=())
        try:
            for backup_id in ids:
                put_verification(self.place, msgspec.structs.replace(document, id=backup_id), now, self.tokens())
        except StoreDenied:
            return False
        return True


def sharing(place: SourceRef, folded: Folded, but: BackupId, damaged: set[str]) -> list[BackupId]:
    """Other completed backups that need one of these objects."""
    reader = PartReader(place)
    others = [e for e in folded.completed if e.id != but]
    return [BackupId(e.id) for e in others if damaged & _needs(place, folded, e, reader)]


def _needs(place: SourceRef, folded: Folded, entry: BackupEntry, reader: PartReader) -> set[str]:
    """Names of all objects that a backup needs. Unreadable metadata is found by its own verification."""
    try:
        manifest = read_manifest(place, entry)
        parts = served_parts(manifest, folded)
        names = {layout.part(place.source, p.token) for p in parts}
        buried = burials_by_log(folded, entry.id, [c.log for c in manifest.cut])
        names |= {layout.buried(place.source, b.object.token) for some in buried.values() for b in some}
        rows = rows_of(reader, manifest, parts)
    except (Damaged, UnsafeName) as error:
        return {error.subject}
    return names | {name for _, name, _, _ in objects(rows, place.source)}
