"""Writes the manifest of a completed copy, in the form of S3 or in that of file systems."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from logkeep.formats.zeebe.manifests import CopyManifest, ManifestForm, StoredFile

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write_manifest(manifest: CopyManifest) -> bytes:
    """The same bytes for the same values. Files are named as they are: without compression."""
    descriptor: dict[str, object] = {
        "snapshotId": manifest.snapshot_id or None,
        "checkpointPosition": manifest.checkpoint_position,
        "numberOfPartitions": manifest.partitions,
        "brokerVersion": manifest.broker_version,
    }
    if manifest.first_log_position is not None:
        descriptor["firstLogPosition"] = manifest.first_log_position
    if manifest.checkpoint_type:
        descriptor["checkpointType"] = manifest.checkpoint_type
    identity = {
        "nodeId": manifest.node,
        "partitionId": manifest.partition,
        "checkpointId": manifest.checkpoint_id,
    }
    head = {"id": identity, "descriptor": descriptor}
    if manifest.form is ManifestForm.S3:
        return _s3(manifest, head)
    document = {
        **head,
        "statusCode": "COMPLETED",
        "createdAt": _rfc3339(manifest.created),
        "modifiedAt": _rfc3339(manifest.modified),
        "snapshot": {"files": [{"name": each.name} for each in manifest.snapshot_files]},
        "segments": {"files": [{"name": each.name} for each in manifest.segment_files]},
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _s3(manifest: CopyManifest, head: dict[str, object]) -> bytes:
    document = {
        "statusCode": "completed",
        **head,
        "snapshotFiles": {"files": _file_entries(manifest.snapshot_files)},
        "segmentFiles": {"files": _file_entries(manifest.segment_files)},
    }
    times = f',"createdAt":{_seconds(manifest.created)},"modifiedAt":{_seconds(manifest.modified)}}}'
    return (json.dumps(document, separators=(",", ":"))[:-1] + times).encode()


def _file_entries(files: Sequence[StoredFile]) -> dict[str, dict[str, str]]:
    return {each.name: {} for each in files}


def _seconds(moment: datetime | None) -> str:
    """Seconds with nine decimals, as Zeebe writes them."""
    passed = (moment or _EPOCH) - _EPOCH
    whole = passed // timedelta(seconds=1)
    return f"{whole}.{(passed - timedelta(seconds=whole)) // timedelta(microseconds=1):06d}000"


def _rfc3339(moment: datetime | None) -> str:
    return (moment or _EPOCH).astimezone(UTC).isoformat().replace("+00:00", "Z")
