"""Deleting what stands before an offset: a log then begins there."""

from collections.abc import Iterator, Mapping, Sequence

from logkeep.kafka.client.cluster import Answer, Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.topology import TopicPartition, by_topic

_TIMEOUT_MS = 20_000


def delete_records(cluster: Cluster, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Move each log start to the offset given for it, on all replicas; where each log begins now.

    May be repeated: a log that begins later stays as it is. Raises `ClusterError` for an offset above the high
    watermark and for a topic whose cleanup.policy has no `delete`, `NotAuthorised` without the right DELETE.
    """

    def ask(leader: Connection, some: Sequence[TopicPartition]) -> Iterator[Answer[int]]:
        topics = [
            {
                "name": topic,
                "partitions": [{"partition_index": p, "offset": before[TopicPartition(topic, p)]} for p in partitions],
            }
            for topic, partitions in by_topic(some).items()
        ]
        for found in leader.call("DeleteRecords", {"topics": topics, "timeout_ms": _TIMEOUT_MS}).topics:
            for each in found.partitions:
                yield TopicPartition(found.name, each.partition_index), each.error_code, each.low_watermark

    return cluster.ask_leaders(before, ask)
