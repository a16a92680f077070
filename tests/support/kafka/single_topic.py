"""Creates and deletes one topic at a time, and raises what the cluster refuses."""

from collections.abc import Mapping

from logkeep.kafka.admin.topic_changes import NewTopic, create_topics, delete_topics, wait_for_leaders
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import raise_first
from logkeep.kafka.client.topology import Topic


def create_topic(
    cluster: Cluster, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> Topic:
    """The topic, when every partition has a leader."""
    _, refused = create_topics(cluster, [NewTopic(name, partitions, -1, configs or {})])
    raise_first(refused.values())
    return wait_for_leaders(cluster, {name: partitions})[name]


def delete_topic(cluster: Cluster, topic: Topic) -> None:
    raise_first(delete_topics(cluster, {topic.name: topic.id}).values())
