"""Checks the snapshot of one copy: its checksum file against what was read, and its positions. Pure."""

from collections.abc import Iterator, Mapping

from logkeep.checkpoint.zeebe.findings import BRING_BACK, damage
from logkeep.checkpoint.zeebe.layouts import SNAPSHOT, CopyPlace
from logkeep.checkpoint.zeebe.snapshot_task import ReadFile
from logkeep.errors import Damaged
from logkeep.formats.zeebe.manifests import CopyManifest
from logkeep.formats.zeebe.snapshots import (
    METADATA_FILE,
    SnapshotMetadata,
    checksum_file,
    parse_snapshot_id,
    read_checksums,
    read_metadata,
)
from logkeep.model.findings import Finding, note


def check_snapshot(
    manifest: CopyManifest, place: CopyPlace, read: Mapping[str, ReadFile], small: Mapping[str, bytes]
) -> Iterator[Finding]:
    """`read` has every file of the snapshot by its object, `small` the bytes of the checksum and metadata files."""
    if not manifest.snapshot_id:
        if manifest.snapshot_files:
            yield damage("snapshot-unnamed", place.manifest, "it lists files of a snapshot that it does not name")
        return
    if parse_snapshot_id(manifest.snapshot_id) is None:
        yield damage("snapshot-unnamed", place.manifest, "the name of the snapshot is none that Zeebe makes")
        return
    names = {each.name for each in manifest.snapshot_files}
    for required in (checksum_file(manifest.snapshot_id), METADATA_FILE):
        if required not in names:
            yield damage("object-missing", place.file(SNAPSHOT, required), "the manifest does not list this file")
    yield from _checksums(manifest, place, read, small)
    yield from _positions(manifest, place, small)


def _checksums(
    manifest: CopyManifest, place: CopyPlace, read: Mapping[str, ReadFile], small: Mapping[str, bytes]
) -> Iterator[Finding]:
    listing = place.file(SNAPSHOT, checksum_file(manifest.snapshot_id))
    if listing not in small:
        return
    try:
        expected = read_checksums(small[listing], listing)
    except Damaged as error:
        yield damage("checksum-file", listing, error.what, BRING_BACK)
        return
    names = {each.name for each in manifest.snapshot_files} - {checksum_file(manifest.snapshot_id)}
    for name in sorted(names - expected.keys()):
        yield damage("checksum-file", listing, f"it has no line for {name}", BRING_BACK)
    for name in sorted(expected.keys() - names):
        yield damage("object-missing", place.file(SNAPSHOT, name), "the manifest does not list this file", BRING_BACK)
    for name in sorted(names & expected.keys()):
        found = read.get(place.file(SNAPSHOT, name))
        if found is not None and found.crc >= 0 and found.crc != expected[name]:
            what = f"its CRC-32C is {found.crc:x}, the checksum file says {expected[name]:x}"
            yield damage("checksum-mismatch", found.name, what, BRING_BACK)


def _positions(manifest: CopyManifest, place: CopyPlace, small: Mapping[str, bytes]) -> Iterator[Finding]:
    """All that a snapshot contains must be before the checkpoint."""
    name, limit = place.file(SNAPSHOT, METADATA_FILE), manifest.checkpoint_position
    if name not in small:
        return
    try:
        found = read_metadata(small[name], name)
    except Damaged as error:
        yield damage("snapshot-metadata", name, error.what, BRING_BACK)
        return
    for label, position in _contained(found).items():
        if position is not None and position >= limit:
            what = f"its {label} position {position} is not before the checkpoint at position {limit}"
            yield damage("snapshot-too-new", name, what)
    stated = parse_snapshot_id(manifest.snapshot_id)
    if stated is not None and found.processed_position not in (None, stated.processed):
        what = f"it says processed position {found.processed_position}, the snapshot's name {stated.processed}"
        yield damage("snapshot-metadata", name, what)
    if found.last_followup_event_position is None:
        yield note("snapshot-unproven", name, "it does not say how far the events of the snapshot reach")


def _contained(found: SnapshotMetadata) -> dict[str, int | None]:
    return {
        "processed": found.processed_position,
        "last follow-up event": found.last_followup_event_position,
        "exported": found.max_exported_position,
    }
