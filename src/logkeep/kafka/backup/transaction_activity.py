"""Whether those who work in transactions stood still while the ends of the logs were read.

A copier that reads, writes and commits its position in one transaction must be found in the archive with exactly the
output that belongs to its position. A position that is read before the ends is too old as soon as one more of its
transactions is committed in between, and a restore would copy those records twice. So positions are read again after
the ends: if they are the same, and no decided transaction still owes its position, no such transaction came between.

A producer that writes to several logs in one transaction must be found with all of it or nothing. What the leaders
remember of it changes with every record and every marker: if that is the same before and after, nothing came between.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

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
    """Pure: producers with transactions, which wrote or were decided between the two looks."""
    return sorted(
        {
            state.producer_id
            for log, states in after.items()
            for state in states
            if _has_transactions(state) and state not in before.get(log, ())
        }
    )


def moved_producers(before: Producers, after: Producers) -> list[int]:
    """Pure: those of them that have transactions in several logs: one of these may be in one cut and not in another."""
    logs = Counter(s.producer_id for states in after.values() for s in states if _has_transactions(s))
    return [producer for producer in changed_producers(before, after) if logs[producer] > 1]


def transactional_logs(producers: Producers) -> set[TopicPartition]:
    """Pure: logs that remember a transaction."""
    return {log for log, states in producers.items() if any(map(_has_transactions, states))}


def _has_transactions(state: ProducerState) -> bool:
    """One is open, or a marker has ended one."""
    return state.open_since >= 0 or state.coordinator_epoch >= 0


def coordinator_partition(group: str, partitions: int) -> int:
    """Which partition of the positions' topic holds a group: the absolute value of Java's hash of its name.

    As the broker takes it: the smallest integer, which has no absolute value in Java, counts as 0.
    """
    code = 0
    units = group.encode("utf-16-be")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    signed = code - 2**32 if code >= 2**31 else code
    return 0 if signed == -(2**31) else abs(signed) % partitions


def transactional_groups(cluster: Cluster, metadata: ClusterMetadata, names: Iterable[str]) -> list[str]:
    """Groups that may commit inside of transactions: a producer has written where their positions are kept.

    Without the right to ask, or to see that topic at all, any of them may.
    """
    asked = list(names)
    topic = next((t for t in metadata.topics if t.name == POSITIONS_TOPIC), None)
    if topic is None or not asked:
        return asked
    logs = [TopicPartition(POSITIONS_TOPIC, p.index) for p in topic.partitions]
    try:
        states = describe_producers(cluster, logs)
    except (NotAuthorised, TopicMissing):
        return asked
    written = {log.partition for log, found in states.items() if found}
    return [name for name in asked if coordinator_partition(name, len(logs)) in written]


def moved_meanwhile(cluster: Cluster, before: Mapping[str, Mapping[TopicPartition, CommittedOffset]]) -> list[str]:
    """Those of the groups whose position may belong to other ends than the ones that were read since `before`."""
    if not before:
        return []
    pending = groups_with_pending_commits(cluster, before)
    if pending and not list_transactions(cluster, states=_DECIDED):
        pending = set()  # what they belong to is not decided: it is not part of any position yet
    after = group_offsets(cluster, before)
    return [name for name, commits in before.items() if name in pending or after.get(name, {}) != commits]
