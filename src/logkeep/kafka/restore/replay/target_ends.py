"""Log ends, leaders and topic ids of the partitions that are restored to, as the target cluster reports them."""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.errors import NotAuthorised, TopicMissing
from logkeep.kafka.admin.offsets import ProducerState, describe_producers, list_offsets
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import ClusterMetadata, TopicPartition
from logkeep.kafka.restore.facts.units import ReplayLog, ReplayOutcome
from logkeep.kafka.restore.replay.resume_point import TargetEnd, Trouble


@dataclass(frozen=True)
class FoundTarget:
    """The leader and the log end of one partition."""

    leader: int
    end: TargetEnd


@dataclass(frozen=True)
class Absent:
    """The topic or its leader is missing at the moment; it may appear later."""

    what: str
    gone: bool = True
    """Whether the topic is missing: if it stays so, it is gone. A leader returns with its broker or its disk."""


TargetAnswer = FoundTarget | Absent | Trouble


def read_target_ends(cluster: Cluster, logs: Sequence[ReplayLog]) -> list[TargetAnswer]:
    """One answer for each. Raises ClusterUnreachable or ClusterNotReady."""
    metadata = cluster.metadata()
    leaders = [_leader(metadata, log) for log in logs]
    known = [log for log, leader in zip(logs, leaders, strict=True) if isinstance(leader, int)]
    ends = _read_ends(cluster, known)
    return [
        leader if not isinstance(leader, int) else _answer(leader, ends[log.key])
        for log, leader in zip(logs, leaders, strict=True)
    ]


def _answer(leader: int, found: TargetEnd | Absent | Trouble) -> TargetAnswer:
    return FoundTarget(leader, found) if isinstance(found, TargetEnd) else found


def _leader(metadata: ClusterMetadata, log: ReplayLog) -> int | Absent:
    topic = metadata.topic(log.topic)
    if topic is None:
        return Absent("the topic does not exist")
    if topic.id.hex != log.topic_id:
        # One broker's metadata may be outdated: only what stays so counts.
        return Absent("the topic was deleted and created again since this was planned")
    partition = metadata.find(log.key)
    if partition is None or partition.leader < 0:
        return Absent("the partition has no leader", gone=False)
    return partition.leader


def _read_ends(cluster: Cluster, logs: Sequence[ReplayLog]) -> dict[TopicPartition, TargetEnd | Absent | Trouble]:
    """The end of each log first, then the leader's producer state: `resume_point` relies on that order."""
    keys = [log.key for log in logs]
    try:
        ends = list_offsets(cluster, keys) if keys else {}
        producers = describe_producers(cluster, keys) if keys else {}
    except (NotAuthorised, TopicMissing) as error:
        if len(logs) > 1:  # one of them fails the request for all
            return {key: found for log in logs for key, found in _read_ends(cluster, [log]).items()}
        if isinstance(error, NotAuthorised):
            return {keys[0]: Trouble(ReplayOutcome.DENIED, error.what)}
        return {keys[0]: Absent(error.what)}
    return {log.key: TargetEnd(ends[log.key].offset, _last_sequence(log, producers[log.key])) for log in logs}


def _last_sequence(log: ReplayLog, states: Sequence[ProducerState]) -> int | None:
    ours = [s.last_sequence for s in states if s.producer_id == log.producer.producer_id]
    return ours[0] if ours and ours[0] >= 0 else None
