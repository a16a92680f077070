"""Stores and reads the cluster record of a backup, packed.

A record names every position of every group: 200 groups with 1,000 partitions each are 18 MB of JSON. From the first
packed record on, the repository requires a feature, so that an earlier release refuses the repository; a process of an
earlier release that is running already finds the manifest in version 2, and ends. A record with times that prove
deletions has version 3, and requires another feature.
"""

import msgspec

from logkeep.errors import Damaged, UsageError
from logkeep.kafka.record.documents import KIND, ROLE, WITH_TIMES, ClusterRecord
from logkeep.model.ids import BackupId
from logkeep.repository.backups.attachments import put_packed_attachment, read_attachment
from logkeep.repository.backups.manifest import WITH_PACKED, AttachmentRef, Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.format import DELETION_TIMES, PACKED_RECORDS, require_feature


def put_record(place: SourceRef, backup_id: BackupId, record: ClusterRecord, token: str) -> AttachmentRef:
    """Store the record for an ongoing backup; it is valid once the manifest names the reference."""
    require_feature(place.store, PACKED_RECORDS)
    timed = any(log.deletions is not None for log in record.logs)
    if timed:
        require_feature(place.store, DELETION_TIMES)
    stored = msgspec.structs.replace(record, version=WITH_TIMES if timed else WITH_PACKED)
    return put_packed_attachment(place, backup_id, ROLE, stored, token)


def read_record(place: SourceRef, manifest: Manifest) -> ClusterRecord | None:
    """The record of a backup, whose logs begin where the manifest says: a trim raises both. Raises Damaged."""
    record = read_attachment(place, manifest, ROLE, ClusterRecord)
    return None if record is None else begun_with(record, manifest)


def manifest_of_cluster(place: SourceRef, entry: BackupEntry) -> Manifest:
    """The manifest of a backup. Raises Damaged, and UsageError if the backup is not one of a Kafka cluster."""
    manifest = read_manifest(place, entry)
    if manifest.kind != KIND:
        raise UsageError(
            f"backup {entry.id} is a backup of {manifest.kind}, not of a Kafka cluster",
            subject=place.source,
            remedy="`logkeep info` shows what it is, and lists the backups of its source",
        )
    return manifest


def require_record(record: ClusterRecord | None, place: SourceRef, entry: BackupEntry) -> ClusterRecord:
    """The record of a backup that must have one. Raises Damaged."""
    if record is None:
        raise Damaged("the backup has no record of its cluster", subject=f"{place.source} {entry.id}")
    return record


def last_record(place: SourceRef, folded: Folded) -> ClusterRecord | None:
    """The record of the last backup; None without a backup. Raises Damaged."""
    return read_record(place, read_manifest(place, folded.completed[-1])) if folded.completed else None


def begun_with(record: ClusterRecord, manifest: Manifest) -> ClusterRecord:
    """The record with the starts of the manifest's cut, where these are later."""
    starts = {(c.log.name, c.log.partition, c.log.history): c.start for c in manifest.cut}
    found = [(log, starts.get((log.topic, log.partition, log.history), log.start)) for log in record.logs]
    if all(start <= log.start for log, start in found):
        return record
    logs = tuple(log if start <= log.start else msgspec.structs.replace(log, start=start) for log, start in found)
    return msgspec.structs.replace(record, logs=logs)
