"""Partitions grouped by topic, as most requests want them."""

from collections import defaultdict
from collections.abc import Iterable

from logkeep.kafka.values import TopicPartition


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        grouped[topic].append(partition)
    return dict(grouped)
