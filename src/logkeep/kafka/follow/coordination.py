"""Publishes to a topic which generations a backup made active. It does so after the commit, and reads nothing back.

The repository decides. A topic of the cluster that is backed up may deliver an event twice or never.
"""

from collections.abc import Sequence
from itertools import groupby

from logkeep.errors import TopicMissing
from logkeep.formats.kafka.internal_topics.coordination_events import CoordinationEvent, CoordinationKind, event_batch
from logkeep.kafka.backup.values import KafkaBackupDone
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import failure
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.produce import API, VERSION, OutgoingBatch, parse, request_parts
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition

_MOST_EVENTS = 1_000
"""In one batch: some hundred kilobytes, below every usual limit."""


def switch_events(done: KafkaBackupDone, instance: str, time_ms: int) -> list[CoordinationEvent]:
    """The events of a backup: for each partition of each topic whose new generation is active now, one that the old
    generation ended and one that the new one began."""
    return [
        CoordinationEvent(kind, instance, log.topic, log.partition, log.end, time_ms)
        for kind in (CoordinationKind.PASSIVATE, CoordinationKind.ACTIVATE)
        for log in done.logs
        if log.topic in done.switched
    ]


def publish(settings: ClientSettings, topic: str, events: Sequence[CoordinationEvent]) -> None:
    """Send the events to partition 0, in order. Raises ClusterError."""
    log = TopicPartition(topic, 0)
    with Cluster(settings) as cluster:
        found = cluster.metadata([topic]).find(log)
        if found is None:
            raise TopicMissing("there is no such topic", subject=topic, remedy="create it, with one partition")
        with cluster.open_own(found.leader) as connection:
            for _, some in groupby(enumerate(events), lambda each: each[0] // _MOST_EVENTS):
                batch = event_batch([event for _, event in some])
                connection.send_raw(API, VERSION, request_parts([OutgoingBatch(log, batch)]))
                (ack,) = parse(connection.receive_raw(ReceiveBuffer(64 << 10))).acks
                if ack.error:
                    raise failure(ack.error, subject=topic, doing=API, message=ack.said)
