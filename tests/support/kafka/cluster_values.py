"""Topics, bounds and facts made by hand, for tests of what is decided about them."""

from collections.abc import Mapping
from uuid import UUID

from logkeep.kafka.admin.groups import CommittedOffset, Group
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.admin.topics import TopicConfigs
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.log_ends import GroupFacts, LogEnds
from logkeep.kafka.client.topology import ClusterMetadata, Partition, Topic, TopicPartition

ID = UUID("00000000-0000-4000-8000-0000000000aa")
OTHER_ID = UUID("00000000-0000-4000-8000-0000000000bb")


def topic(name: str, leaders: tuple[int, ...] = (1,), *, topic_id: UUID = ID, internal: bool = False) -> Topic:
    """One partition for each leader."""
    partitions = tuple(Partition(index, leader, 3, (leader, 9)) for index, leader in enumerate(leaders))
    return Topic(name, topic_id, internal, partitions)


def bounds(start: int, end: int, stable: int | None = None) -> LogBounds:
    return LogBounds(start, end if stable is None else stable, end, 3)


def facts(
    topics: tuple[Topic, ...],
    ends: Mapping[TopicPartition, LogBounds],
    commits: Mapping[TopicPartition, CommittedOffset],
) -> Facts:
    """One group, `billing`, no authorizer, one config and no quotas."""
    return Facts(
        metadata=ClusterMetadata("cluster-1", (), topics),
        topics=topics,
        log_ends=LogEnds((GroupFacts(Group("billing", "classic", "Empty", "consumer"), commits),), ends),
        sizes={},
        configs={t.name: TopicConfigs({"retention.ms": "1000"}, {"cleanup.policy": "compact"}) for t in topics},
        acls=None,
        quotas=(),
        notes=(),
    )
