"""Which copies of a backup are imported, what continues the backup before, and what the result must be. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from logkeep.checkpoint.zeebe.inventory import ZeebeBackup, ZeebeCopy
from logkeep.checkpoint.zeebe.layouts import SEGMENTS, SNAPSHOT
from logkeep.checkpoint.zeebe.repo.record import (
    ArchivedSegmentFile,
    ArchivedStateFile,
    ZeebePartition,
    ZeebeRecord,
    file_name,
    log_name,
)
from logkeep.checkpoint.zeebe.repo.units import CopiedSegment, ObjectPlace, SegmentOutcome
from logkeep.errors import BackupFailed, SourceDamaged
from logkeep.formats.zeebe.manifests import CopyManifest, StoredFile
from logkeep.formats.zeebe.segment_descriptor import named_segment
from logkeep.model.time import rfc3339
from logkeep.repository.backups.manifest import LogCut

BUNDLE_BYTES = 64 << 20
_VERIFY = "`logkeep zeebe verify` names what is damaged; take another backup"


@dataclass(frozen=True)
class CopySource:
    """The copy of a partition that is imported: its manifest, and the objects of its files."""

    manifest: CopyManifest
    segments: Mapping[str, ObjectPlace]
    files: Mapping[str, ObjectPlace]

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in (*self.segments.values(), *self.files.values()))

    def numbered(self) -> list[tuple[int, ObjectPlace]]:
        """Its segments in order."""
        found = [(named, place) for name, place in self.segments.items() if (named := named_segment(name)) is not None]
        return sorted(((number, place) for (_, number), place in found), key=lambda each: each[0])


def chosen_copies(backup: ZeebeBackup) -> list[CopySource]:
    """One completed copy of each partition, of the broker with the lowest id. Raises BackupFailed."""
    chosen = list[CopySource]()
    for partition in range(1, max(backup.partitions, 1) + 1):
        copy = next((each for each in backup.of(partition) if each.completed and not each.problem), None)
        if copy is None or copy.manifest is None:
            raise BackupFailed(f"no copy of partition {partition} is completed", remedy=_VERIFY)
        segments = _objects(copy, SEGMENTS, copy.manifest.segment_files)
        chosen.append(CopySource(copy.manifest, segments, _objects(copy, SNAPSHOT, copy.manifest.snapshot_files)))
    return chosen


def _objects(copy: ZeebeCopy, folder: str, files: Sequence[StoredFile]) -> dict[str, ObjectPlace]:
    """Raises SourceDamaged for a file that the store has not."""
    found = dict[str, ObjectPlace]()
    for file in files:
        name = copy.place.file(folder, file.name)
        if (info := copy.objects.get(name)) is None:
            raise SourceDamaged("the object is missing", subject=name, remedy=_VERIFY)
        found[file.name] = ObjectPlace(name, info.size, info.version, file.compression)
    return found


def continues(base: ZeebeRecord | None, copies: Sequence[CopySource]) -> bool:
    """Whether the copies may continue the logs of the backup before: each has the segment in which that one ended."""
    ends = {each.partition: each.segments[-1].number for each in base.partitions} if base is not None else {}
    return bool(ends) and {
        (each.manifest.partition, ends.get(each.manifest.partition))
        for each in copies
        if ends.get(each.manifest.partition) in dict(each.numbered())
    } == set(ends.items())


def known_segments(base: ZeebeRecord | None) -> dict[tuple[int, int], ArchivedSegmentFile]:
    found = base.partitions if base is not None else ()
    return {(each.partition, file.number): file for each in found for file in each.segments}


def known_files(base: ZeebeRecord | None) -> dict[tuple[int, str, int], ArchivedStateFile]:
    found = base.partitions if base is not None else ()
    return {(each.partition, file.name, file.size_bytes): file for each in found for file in each.files}


def bundles(files: Sequence[tuple[str, ObjectPlace]]) -> list[list[tuple[str, ObjectPlace]]]:
    """Files for one unit each: small ones together."""
    found, size_bytes = list[list[tuple[str, ObjectPlace]]](), BUNDLE_BYTES
    for each in files:
        if size_bytes >= BUNDLE_BYTES:
            found.append([])
            size_bytes = 0
        found[-1].append(each)
        size_bytes += each[1].size_bytes
    return found


def kept_segments(copy: CopySource, results: Sequence[CopiedSegment]) -> list[CopiedSegment]:
    """Those up to the checkpoint, which must follow one another. `results` in order of their numbers."""
    kept, partition = list[CopiedSegment](), copy.manifest.partition
    for (_, place), result in zip(copy.numbered(), results, strict=True):
        if result.outcome is SegmentOutcome.DAMAGED:
            raise SourceDamaged(result.reason, subject=place.name, remedy=_VERIFY)
        if result.file is None:
            continue
        if kept and (before := kept[-1].file) is not None and before.end != result.file.first:
            what = f"the log of partition {partition} is not continuous at index {before.end}"
            raise SourceDamaged(what, subject=place.name, remedy=_VERIFY)
        kept.append(result)
        if result.has_checkpoint:
            return kept
    what = f"no segment of partition {partition} has the checkpoint at position {copy.manifest.checkpoint_position}"
    raise SourceDamaged(what, subject=f"backup {copy.manifest.checkpoint_id}", remedy=_VERIFY)


def partition_record(
    copy: CopySource, segments: Sequence[CopiedSegment], files: Sequence[ArchivedStateFile]
) -> ZeebePartition:
    manifest = copy.manifest
    return ZeebePartition(
        partition=manifest.partition,
        node=manifest.node,
        checkpoint_position=manifest.checkpoint_position,
        broker_version=manifest.broker_version,
        snapshot_id=manifest.snapshot_id,
        first_log_position=manifest.first_log_position,
        checkpoint_type=manifest.checkpoint_type,
        created=_text(manifest.created),
        modified=_text(manifest.modified),
        segments=tuple(each.file for each in segments if each.file is not None),
        files=tuple(sorted(files, key=lambda each: each.name)),
    )


def _text(moment: datetime | None) -> str:
    return rfc3339(moment) if moment is not None else ""


def cut_of(history: str, partitions: Sequence[ZeebePartition]) -> list[LogCut]:
    """The logs of a backup: one per partition, and one per file of a snapshot."""
    found = list[LogCut]()
    for each in partitions:
        found.append(LogCut(log_name(history, each.partition), each.segments[0].first, each.segments[-1].end))
        hashes = sorted({file.sha256 for file in each.files})
        found += [LogCut(file_name(sha256, each.partition), 0, 1) for sha256 in hashes]
    return found
