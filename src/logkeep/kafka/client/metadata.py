"""Builds Metadata requests and turns their replies into values. Pure."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from logkeep.errors import ClusterTooOld
from logkeep.kafka.client.error_codes import OK, TRY_AGAIN, UNKNOWN_TOPIC
from logkeep.kafka.client.settings import Endpoint
from logkeep.kafka.client.topology import Broker, ClusterMetadata, Partition, Topic, UnreadyTopic, is_internal

_ANY_ID = UUID(int=0)


def request_fields(topics: Sequence[str] | None) -> dict[str, Any]:
    """A request that never creates topics: a typing error must not."""
    named = None if topics is None else [{"name": each, "topic_id": _ANY_ID} for each in topics]
    return {"topics": named, "allow_auto_topic_creation": False, "include_topic_authorized_operations": False}


def read_metadata(reply: Any) -> ClusterMetadata:
    """Topics with an error are listed in `unready`. A partition without leader is no error."""
    sound = [each for each in reply.topics if each.error_code == OK]
    unready = [each for each in reply.topics if each.error_code != OK]
    return ClusterMetadata(
        cluster_id=reply.cluster_id or "",
        brokers=tuple(
            sorted(
                (Broker(each.node_id, Endpoint(each.host, each.port), each.rack) for each in reply.brokers),
                key=lambda each: each.node,
            )
        ),
        topics=tuple(sorted((_topic(each) for each in sound), key=lambda each: each.name)),
        unready=tuple(sorted((_unready(each) for each in unready), key=lambda each: each.name)),
    )


def _unready(found: Any) -> UnreadyTopic:
    code = found.error_code
    name = found.name or str(found.topic_id)
    internal = is_internal(name, bool(found.is_internal))
    return UnreadyTopic(name, internal, code, passing=code in TRY_AGAIN - {UNKNOWN_TOPIC})


def _topic(found: Any) -> Topic:
    if not found.topic_id:
        raise ClusterTooOld(
            "topics of this cluster have no ids, and without them a re-created topic cannot be distinguished",
            subject=found.name,
            remedy="raise inter.broker.protocol.version of the brokers to 2.8 or newer; topics then get ids",
        )
    partitions = sorted((_partition(each) for each in found.partitions), key=lambda each: each.index)
    name, topic_id = found.name or "", UUID(bytes=bytes(found.topic_id.bytes))
    return Topic(name, topic_id, is_internal(name, bool(found.is_internal)), tuple(partitions))


def _partition(found: Any) -> Partition:
    return Partition(
        index=found.partition_index,
        leader=found.leader_id,
        leader_epoch=found.leader_epoch,
        replicas=tuple(found.replica_nodes),
        offline=tuple(found.offline_replicas or ()),
    )
