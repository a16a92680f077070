"""Cluster records that earlier versions wrote must be read for ever.

`v1.json` was written once and is never written anew; a new version adds a file beside it. `v1-last-batches.json` needs
the feature `last-batches`.
"""

import hashlib
from pathlib import Path

import msgspec

from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.record.documents import (
    AclRecord,
    ClusterRecord,
    CommitRecord,
    GroupRecord,
    OpenTransaction,
    PartitionRecord,
    QuotaRecord,
    TopicRecord,
)
from logkeep.repository.chain.documents import seal, unseal

FILE = Path(__file__).parent / "kafka" / "v1.json"
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

LAST_BATCHES = Path(__file__).parent / "kafka" / "v1-last-batches.json"
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
WITH_LAST_BATCH = msgspec.structs.replace(RECORD, logs=(msgspec.structs.replace(RECORD.logs[0], last_batch=LAST),))


def test_the_record_of_version_1_is_read() -> None:
    assert unseal(FILE.read_bytes(), ClusterRecord, "v1.json") == RECORD


def test_the_same_record_is_written_as_the_same_bytes() -> None:
    assert seal(RECORD) == FILE.read_bytes()


def test_it_is_checked_by_hand_as_the_page_says() -> None:
    line, seal_line, rest = FILE.read_bytes().split(b"\n")
    assert seal_line == b'{"sha256":"%s"}' % hashlib.sha256(line + b"\n").hexdigest().encode()
    assert rest == b""


def test_a_record_with_last_batches_is_read_and_written_as_the_same_bytes() -> None:
    assert unseal(LAST_BATCHES.read_bytes(), ClusterRecord, "v1-last-batches.json") == WITH_LAST_BATCH
    assert seal(WITH_LAST_BATCH) == LAST_BATCHES.read_bytes()
