"""Deleted heads of logs are seen by another client, and what cannot be deleted is refused with the broker's reason."""

import uuid

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import ClusterError
from logkeep.kafka.admin.topic_changes import delete_records
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import TopicPartition
from tests.support.kafka.single_topic import create_topic

pytestmark = pytest.mark.xdist_group("kafka-secured")


def _filled(kafka: EmbeddedKafka, cluster: Cluster, policy: str) -> str:
    topic = create_topic(cluster, f"{policy}-{uuid.uuid4().hex[:8]}", partitions=2, configs={"cleanup.policy": policy})
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(20):
        producer.produce(topic.name, b"value", key=b"key", partition=number % 2)
    producer.flush(30)
    return topic.name


def test_logs_begin_where_they_are_told_to(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    topic = _filled(kafka, cluster, "delete")
    wanted = {TopicPartition(topic, 0): 7, TopicPartition(topic, 1): 10}
    assert delete_records(cluster, wanted) == wanted
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "nobody"})
    bounds = [consumer.get_watermark_offsets(Position(topic, p), timeout=20) for p in range(2)]
    consumer.close()
    assert bounds == [(7, 10), (10, 10)]
    again = {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 10}
    assert delete_records(cluster, again) == wanted, "a log never begins earlier again"


def test_what_cannot_be_deleted_is_refused(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    beyond = TopicPartition(_filled(kafka, cluster, "delete"), 1)
    with pytest.raises(ClusterError, match="OFFSET_OUT_OF_RANGE") as caught:
        delete_records(cluster, {beyond: 11})
    assert caught.value.subject == str(beyond)
    with pytest.raises(ClusterError, match="POLICY_VIOLATION"):
        delete_records(cluster, {TopicPartition(_filled(kafka, cluster, "compact"), 0): 5})
