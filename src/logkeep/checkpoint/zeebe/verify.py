"""Verifies one backup of a Zeebe store: every file of every completed copy, and the cut over all partitions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from logkeep.checkpoint.zeebe.cut import CutResult, LogInCut, check_cut, rows_of
from logkeep.checkpoint.zeebe.findings import BRING_BACK, TRIM, damage
from logkeep.checkpoint.zeebe.inventory import ZeebeBackup, ZeebeCopy
from logkeep.checkpoint.zeebe.layouts import SEGMENTS, SNAPSHOT
from logkeep.checkpoint.zeebe.log_check import check_log, from_first_entry, in_order
from logkeep.checkpoint.zeebe.segment_task import CheckedSegment, SegmentUnit, scan_segment
from logkeep.checkpoint.zeebe.snapshot_check import check_snapshot
from logkeep.checkpoint.zeebe.snapshot_task import ReadFile, ReadSnapshot, SnapshotFile, read_snapshot, snapshot_units
from logkeep.checkpoint.zeebe.stored_file import StoredFileReader
from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.zeebe.manifests import CopyManifest, CopyState, StoredFile
from logkeep.formats.zeebe.segment_descriptor import named_segment
from logkeep.formats.zeebe.snapshots import MAX_CHECKSUMS, METADATA_FILE, checksum_file
from logkeep.model.findings import Finding, Severity, note
from logkeep.model.plurals import plural
from logkeep.model.work import Engine
from logkeep.store.base import Store

LABEL = "verify"


@dataclass(frozen=True)
class VerifiedCopy:
    """One completed copy, read completely."""

    copy: ZeebeCopy
    manifest: CopyManifest
    segments: Sequence[CheckedSegment]
    findings: Sequence[Finding]

    @property
    def good(self) -> bool:
        return not any(each.severity is Severity.DAMAGE for each in self.findings)


@dataclass(frozen=True)
class VerifiedBackup:
    """What was found in one backup."""

    backup: ZeebeBackup
    copies: Sequence[VerifiedCopy]
    cut: CutResult
    findings: Sequence[Finding]
    """Of the copies too."""

    def best(self, partition: int) -> VerifiedCopy | None:
        """A completed copy of the partition, one without damage if there is one."""
        return _best([each for each in self.copies if each.copy.place.partition == partition])


def verify_backup(store: Store, backup: ZeebeBackup, engine: Engine) -> VerifiedBackup:
    """Read every file of every completed copy. Expected problems are findings."""
    completed = [copy for copy in backup.copies if copy.completed and not copy.problem]
    scanned = _scanned(store, completed, engine)
    read = _read_snapshots(store, completed, engine)
    copies = [_verified(store, copy, scanned, read) for copy in completed]
    result = _cut(copies)
    findings = (
        *_states(backup),
        *(f for each in copies for f in each.findings),
        *_agreement(copies),
        *_cut_findings(result),
    )
    return VerifiedBackup(backup, copies, result, findings)


def expected_bytes(backup: ZeebeBackup) -> int:
    """How much a verification reads at most."""
    return sum(copy.stored_bytes for copy in backup.copies if copy.completed)


def _scanned(store: Store, copies: Sequence[ZeebeCopy], engine: Engine) -> dict[str, CheckedSegment]:
    units = [
        SegmentUnit(store, name, copy.objects[name].size, copy.place.partition, file.compression)
        for copy in copies
        for file in _manifest(copy).segment_files
        if (name := copy.place.file(SEGMENTS, file.name)) in copy.objects
    ]
    done = engine.map(scan_segment, units, CheckedSegment, label=LABEL, weight=lambda unit: unit.size)
    return {each.name: each for each in done}


def _read_snapshots(store: Store, copies: Sequence[ZeebeCopy], engine: Engine) -> dict[str, ReadFile]:
    files = [
        SnapshotFile(name, copy.objects[name].size, file.compression)
        for copy in copies
        for file in _manifest(copy).snapshot_files
        if (name := copy.place.file(SNAPSHOT, file.name)) in copy.objects
    ]
    units = list(snapshot_units(store, files))
    done = engine.map(
        read_snapshot, units, ReadSnapshot, label=LABEL, weight=lambda unit: sum(file.size for file in unit.files)
    )
    return {file.name: file for each in done for file in each.files}


def _verified(
    store: Store, copy: ZeebeCopy, scanned: dict[str, CheckedSegment], read: dict[str, ReadFile]
) -> VerifiedCopy:
    manifest, place = _manifest(copy), copy.place
    names = [place.file(SEGMENTS, file.name) for file in manifest.segment_files]
    segments = [scanned[name] for name in names if name in scanned]
    findings = [
        *_listed(copy, manifest),
        *check_log(manifest, place.manifest, segments),
        *_unread(copy, read),
        *check_snapshot(manifest, place, read, _small_files(store, copy, manifest)),
        *_untrimmed(copy, manifest, segments),
    ]
    return VerifiedCopy(copy, manifest, segments, findings)


def _listed(copy: ZeebeCopy, manifest: CopyManifest) -> Iterator[Finding]:
    """Every file of the manifest is there, and nothing else."""
    place = copy.place
    listed = {place.file(SNAPSHOT, each.name) for each in manifest.snapshot_files}
    listed |= {place.file(SEGMENTS, each.name) for each in manifest.segment_files}
    for name in sorted(listed - copy.objects.keys()):
        yield damage("object-missing", name, "the object is missing", BRING_BACK)
    if extra := sorted(copy.objects.keys() - listed):
        yield note("object-unlisted", extra[0], f"{plural(len(extra), 'object is', 'objects are')} in no manifest")
    for each in manifest.segment_files:
        if (named := named_segment(each.name)) is not None and named[0] != place.partition:
            yield damage("segment-misplaced", place.file(SEGMENTS, each.name), f"it is of partition {named[0]}")
    if manifest.checkpoint_position < 1:
        yield damage("checkpoint-missing", place.manifest, "it states no position of its checkpoint")
    if manifest.stray_bytes:
        what = f"{plural(manifest.stray_bytes, 'byte')} of an older manifest follow the document"
        yield note("manifest-not-cut", place.manifest, what)


def _unread(copy: ZeebeCopy, read: dict[str, ReadFile]) -> Iterator[Finding]:
    for name in sorted(copy.objects):
        if (found := read.get(name)) is not None and found.crc < 0:
            yield damage("object-unreadable", name, found.problem, BRING_BACK)


def _small_files(store: Store, copy: ZeebeCopy, manifest: CopyManifest) -> dict[str, bytes]:
    """The files of a snapshot that say something about the others."""
    wanted = {checksum_file(manifest.snapshot_id), METADATA_FILE}
    found = dict[str, bytes]()
    for file in manifest.snapshot_files:
        name = copy.place.file(SNAPSHOT, file.name)
        if file.name in wanted and name in copy.objects:
            found |= _small(store, name, copy.objects[name].size, file)
    return found


def _small(store: Store, name: str, size: int, file: StoredFile) -> dict[str, bytes]:
    try:
        return {name: StoredFileReader(store, name, size, file.compression).read(MAX_CHECKSUMS)}
    except (Damaged, ObjectMissing):  # reported by the task that reads every file
        return {}


def _untrimmed(copy: ZeebeCopy, manifest: CopyManifest, segments: Sequence[CheckedSegment]) -> Iterator[Finding]:
    """Zeebe before 8.8 leaves what is after the checkpoint in a restored log, and skips commands because of it."""
    used = in_order(segments)
    behind = used and used[-1].last_position > manifest.checkpoint_position
    if behind and _before_8_8(manifest.broker_version):
        what = f"the log reaches position {used[-1].last_position}, the checkpoint is {manifest.checkpoint_position}"
        yield note("log-untrimmed", copy.place.manifest, f"{what}: Zeebe before 8.8 restores it with errors", TRIM)


def _before_8_8(version: str) -> bool:
    parts = version.split(".")[:2]
    return all(part.isdecimal() for part in parts) and len(parts) == 2 and tuple(map(int, parts)) < (8, 8)


def _states(backup: ZeebeBackup) -> Iterator[Finding]:
    """Partitions without a completed copy, and manifests that cannot be used."""
    missing = list[int]()
    for partition in range(1, backup.partitions + 1):
        state = backup.partition_state(partition)
        if not backup.of(partition):
            missing.append(partition)
        elif state is not CopyState.COMPLETED and not backup.unreadable(partition):
            reasons = [
                copy.manifest.failure for copy in backup.of(partition) if copy.manifest and copy.manifest.failure
            ]
            what = f"partition {partition} is {state}" + (f": {reasons[0]}" if reasons else "")
            yield damage("copy-not-completed", backup.of(partition)[0].place.manifest, what)
    if missing:
        named = ", ".join(map(str, missing[:20])) + (", …" if len(missing) > 20 else "")
        yield damage("copy-missing", f"backup {backup.checkpoint_id}", f"no copy of these partitions: {named}")
    for copy in backup.copies:
        if copy.problem:
            yield damage("manifest-unusable", copy.place.manifest, copy.problem, BRING_BACK)


def _agreement(copies: Sequence[VerifiedCopy]) -> Iterator[Finding]:
    """Manifests of one backup agree about the cluster, copies of one partition about the checkpoint."""
    if len({each.manifest.partitions for each in copies}) > 1:
        yield damage(
            "partitions-differ", copies[0].copy.place.manifest, "manifests state different numbers of partitions"
        )
    positions = dict[int, VerifiedCopy]()
    for each in copies:
        other = positions.setdefault(each.copy.place.partition, each)
        if other.manifest.checkpoint_position != each.manifest.checkpoint_position:
            what = (
                f"it has its checkpoint at position {each.manifest.checkpoint_position}, {other.copy.place.manifest} at"
            )
            yield damage("copies-differ", each.copy.place.manifest, f"{what} {other.manifest.checkpoint_position}")


def _best(copies: Sequence[VerifiedCopy]) -> VerifiedCopy | None:
    return next((each for each in copies if each.good), copies[0] if copies else None)


def _cut(copies: Sequence[VerifiedCopy]) -> CutResult:
    logs = dict[int, LogInCut]()
    for partition in {copy.copy.place.partition for copy in copies}:
        chosen = _best([each for each in copies if each.copy.place.partition == partition])
        if chosen is not None:
            rows = rows_of([each.cut for each in chosen.segments])
            logs[partition] = LogInCut(chosen.manifest.checkpoint_position, from_first_entry(chosen.segments), rows)
    return check_cut(logs)


def _cut_findings(cut: CutResult) -> Iterator[Finding]:
    for each in cut.named:
        known = each.cause_position is not None
        cause = f"position {each.cause_position}" if known else "a position after the end of the log"
        what = (
            f"position {each.position} (value type {each.value_type}, intent {each.intent}) is inside the cut; "
            f"its cause, {cause} of partition {each.cause_partition}, is outside"
        )
        yield damage("cut-orphan", f"partition {each.partition}", what)
    if cut.orphans > len(cut.named):
        yield damage("cut-orphan", "the cut", f"{cut.orphans - len(cut.named)} more commands have their cause outside")
    if cut.inconclusive:
        what = f"the cause of {plural(cut.inconclusive, 'command')} is no longer in the stored logs"
        yield note("cut-inconclusive", "the cut", what)
    if cut.unchecked:
        count = sum(each.commands for each in cut.unchecked)
        what = f"{plural(count, 'command')} without a known cause, of {plural(len(cut.unchecked), 'kind')}"
        yield note("cut-unchecked", "the cut", f"{what}: unchecked")


def _manifest(copy: ZeebeCopy) -> CopyManifest:
    if copy.manifest is None:
        raise AssertionError("only completed copies are read")
    return copy.manifest
