"""Cluster records that earlier versions wrote must be read for ever.

`v1.json` was written once and is never written anew; a new version adds a file beside it.
"""

import hashlib
from pathlib import Path

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


def test_the_record_of_version_1_is_read() -> None:
    assert unseal(FILE.read_bytes(), ClusterRecord, "v1.json") == RECORD


def test_the_same_record_is_written_as_the_same_bytes() -> None:
    assert seal(RECORD) == FILE.read_bytes()


def test_it_is_checked_by_hand_as_the_page_says() -> None:
    line, seal_line, rest = FILE.read_bytes().split(b"\n")
    assert seal_line == b'{"sha256":"%s"}' % hashlib.sha256(line + b"\n").hexdigest().encode()
    assert rest == b""
