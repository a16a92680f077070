"""Cluster records that earlier versions wrote must be read for ever.

The files were written once and are never written anew; a new version adds files beside them.
"""

import hashlib
from pathlib import Path

import msgspec
import pyarrow

from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.record.deletion_times import DeletionTimes
from logkeep.kafka.record.documents import (
    ROLE,
    AclRecord,
    ClusterRecord,
    CommitRecord,
    GroupRecord,
    OpenTransaction,
    PartitionRecord,
    QuotaRecord,
    TopicRecord,
)
from logkeep.model.clock_time import ClockName
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import seal, unseal
from logkeep.store.memory import MemoryStore

FILE = Path(__file__).parent / "kafka" / "v1.json"
PACKED = FILE.with_name("v2.json.zst")
MANIFEST = FILE.with_name("manifest.v2.json")
RECORD = ClusterRecord(
    repository="0123456789abcdef0123456789abcdef",
    source="shop",
    id=20261116001348,
    cluster_id="7ejgSgM_RvCvZ9_iofb2vg",
    topics=(TopicRecord("orders", "0" * 31 + "a", False, 1, 3, {"cleanup.policy": "compact", "retention.ms": "-1"}),),
    logs=(PartitionRecord("orders", 0, "0" * 31 + "a", 2, 9, 6, 3),),
    open_transactions=(OpenTransaction("orders", 0, 4711, 6),),
    groups=(
        GroupRecord("billing", "classic", "Empty", "consumer", (CommitRecord("orders", 0, 9, 12, 3, "ünïcode"),)),
        GroupRecord("shared", "share", "Empty", "", ()),
    ),
    acls=(AclRecord("TOPIC", "orders", "LITERAL", "User:app", "*", "READ", "ALLOW"),),
    quotas=(QuotaRecord((("user", None),), (("producer_byte_rate", 1048576.0),)),),
)

LAST_BATCHES = Path(__file__).parent / "kafka" / "v2-last-batches.json"
LAST = LastBatch(
    base_offset=7,
    last_offset=8,
    leader_epoch=3,
    size=131,
    crc=3735928559,
    records=2,
    base_time_ms=1763424000000,
    max_time_ms=1763424000007,
    attributes=16,
    producer_id=4711,
    producer_epoch=2,
    base_sequence=40,
)
WITH_LAST_BATCH = msgspec.structs.replace(
    RECORD, version=2, logs=(msgspec.structs.replace(RECORD.logs[0], last_batch=LAST),)
)
TIMES = Path(__file__).parent / "kafka" / "v3-deletion-times.json"
WITH_TIMES = msgspec.structs.replace(
    RECORD,
    version=3,
    logs=(
        msgspec.structs.replace(
            RECORD.logs[0],
            deletions=DeletionTimes(
                cut_ms=1763424000000,
                clock=ClockName.BROKER,
                read_begin_ms=1763424000100,
                read_end_ms=1763424000900,
                retention_ms=86400000,
                unproven_from=4,
                unproven_to=9,
            ),
        ),
    ),
)
RECORD_2 = msgspec.structs.replace(RECORD, version=2, chosen=True)


def test_the_record_of_version_1_is_read() -> None:
    assert unseal(FILE.read_bytes(), ClusterRecord, "v1.json") == RECORD


def test_the_same_record_is_written_as_the_same_bytes() -> None:
    assert seal(RECORD) == FILE.read_bytes()


def _stored() -> SourceRef:
    place = SourceRef(MemoryStore(), RECORD.repository, "shop")
    name = layout.attachment("shop", BackupId(RECORD.id), ROLE, "00112233aabbccdd", Codec.ZSTD)
    place.store.put_new(name, PACKED.read_bytes())
    return place


def test_the_packed_record_of_version_2_is_read_through_its_manifest() -> None:
    manifest = unseal(MANIFEST.read_bytes(), Manifest, "manifest.v2.json")
    assert manifest.version == 2
    assert read_attachment(_stored(), manifest, ROLE, ClusterRecord) == RECORD_2


def test_the_same_manifest_is_written_as_the_same_bytes() -> None:
    manifest = unseal(MANIFEST.read_bytes(), Manifest, "manifest.v2.json")
    assert seal(manifest) == MANIFEST.read_bytes()


def test_any_zstd_tool_unpacks_it() -> None:
    with pyarrow.CompressedInputStream(pyarrow.BufferReader(PACKED.read_bytes()), "zstd") as stream:
        assert stream.read() == seal(RECORD_2)


def test_it_is_checked_by_hand_as_the_page_says() -> None:
    line, seal_line, rest = FILE.read_bytes().split(b"\n")
    assert seal_line == b'{"sha256":"%s"}' % hashlib.sha256(line + b"\n").hexdigest().encode()
    assert rest == b""


def test_a_record_with_last_batches_is_read_and_written_as_the_same_bytes() -> None:
    assert unseal(LAST_BATCHES.read_bytes(), ClusterRecord, "v2-last-batches.json") == WITH_LAST_BATCH
    assert seal(WITH_LAST_BATCH) == LAST_BATCHES.read_bytes()


def test_a_record_with_the_times_that_prove_deletions_is_read_and_written_as_the_same_bytes() -> None:
    assert unseal(TIMES.read_bytes(), ClusterRecord, "v3-deletion-times.json") == WITH_TIMES
    assert seal(WITH_TIMES) == TIMES.read_bytes()
