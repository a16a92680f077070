"""Logs whose offsets are expensive to keep: holes of one offset each, and a first offset far away from 0."""

from collections.abc import Sequence

from confluent_kafka import Producer

from logkeep.formats.kafka.restore.send_batches import stamp
from logkeep.formats.kafka.restore.synthetic_batches import filler_batches
from logkeep.kafka.admin.topic_changes import delete_records
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.produce import API, VERSION, OutgoingBatch, parse, request_parts
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition


def with_lone_markers(bootstrap: str, topic: str, count: int) -> None:
    """So many transactions of one record each: after each record one offset is a marker's."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(30)
    for index in range(count):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % index, partition=0)
        producer.commit_transaction(30)


def after_a_first_offset(bootstrap: str, topic: str, count: int) -> None:
    """A log that begins there, with a few records."""
    log = TopicPartition(topic, 0)
    with Cluster(ClientSettings(endpoints(bootstrap))) as cluster:
        for some in filler_batches(count):
            stamp(some, -1, -1, -1)
            _send(cluster, log, [some.batch(0)])
        _plain(bootstrap, topic)
        delete_records(cluster, {log: count})


def _send(cluster: Cluster, log: TopicPartition, batches: Sequence[bytes]) -> None:
    found = cluster.metadata().find(log)
    assert found is not None
    leader = cluster.connection(found.leader)
    for batch in batches:
        leader.send_raw(API, VERSION, request_parts([OutgoingBatch(log, batch)]))
        (ack,) = parse(leader.receive_raw(ReceiveBuffer())).acks
        assert not ack.error, ack


def _plain(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for index in range(10):
        producer.produce(topic, b"%d" % index, partition=0)
    producer.flush(30)
