"""Decodes keys and values of `__consumer_offsets`: offsets of groups, and which groups exist.

A key begins with an int16 type: 0 and 1 a group's offset in one partition, 2 a classic group, 3 a consumer group, 11 a
share group, 17 a streams group; others are members and assignments, which mean nothing without running consumers. A
value begins with an int16 version. A null value deletes the key.
"""

from dataclasses import dataclass
from uuid import UUID

from logkeep.errors import Damaged
from logkeep.formats.kafka.fields import FieldReader
from logkeep.formats.kafka.internal_topics.coordinator_records import GROUP_OFFSETS, RECORD_TYPES

GROUP_KINDS = {2: "classic", 3: "consumer", 11: "share", 17: "streams"}
_LAST_VERSION = 4
_FLEXIBLE = 4
_NO_TOPIC = "0" * 32


@dataclass(frozen=True, order=True)
class PositionKey:
    group: str
    topic: str
    partition: int


@dataclass(frozen=True, order=True)
class GroupKey:
    group: str
    kind: str


@dataclass(frozen=True)
class PositionValue:
    offset: int
    leader_epoch: int
    """-1 if the version does not have it."""
    metadata: str
    topic_id: str = ""
    """In hexadecimal; empty if the version does not have it, or the broker did not know it."""


@dataclass(frozen=True)
class ClassicGroupValue:
    protocol_type: str
    generation: int
    members: int


def decode_key(data: bytes) -> PositionKey | GroupKey | None:
    """None for keys that are not about offsets or the existence of a group. Raises Damaged."""
    reader = FieldReader(data)
    kind = reader.int16()
    if kind in (0, 1):
        return PositionKey(reader.text(compact=False), reader.text(compact=False), reader.int32())
    if kind in GROUP_KINDS:
        return GroupKey(reader.text(compact=False), GROUP_KINDS[kind])
    return None


def decode_position(data: bytes) -> PositionValue:
    """The value of a `PositionKey`. Raises Damaged, also for a newer version."""
    _, found = RECORD_TYPES[GROUP_OFFSETS][1].value.read(data)
    topic_id = UUID(found.get("topicId", _NO_TOPIC)).hex
    return PositionValue(
        offset=found["offset"],
        leader_epoch=found.get("leaderEpoch", -1),
        metadata=found["metadata"],
        topic_id="" if topic_id == _NO_TOPIC else topic_id,
    )


def decode_classic_group(data: bytes) -> ClassicGroupValue:
    """The value of a `GroupKey` of kind `classic`; of its members only the number."""
    reader, version = _opened(data)
    compact = version >= _FLEXIBLE
    protocol_type, generation = reader.text(compact=compact), reader.int32()
    for _ in ("protocol", "leader"):
        reader.optional_text(compact=compact)
    if version >= 2:
        reader.int64()
    return ClassicGroupValue(protocol_type, generation, reader.unsigned() - 1 if compact else reader.int32())


def _opened(data: bytes) -> tuple[FieldReader, int]:
    reader = FieldReader(data)
    version = reader.int16()
    if not 0 <= version <= _LAST_VERSION:
        raise Damaged(f"a value of version {version}, which this release does not know")
    return reader, version
