"""Whether transactional groups and producers changed while the ends of the logs were read.

An application that reads, writes and commits its offset in one transaction must have, in the archive, exactly the
output that belongs to its offset. An offset that is read before the ends is too old as soon as one more transaction is
committed in between, and the restored application would write those records twice. So offsets are read again after the
ends: if they are the same, and no decided transaction still has to commit an offset, nothing was committed in between.

A transaction that writes to several logs must be archived as a whole or not at all. What the leaders report of its
producer changes with every record and every marker: if that is the same before and after, nothing was written between.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from logkeep.errors import NotAuthorised, TopicMissing
from logkeep.kafka.admin.groups import CommittedOffset, group_offsets, groups_with_pending_commits
from logkeep.kafka.admin.offsets import ProducerState, describe_producers
from logkeep.kafka.admin.transactions import list_transactions
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import ClusterMetadata, TopicPartition

POSITIONS_TOPIC = "__consumer_offsets"
_DECIDED = ("PrepareCommit",)

Producers = Mapping[TopicPartition, Iterable[ProducerState]]


def changed_producers(before: Producers, after: Producers) -> list[int]:
    """Pure: transactional producers that wrote, or whose transaction was decided, between the two reads."""
    return sorted(
        {
            state.producer_id
            for log, states in after.items()
            for state in states
            if _has_transactions(state) and state not in before.get(log, ())
        }
    )


def moved_producers(before: Producers, after: Producers) -> list[int]:
    """Pure: changed producers with transactions in several logs: one may be below the cut of only some of them."""
    logs = Counter(s.producer_id for states in after.values() for s in states if _has_transactions(s))
    return [producer for producer in changed_producers(before, after) if logs[producer] > 1]


def transactional_logs(producers: Producers) -> set[TopicPartition]:
    """Pure: logs with a transactional producer."""
    return {log for log, states in producers.items() if any(map(_has_transactions, states))}


def _has_transactions(state: ProducerState) -> bool:
    """A transaction is open, or a marker has ended one."""
    return state.open_since >= 0 or state.coordinator_epoch >= 0


def coordinator_partition(group: str, partitions: int) -> int:
    """The partition of `__consumer_offsets` that holds a group: the absolute value of Java's hash of its name.

    As in the broker, the smallest integer, which has no absolute value in Java, counts as 0.
    """
    code = 0
    units = group.encode("utf-16-be")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    signed = code - 2**32 if code >= 2**31 else code
    return 0 if signed == -(2**31) else abs(signed) % partitions


def transactional_groups(cluster: Cluster, metadata: ClusterMetadata, names: Iterable[str]) -> list[str]:
    """Groups that may commit inside transactions: a producer has written to their partition of `__consumer_offsets`.

    All groups, if this user may not describe that topic or its producers.
    """
    groups = list(names)
    topic = next((t for t in metadata.topics if t.name == POSITIONS_TOPIC), None)
    if topic is None or not groups:
        return groups
    logs = [TopicPartition(POSITIONS_TOPIC, p.index) for p in topic.partitions]
    try:
        states = describe_producers(cluster, logs)
    except (NotAuthorised, TopicMissing):
        return groups
    written = {log.partition for log, found in states.items() if found}
    return [name for name in groups if coordinator_partition(name, len(logs)) in written]


def changed_groups(
    cluster: Cluster, before: Mapping[str, Mapping[TopicPartition, CommittedOffset]], topics: Collection[str]
) -> list[str]:
    """Groups whose offsets in these topics may not belong to the ends that were read since `before`."""
    if not before:
        return []
    pending = groups_with_pending_commits(cluster, before, topics=topics)
    if pending and not list_transactions(cluster, states=_DECIDED):
        pending = set()  # their transactions are not decided: the commits do not count yet
    after = group_offsets(cluster, before, topics=topics)
    return [name for name, commits in before.items() if name in pending or after.get(name, {}) != commits]
