"""Offsets of logs, from their leaders: start and end, offset by time, end of an epoch; and the producers of a log."""

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from logkeep.kafka.client.cluster import Answer, Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.topology import TopicPartition, by_topic

_ORDINARY_CLIENT = -1


class At(enum.IntEnum):
    """Special values in place of a timestamp; any other number is a time in milliseconds."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    """The first offset on the broker's own disk; earlier ones of a log in tiered storage are elsewhere."""


class IsolationLevel(enum.IntEnum):
    """Meaning of `At.LATEST`: the high watermark, or the last stable offset."""

    UNCOMMITTED = 0
    COMMITTED = 1


@dataclass(frozen=True)
class FoundOffset:
    """-1 for unknown: no record at or after the time, no timestamp requested, no known epoch."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


@dataclass(frozen=True)
class LogBounds:
    """`start` ≤ `last_stable` ≤ `high_watermark`, read one after the other: a busy log grows in between."""

    start: int
    last_stable: int
    high_watermark: int
    leader_epoch: int


@dataclass(frozen=True)
class EpochEnd:
    """The largest epoch not above the requested one, and the offset after its last record; -1 and -1 = unknown."""

    leader_epoch: int
    end_offset: int


@dataclass(frozen=True)
class ProducerState:
    """A producer that the leader knows. `last_sequence` and `open_since` are -1 if there is none."""

    producer_id: int
    epoch: int
    last_sequence: int
    coordinator_epoch: int
    open_since: int


def list_offsets(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int] | Iterable[TopicPartition],
    at: At | int = At.LATEST,
    *,
    isolation: IsolationLevel = IsolationLevel.UNCOMMITTED,
) -> dict[TopicPartition, FoundOffset]:
    """The offset at `at` in each partition. In a mapping, each partition has a value of its own in place of `at`."""
    places = wanted if isinstance(wanted, Mapping) else dict.fromkeys(wanted, int(at))

    def ask(leader: Connection, some: Sequence[TopicPartition]) -> Iterator[Answer[FoundOffset]]:
        topics = [
            {
                "name": topic,
                "partitions": [
                    {"partition_index": p, "timestamp": places[TopicPartition(topic, p)], "current_leader_epoch": -1}
                    for p in partitions
                ],
            }
            for topic, partitions in by_topic(some).items()
        ]
        fields = {
            "replica_id": _ORDINARY_CLIENT,
            "isolation_level": int(isolation),
            "topics": topics,
            "timeout_ms": 20_000,
        }
        for name, found in _flat(leader.call("ListOffsets", fields)):
            value = FoundOffset(found.offset, found.timestamp, found.leader_epoch)
            yield TopicPartition(name, found.partition_index), found.error_code, value

    return cluster.ask_leaders(places, ask)


def log_bounds(cluster: Cluster, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, LogBounds]:
    """Read log start, last stable offset and high watermark, in this order."""
    partitions = list(wanted)
    starts = list_offsets(cluster, partitions, At.EARLIEST)
    stable = list_offsets(cluster, partitions, At.LATEST, isolation=IsolationLevel.COMMITTED)
    ends = list_offsets(cluster, partitions, At.LATEST)
    return {
        each: LogBounds(starts[each].offset, stable[each].offset, ends[each].offset, ends[each].leader_epoch)
        for each in partitions
    }


def offset_for_leader_epoch(cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
    """For each partition, the end of the given epoch in the leader's log."""

    def ask(leader: Connection, some: Sequence[TopicPartition]) -> Iterator[Answer[EpochEnd]]:
        topics = [
            {
                "topic": topic,
                "partitions": [
                    {"partition": p, "current_leader_epoch": -1, "leader_epoch": wanted[TopicPartition(topic, p)]}
                    for p in partitions
                ],
            }
            for topic, partitions in by_topic(some).items()
        ]
        reply = leader.call("OffsetForLeaderEpoch", {"replica_id": _ORDINARY_CLIENT, "topics": topics})
        for topic in reply.topics:
            for found in topic.partitions:
                value = EpochEnd(found.leader_epoch, found.end_offset)
                yield TopicPartition(topic.topic, found.partition), found.error_code, value

    return cluster.ask_leaders(wanted, ask)


def describe_producers(
    cluster: Cluster, wanted: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[ProducerState, ...]]:
    """The producers that each leader knows, including those with an open transaction."""

    def ask(leader: Connection, some: Sequence[TopicPartition]) -> Iterator[Answer[tuple[ProducerState, ...]]]:
        topics = [{"name": topic, "partition_indexes": partitions} for topic, partitions in by_topic(some).items()]
        for name, found in _flat(leader.call("DescribeProducers", {"topics": topics})):
            value = tuple(_producer(each) for each in found.active_producers)
            yield TopicPartition(name, found.partition_index), found.error_code, value

    return cluster.ask_leaders(wanted, ask)


def _flat(reply: Any) -> Iterator[tuple[str, Any]]:
    for topic in reply.topics:
        for partition in topic.partitions:
            yield topic.name, partition


def _producer(found: Any) -> ProducerState:
    return ProducerState(
        producer_id=found.producer_id,
        epoch=found.producer_epoch,
        last_sequence=found.last_sequence,
        coordinator_epoch=found.coordinator_epoch,
        open_since=found.current_txn_start_offset,
    )
