"""Groups and positions as the records of `__consumer_offsets` leave them, transactions included."""

import struct
from dataclasses import dataclass, field
from uuid import UUID

from logkeep.formats.kafka.internal_topics.metadata_records import (
    MetadataRecordType,
    TopicConfigSet,
    TopicMade,
    TopicRemoved,
    TransactionStep,
)
from logkeep.kafka.disks.metadata_image import ClusterImage
from logkeep.kafka.disks.scan_results import ReplicaScan
from logkeep.kafka.salvage.findings import tier_findings
from logkeep.kafka.salvage.groups_task import FoundPosition, GroupState
from logkeep.kafka.salvage.survey_task import SalvageSurvey
from tests.support.kafka.handmade_batches import Batch

_TRANSACTIONAL, _CONTROL = 0x10, 0x20


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _position(group: str, partition: int = 0) -> bytes:
    return struct.pack(">h", 1) + _text(group) + _text("orders") + struct.pack(">i", partition)


def _value(offset: int) -> bytes:
    return struct.pack(">hqi", 3, offset, 7) + _text("note") + struct.pack(">q", 0)


def _sized(data: bytes | None) -> bytes:
    """Lengths below 64, as zigzag varints have them in one byte."""
    if data is None:
        return b"\x01"
    assert len(data) < 64
    return bytes([2 * len(data)]) + data


@dataclass
class _Topic:
    """Appends batches of one record each."""

    books: GroupState = field(default_factory=GroupState)
    end: int = 0

    def write(self, key: bytes, value: bytes | None, producer: int = -1, attributes: int = 0) -> None:
        record = bytes(3) + _sized(key) + _sized(value) + b"\x00"
        payload = bytes([2 * len(record) & 0x7F | 0x80, 2 * len(record) >> 7]) + record
        batch = Batch(self.end, attributes=attributes, producer=producer, payload=payload).encode()
        self.books.batch(memoryview(batch), self.end, attributes, producer, 1)
        self.end += 1

    def commit(self, group: str, offset: int, transaction: int = -1) -> None:
        self.write(_position(group), _value(offset), transaction, _TRANSACTIONAL if transaction >= 0 else 0)

    def decide(self, transaction: int, *, commit: bool) -> None:
        key, value = struct.pack(">hh", 0, commit), struct.pack(">hi", 0, 0)
        self.write(key, value, transaction, _TRANSACTIONAL | _CONTROL)

    def offsets(self) -> dict[str, list[int]]:
        return {g.name: [p.offset for p in g.positions] for g in self.books.result().groups}


def test_the_last_record_counts_and_a_tombstone_forgets() -> None:
    topic = _Topic()
    for offset in (5, 9):
        topic.commit("billing", offset)
        topic.commit("gone", offset)
    topic.write(_position("gone"), None)
    (group,) = topic.books.result().groups
    assert group.positions == (FoundPosition("orders", 0, 9, 7, "note"),)
    assert (group.name, group.kind, group.state, group.protocol_type) == ("billing", "classic", "Empty", "")


def test_transactions() -> None:
    topic = _Topic()
    for group, decided in (("committed", True), ("aborted", False), ("open", None)):
        topic.commit(group, 1)
        topic.commit(group, 2, transaction=topic.end)
        if decided is not None:
            topic.decide(topic.end - 1, commit=decided)
    assert topic.offsets() == {"aborted": [1], "committed": [2], "open": [1]}
    assert topic.books.result().undecided == 1


def test_a_later_commit_outlives_the_marker_of_an_earlier_one() -> None:
    topic = _Topic()
    topic.commit("billing", 2, transaction=4)
    topic.commit("billing", 3)
    topic.decide(4, commit=True)
    assert topic.offsets() == {"billing": [3]}


def test_kinds_of_groups_and_what_cannot_be_read() -> None:
    topic = _Topic()
    for number, name in ((3, "new"), (11, "shared"), (17, "stream"), (5, "member")):
        topic.write(struct.pack(">h", number) + _text(name), b"\x00\x00")
    topic.write(
        struct.pack(">h", 2) + _text("old"), bytes.fromhex("0000 0008 636f6e73756d6572 00000003 ffff ffff 00000000")
    )
    topic.write(_position("later"), b"\x00\x63")
    found = topic.books.result()
    kinds = {g.name: (g.kind, g.protocol_type) for g in found.groups}
    assert kinds == {
        "new": ("consumer", "consumer"),
        "shared": ("share", ""),
        "stream": ("streams", ""),
        "old": ("classic", "consumer"),
    }
    assert found.unreadable == 1


def test_metadata_transactions_count_together_or_not_at_all() -> None:
    image, first, second = ClusterImage(), UUID(int=1), UUID(int=2)
    for end, topic in ((MetadataRecordType.END_TRANSACTION, first), (MetadataRecordType.ABORT_TRANSACTION, second)):
        image.take(TransactionStep(MetadataRecordType.BEGIN_TRANSACTION))
        image.take(TopicMade(f"topic-{topic.int}", topic))
        assert f"topic-{topic.int}" not in image.topics
        image.take(TransactionStep(end))
    assert image.topics == {"topic-1": first}
    image.take(TopicConfigSet("topic-1", "remote.storage.enable", "true"))
    scan = ReplicaScan(directory="d", node=1, start=40, end=50)
    (told,) = tier_findings([SalvageSurvey(topic="topic-1", partition=0, scans=(scan,))], image)
    assert "offsets before 40" in told.what
    image.take(TopicRemoved(first))
    assert (image.topics, image.configs) == ({}, {})
