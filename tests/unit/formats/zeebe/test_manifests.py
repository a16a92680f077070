"""Manifests in every form that Zeebe writes, snapshots' checksum files and metadata, and what is refused."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from logkeep.errors import Damaged
from logkeep.formats.zeebe.manifests import CopyState, ManifestForm, StoredFile, read_manifest
from logkeep.formats.zeebe.snapshots import parse_snapshot_id, read_checksums, read_metadata
from tests.support.zeebe.handmade import MadeCopy

STORED_BY_8_6 = (
    b'{"statusCode":"completed","id":{"nodeId":0,"partitionId":1,"checkpointId":11},"descriptor":{"snapshotId":null,'
    b'"checkpointPosition":7,"numberOfPartitions":3,"brokerVersion":"8.6.11-SNAPSHOT"},"snapshotFiles":{"files":{}},'
    b'"segmentFiles":{"files":{"raft-partition-partition-1-1.log":{}}},'
    b'"createdAt":1794767636.859740378,"modifiedAt":1794767638.464315653}'
)
CREATED = datetime(2026, 11, 15, 18, 33, 56, 859740, UTC)


def test_the_form_of_s3() -> None:
    found = read_manifest(STORED_BY_8_6)
    assert (found.form, found.partition, found.checkpoint_id, found.node) == (ManifestForm.S3, 1, 11, 0)
    assert (found.state, found.checkpoint_position, found.partitions) == (CopyState.COMPLETED, 7, 3)
    assert found.segment_files == (StoredFile("raft-partition-partition-1-1.log"),)
    assert (found.created, found.snapshot_id, found.stray_bytes) == (CREATED, "", 0)


def test_the_arrays_of_8_1_and_compressed_files() -> None:
    document = json.loads(STORED_BY_8_6)
    old = {k: v for k, v in document.items() if k not in {"snapshotFiles", "segmentFiles"}}
    old |= {
        "snapshotFileNames": ["a.sst"],
        "segmentFileNames": ["b.log"],
        "createdAt": "2026-11-15T18:33:56.859740378Z",
    }
    found = read_manifest(json.dumps(old).encode())
    assert (found.snapshot_files, found.segment_files) == ((StoredFile("a.sst"),), (StoredFile("b.log"),))
    assert found.created == CREATED
    document["segmentFiles"] = {"files": {"b.log": {"compressionAlgorithm": "zstd"}}}
    assert read_manifest(json.dumps(document).encode()).segment_files == (StoredFile("b.log", "zstd"),)


def test_the_form_of_file_systems_with_bytes_of_a_longer_manifest_behind_it() -> None:
    made = MadeCopy(2, position=7, segments={"b.log": b""}, snapshot={"a.sst": b""}, partitions=3)
    text = json.dumps(made.manifest("files")).encode()
    found = read_manifest(text + b'AT":"2026"}')
    assert (found.form, found.partition, found.state) == (ManifestForm.FILES, 2, CopyState.COMPLETED)
    assert (found.snapshot_files, found.segment_files) == ((StoredFile("a.sst"),), (StoredFile("b.log"),))
    assert (found.created, found.stray_bytes) == (CREATED, 11)
    assert read_manifest(text + b"\n").stray_bytes == 0


def test_a_backup_that_failed_early_has_no_descriptor() -> None:
    document = json.loads(STORED_BY_8_6) | {"statusCode": "failed", "descriptor": None, "failureReason": "no snapshot"}
    found = read_manifest(json.dumps(document).encode())
    assert (found.state, found.failure, found.checkpoint_position) == (CopyState.FAILED, "no snapshot", -1)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": None}, {"id": []}, {"statusCode": "odd"}, {"statusCode": 5}, {"createdAt": True}, {"createdAt": "soon"},
        {"createdAt": -1}, {"id": {"nodeId": 0, "partitionId": 0, "checkpointId": 1}}, {"segmentFiles": {"files": 3}},
        {"id": {"nodeId": 0, "partitionId": 1 << 40, "checkpointId": 1}}, {"descriptor": 7}, {"failureReason": []},
        {"segmentFiles": {"files": {"../x": {}}}}, {"segmentFiles": {"files": {"a/b": {}}}},
        {"segmentFileNames": ["a", "a"]},
        {"descriptor": {"checkpointPosition": 1 << 63}}, {"descriptor": {"checkpointPosition": 1.5}},
    ],
)  # fmt: skip
def test_impossible_values_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Damaged, match="manifest"):
        read_manifest(json.dumps(json.loads(STORED_BY_8_6) | changes).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000,
        STORED_BY_8_6.replace(b"1794767636.859740378", b"1e999999999"),
        STORED_BY_8_6.replace(b"1794767636.859740378", b"NaN"),
        STORED_BY_8_6.replace(b":7,", b":" + b"9" * 5000 + b","),
        STORED_BY_8_6.replace(b"1794767636.859740378", b"0." + b"9" * 10000 + b"e-99999999999"),
    ],
)  # fmt: skip
def test_hostile_documents_are_refused_or_read_at_once(data: bytes) -> None:
    with suppress(Damaged):
        read_manifest(data)


def test_checksum_files() -> None:
    text = b"; a comment\nCURRENT   2a\n000012.sst   DEADBEEF\n\n"
    assert read_checksums(text) == {"CURRENT": 42, "000012.sst": 0xDEADBEEF}
    for wrong in (b"CURRENT", b"CURRENT   xyz", b"CURRENT   123456789", b"a   1\na   2", b"\xff   1"):
        with pytest.raises(Damaged):
            read_checksums(wrong)


def test_snapshot_metadata_and_ids() -> None:
    text = b'{"version":1,"processedPosition":9,"exportedPosition":8,"lastFollowupEventPosition":10}'
    found = read_metadata(text)
    assert (found.processed_position, found.last_followup_event_position, found.max_exported_position) == (9, 10, None)
    for wrong in (b"", b"[]", b'{"version":"x"}', b"\xff", b"[" * 100_000):
        with pytest.raises(Damaged):
            read_metadata(wrong)
    assert (identity := parse_snapshot_id("71-1-349-348-0")) is not None
    assert (identity.index, identity.term, identity.processed, identity.exported) == (71, 1, 349, 348)
    assert parse_snapshot_id("../71-1") is None
