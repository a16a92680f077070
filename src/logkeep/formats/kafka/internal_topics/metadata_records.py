"""Decodes records of the metadata log: topics, configs, ACLs and quotas of a cluster.

A record is a frame (version 1, kind, version of the kind, each an unsigned varint) and a flexible message. `decode`
knows the kinds below and returns None for all others: brokers, features, producer ids, secrets. Field numbers and
tags follow the message definitions that Kafka ships.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from logkeep.errors import Damaged
from logkeep.formats.kafka.fields import FieldReader

_FRAME = 1
_TOPIC_CONFIG = 2
_REPLICAS_TAG = 2


class MetadataRecordType(IntEnum):
    TOPIC = 2
    PARTITION = 3
    CONFIG = 4
    PARTITION_CHANGE = 5
    REMOVE_TOPIC = 9
    CLIENT_QUOTA = 14
    ACL = 18
    REMOVE_ACL = 19
    BEGIN_TRANSACTION = 23
    END_TRANSACTION = 24
    ABORT_TRANSACTION = 25


@dataclass(frozen=True)
class TopicMade:
    name: str
    id: UUID


@dataclass(frozen=True)
class TopicRemoved:
    id: UUID


@dataclass(frozen=True)
class ReplicasSet:
    """The brokers with a replica of a partition."""

    topic_id: UUID
    partition: int
    replicas: tuple[int, ...]


@dataclass(frozen=True)
class TopicConfigSet:
    """A value of None removes the config."""

    topic: str
    name: str
    value: str | None


@dataclass(frozen=True)
class QuotaSet:
    """A limit of None removes it."""

    entity: tuple[tuple[str, str | None], ...]
    key: str
    limit: float | None


@dataclass(frozen=True)
class AclMade:
    """Numbers as Kafka's protocol has them."""

    id: UUID
    resource_type: int
    resource_name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


@dataclass(frozen=True)
class AclRemoved:
    id: UUID


@dataclass(frozen=True)
class TransactionStep:
    """Records between `begin` and `end` count together or, after an `abort`, not at all."""

    kind: MetadataRecordType


Change = (
    TopicMade | TopicRemoved | ReplicasSet | TopicConfigSet | QuotaSet | AclMade | AclRemoved | TransactionStep | None
)


def decode(value: bytes) -> Change:
    """What one record changes. Raises Damaged for bytes that are no such record."""
    reader = FieldReader(value)
    if reader.unsigned() != _FRAME:
        raise Damaged("a metadata record in an unknown frame")
    kind = reader.unsigned()
    reader.unsigned()
    return _decoded(MetadataRecordType(kind), reader) if kind in list(MetadataRecordType) else None


def _decoded(kind: MetadataRecordType, reader: FieldReader) -> Change:
    form = _FORMS.get(kind)
    return form(reader) if form is not None else TransactionStep(kind)


def _topic(reader: FieldReader) -> TopicMade:
    return TopicMade(reader.text(compact=True), reader.uuid())


def _partition(reader: FieldReader) -> ReplicasSet:
    partition, topic = reader.int32(), reader.uuid()
    return ReplicasSet(topic, partition, tuple(reader.array(reader.int32)))


def _replicas_changed(reader: FieldReader) -> ReplicasSet | None:
    partition, topic = reader.int32(), reader.uuid()
    packed = reader.tagged().get(_REPLICAS_TAG)
    if packed is None:
        return None
    inner = FieldReader(packed)
    return ReplicasSet(topic, partition, tuple(inner.array(inner.int32)))


def _config(reader: FieldReader) -> TopicConfigSet | None:
    kind = reader.int8()
    topic, name, value = reader.text(compact=True), reader.text(compact=True), reader.optional_text(compact=True)
    return TopicConfigSet(topic, name, value) if kind == _TOPIC_CONFIG else None


def _quota(reader: FieldReader) -> QuotaSet:
    def part() -> tuple[str, str | None]:
        named = reader.text(compact=True), reader.optional_text(compact=True)
        reader.tagged()
        return named

    entity = tuple(reader.array(part))
    key, limit = reader.text(compact=True), reader.float64()
    return QuotaSet(entity, key, None if reader.boolean() else limit)


def _acl(reader: FieldReader) -> AclMade:
    return AclMade(
        id=reader.uuid(),
        resource_type=reader.int8(),
        resource_name=reader.text(compact=True),
        pattern=reader.int8(),
        principal=reader.text(compact=True),
        host=reader.text(compact=True),
        operation=reader.int8(),
        permission=reader.int8(),
    )


_FORMS: Mapping[MetadataRecordType, Callable[[FieldReader], Change]] = {
    MetadataRecordType.TOPIC: _topic,
    MetadataRecordType.REMOVE_TOPIC: lambda reader: TopicRemoved(reader.uuid()),
    MetadataRecordType.PARTITION: _partition,
    MetadataRecordType.PARTITION_CHANGE: _replicas_changed,
    MetadataRecordType.CONFIG: _config,
    MetadataRecordType.CLIENT_QUOTA: _quota,
    MetadataRecordType.ACL: _acl,
    MetadataRecordType.REMOVE_ACL: lambda reader: AclRemoved(reader.uuid()),
}
