"""The checks of a verification, from the chain down to every byte, as findings that name the object.

    files   the whole chain, manifests, parts; every object exists with its size; segments cover the cut
    data    also the SHA-256 of every object (or of a sample), read in tasks of an engine

Nothing is changed. Kinds of sources add deeper levels.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

import msgspec

from logkeep.errors import Damaged, LogkeepError, ObjectMissing, UnsafeName
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.model.work import Engine, Progress, Task
from logkeep.repository.backups.burials import read_burial
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.cut_coverage import untiled
from logkeep.repository.backups.manifest import LARGEST_ATTACHMENT, Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain, read_whole_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.lease import check_head, read_lease
from logkeep.repository.parts import Expected, SegmentTable, expected, objects, ranges
from logkeep.store.base import Store

UNIT_BYTES = 256 * 1024 * 1024
_UNIT_OBJECTS = 1_000
_CHUNK = 8 * 1024 * 1024
_BRING_BACK = "restore the object from the store's versions or from a copy, then verify again"


@dataclass(frozen=True)
class VerifySample:
    """A share of the objects, a different one each day: `1/7` every day covers everything in a week."""

    part: int = 1
    of: int = 1

    def takes(self, token: str, day: date) -> bool:
        return (int(token, 16) - day.toordinal() * self.part) % self.of < self.part

    def __str__(self) -> str:
        return f"{self.part}/{self.of}"


EVERYTHING = VerifySample()


@dataclass
class CheckedObjects:
    """The results of a verification so far."""

    findings: list[Finding]
    objects: int = 0
    bytes: int = 0
    read_objects: int = 0
    """How many of these objects were read."""

    def damage(self, code: str, where: str, what: str, remedy: str = "") -> None:
        self.findings.append(Finding(code=code, severity=Severity.DAMAGE, where=where, what=what, remedy=remedy))

    def from_error(self, code: str, error: LogkeepError) -> None:
        self.damage(code, error.subject, error.what, error.remedy)

    @property
    def damaged_objects(self) -> tuple[str, ...]:
        """Each name once, in the order in which they were found."""
        return tuple(dict.fromkeys(f.where for f in self.findings if f.severity is Severity.DAMAGE))


def check_chain(place: SourceRef, checked: CheckedObjects) -> Folded | None:
    """Check the whole chain, its checkpoints, and the head in the lease. None if it is broken."""
    try:
        folded = read_whole_chain(place)
        lease = read_lease(place)
        if lease is not None:
            check_head(folded, lease[0].head, layout.commits(place.source))
        if read_chain(place) != folded:
            checked.damage(
                "checkpoint-differs",
                layout.checkpoints(place.source),
                "a checkpoint differs from the chain",
                "run `logkeep repair`",
            )
    except Damaged as error:
        checked.from_error("chain-broken", error)
        return None
    return folded


def check_backup(place: SourceRef, folded: Folded, entry: BackupEntry, checked: CheckedObjects) -> SegmentTable | None:
    """Check manifest, parts, tiling, and that every object exists with its size. None if rows are unreadable."""
    try:
        manifest = read_manifest(place, entry)
        rows = rows_of(PartReader(place), manifest, served_parts(manifest, folded))
    except (Damaged, UnsafeName) as error:
        checked.from_error("metadata-damaged", error)
        return None
    check_attachments(place, manifest, checked)
    check_burials(place, folded, manifest, checked)
    check_tiling(place, manifest, rows, checked)
    check_presence(place, rows, checked)
    return rows


def check_attachments(place: SourceRef, manifest: Manifest, checked: CheckedObjects) -> None:
    for ref in manifest.attachments:
        name = layout.attachment(place.source, BackupId(manifest.id), ref.role, ref.token, ref.codec)
        try:
            data = place.store.get(name, min(ref.size, LARGEST_ATTACHMENT))
        except (ObjectMissing, Damaged, UnsafeName) as error:
            checked.damage("object-missing", name, error.what)
            continue
        if len(data) != ref.size or hashlib.sha256(data).hexdigest() != ref.sha256:
            checked.damage("hash-mismatch", name, "it is not the attachment that was committed", _BRING_BACK)


def check_burials(place: SourceRef, folded: Folded, manifest: Manifest, checked: CheckedObjects) -> None:
    """Every object with offsets that the backup leaves out is the one that was committed."""
    logs = {c.log for c in manifest.cut}
    for burial in folded.burials(manifest.id):
        if burial.log in logs:
            try:
                read_burial(place, burial.object)
            except (Damaged, UnsafeName) as error:
                checked.from_error("buried-offsets-damaged", error)


def check_tiling(place: SourceRef, manifest: Manifest, rows: SegmentTable, checked: CheckedObjects) -> None:
    """A gap that the manifest does not list is damage."""
    for log, code, what in untiled(manifest.cut, manifest.gaps, ranges(rows)):
        checked.damage(code, layout.log_root(place.source, log), what)


def check_presence(place: SourceRef, rows: SegmentTable, checked: CheckedObjects) -> None:
    """Every object exists with its size. One listing per log, not one request per object."""
    wanted = {name: size for _, name, size, _ in objects(rows, place.source)}
    foreign: list[str] = []
    for root in (layout.log_root(place.source, log) for log in rows.logs()):
        for info in place.store.list(root, foreign=foreign):
            size = wanted.pop(info.name, None)
            if size is not None:
                checked.objects += 1
                checked.bytes += size
                if size != info.size:
                    checked.damage("size-mismatch", info.name, f"has {info.size} bytes instead of {size}", _BRING_BACK)
    for name in foreign:
        checked.findings.append(
            Finding(
                code="foreign",
                severity=Severity.WARNING,
                where=name,
                what="not an object of ours; it was left alone",
            )
        )
    for name in wanted:
        checked.damage("object-missing", name, "the object is missing", _BRING_BACK)


class HashUnit(msgspec.Struct, frozen=True):
    """Objects that one task reads: the store, and what each must be."""

    store: Store
    objects: list[Expected]

    @property
    def bytes(self) -> int:
        return sum(each.stored_bytes for each in self.objects)


class HashResult(msgspec.Struct, frozen=True):
    findings: list[Finding]
    objects: int
    bytes: int


def hash_objects(unit: HashUnit, progress: Progress) -> HashResult:
    """A task: read every object of the unit and compare its SHA-256."""
    checked = CheckedObjects([])
    for name, size, sha256, *_ in unit.objects:
        try:
            found = unit.store.head(name).size
            if found != size:
                checked.damage("size-mismatch", name, f"has {found} bytes instead of {size}", _BRING_BACK)
                continue
            actual = stored_sha256(unit.store, name, size, progress)
        except (ObjectMissing, Damaged, UnsafeName) as error:
            checked.damage("object-unreadable", name, error.what)
            continue
        checked.objects += 1
        checked.bytes += size
        if actual != sha256:
            checked.damage("hash-mismatch", name, "the bytes differ from those that were written", _BRING_BACK)
    return HashResult(checked.findings, checked.objects, checked.bytes)


def stored_sha256(store: Store, name: str, size: int, progress: Progress) -> str:
    digest = hashlib.sha256()
    for start in range(0, size, _CHUNK):
        chunk = store.get_range(name, start, min(_CHUNK, size - start))
        digest.update(chunk)
        progress(len(chunk))
    return digest.hexdigest()


def hash_units(store: Store, wanted: Iterable[Expected]) -> Iterator[HashUnit]:
    """Cut a list of objects into units of bounded size."""
    unit: list[Expected] = []
    total = 0
    for one in wanted:
        if unit and (total + one.stored_bytes > UNIT_BYTES or len(unit) >= _UNIT_OBJECTS):
            yield HashUnit(store, unit)
            unit, total = [], 0
        unit.append(one)
        total += one.stored_bytes
    if unit:
        yield HashUnit(store, unit)


ReadTask = Task[HashUnit, HashResult]
"""Reads and compares the objects of a unit; kinds of sources have their own, which check more in the same pass."""


def check_data(
    place: SourceRef,
    rows: SegmentTable,
    engine: Engine,
    checked: CheckedObjects,
    sample: VerifySample,
    day: date,
    task: ReadTask = hash_objects,
) -> None:
    """Read every object of the sample. Missing objects were reported by `check_presence`."""
    missing = {f.where for f in checked.findings if f.code == "object-missing"}
    wanted = [
        each for token, each in expected(rows, place.source) if sample.takes(token, day) and each.name not in missing
    ]
    checked.read_objects = len(wanted)
    units = list(hash_units(place.store, wanted))
    for result in engine.map(task, units, HashResult, label="verify", weight=lambda u: u.bytes):
        checked.findings.extend(result.findings)
