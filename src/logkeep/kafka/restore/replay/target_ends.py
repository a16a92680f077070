"""What a target says of the logs that are restored into it: is it still the topic, who leads it, where does it end."""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.errors import NotAuthorised, TopicMissing
from logkeep.kafka.admin.offsets import ProducerState, describe_producers, list_offsets
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import ClusterMetadata, TopicPartition
from logkeep.kafka.restore.facts.units import ReplayLog, ReplayOutcome
from logkeep.kafka.restore.replay.resume_point import TargetEnd, Trouble


@dataclass(frozen=True)
class Stand:
    """Where one log stands, and under which leader."""

    leader: int
    standing: TargetEnd


@dataclass(frozen=True)
class Absent:
    """The topic or its leader is not there at the moment; it may come."""

    what: str
    gone: bool = True
    """Whether it is the topic: if that stays so, it is gone. A leader comes back, with its broker or its disk."""


Answer = Stand | Absent | Trouble


def ask_standings(cluster: Cluster, logs: Sequence[ReplayLog]) -> list[Answer]:
    """One answer for each. Raises ClusterUnreachable or ClusterNotReady."""
    metadata = cluster.metadata()
    leaders = [_leader(metadata, log) for log in logs]
    known = [log for log, leader in zip(logs, leaders, strict=True) if isinstance(leader, int)]
    stands = _standings(cluster, known)
    return [
        leader if not isinstance(leader, int) else _answer(leader, stands[_key(log)])
        for log, leader in zip(logs, leaders, strict=True)
    ]


def _answer(leader: int, found: TargetEnd | Absent | Trouble) -> Answer:
    return Stand(leader, found) if isinstance(found, TargetEnd) else found


def _leader(metadata: ClusterMetadata, log: ReplayLog) -> int | Absent:
    topic = metadata.topic(log.topic)
    if topic is None:
        return Absent("the topic is not there")
    if topic.id.hex != log.topic_id:
        # Told by one broker, it may be what that one has not heard yet: only what stays is believed.
        return Absent("the topic was deleted and made again since this was planned")
    partition = metadata.find(_key(log))
    if partition is None or partition.leader < 0:
        return Absent("nobody leads the partition", gone=False)
    return partition.leader


def _standings(cluster: Cluster, logs: Sequence[ReplayLog]) -> dict[TopicPartition, TargetEnd | Absent | Trouble]:
    """The end of each log first, then what its leader remembers: that order is what `position` rests on."""
    keys = [_key(log) for log in logs]
    try:
        ends = list_offsets(cluster, keys) if keys else {}
        memories = describe_producers(cluster, keys) if keys else {}
    except (NotAuthorised, TopicMissing) as error:
        if len(logs) > 1:  # one of them spoils the answer for all
            return {key: found for log in logs for key, found in _standings(cluster, [log]).items()}
        if isinstance(error, NotAuthorised):
            return {keys[0]: Trouble(ReplayOutcome.DENIED, error.what)}
        return {keys[0]: Absent(error.what)}
    return {_key(log): TargetEnd(ends[_key(log)].offset, _last_sequence(log, memories[_key(log)])) for log in logs}


def _last_sequence(log: ReplayLog, states: Sequence[ProducerState]) -> int | None:
    ours = [s.last_sequence for s in states if s.producer_id == log.producer.producer_id]
    return ours[0] if ours and ours[0] >= 0 else None


def _key(log: ReplayLog) -> TopicPartition:
    return TopicPartition(log.topic, log.partition)
