"""Changes to where groups stand: set, forgotten, removed. What a broker refuses is an answer, not an error.

Every change is of one group that has no members: a broker refuses to touch a group that is being read by. All of them
may be repeated, so they are, while a coordinator moves.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from logkeep.kafka.admin.coordinators import CoordinatorKind, KeyedAnswer, ask_coordinators
from logkeep.kafka.admin.groups import CommittedOffset
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.error_codes import COORDINATOR_MOVED, GROUP_ID_NOT_FOUND, OK, TRY_AGAIN
from logkeep.kafka.client.protocol import error_name
from logkeep.kafka.client.topology import TopicPartition, by_topic

_NAMED_TOPICS = 9
"""OffsetCommit 10 wants topic ids."""
_NO_GENERATION = -1
_REQUEST_BYTES = 400_000
"""A coordinator writes all commits of a request as one batch, which has to fit into its topic: 1 MB by default."""
_LIVE = frozenset({22, 25, 27, 68, 86, 113})
"""Wrong generation, unknown member, rebalance, group not empty, topic is subscribed to, old member epoch."""


@dataclass(frozen=True)
class GroupRefusal:
    """A broker's no, to one partition, or to all of a group when there is none."""

    code: int
    log: TopicPartition | None = None
    said: str = ""

    @property
    def live(self) -> bool:
        """Whether it is because the group has members."""
        return self.code in _LIVE

    def __str__(self) -> str:
        return f"{error_name(self.code)}{f': {self.said}' if self.said else ''}{f' ({self.log})' if self.log else ''}"


Refusals = dict[str, tuple[GroupRefusal, ...]]
"""By group, every one that was asked for; empty: all of it was done."""
_Call = Callable[[Connection, str], Iterable[GroupRefusal]]


def commit_offsets(cluster: Cluster, commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]]) -> Refusals:
    """Set positions of classic and consumer groups, as an administrator; groups that are not there are made."""

    def ask(coordinator: Connection, group: str) -> Iterator[GroupRefusal]:
        for some in _small_enough(group, commits[group]):
            reply = coordinator.call("OffsetCommit", _commit_fields(group, some), at_most=_NAMED_TOPICS)
            yield from (
                GroupRefusal(p.error_code, TopicPartition(topic.name, p.partition_index))
                for topic in reply.topics
                for p in topic.partitions
            )

    return _change(cluster, commits, ask, "OffsetCommit")


def _commit_fields(group: str, commits: Mapping[TopicPartition, CommittedOffset]) -> dict[str, Any]:
    topics = [
        {"name": topic, "partitions": [_commit_of(p, commits[TopicPartition(topic, p)]) for p in partitions]}
        for topic, partitions in by_topic(commits).items()
    ]
    return {
        "group_id": group,
        "generation_id_or_member_epoch": _NO_GENERATION,
        "member_id": "",
        "group_instance_id": None,
        "topics": topics,
    }


def _commit_of(partition: int, commit: CommittedOffset) -> dict[str, Any]:
    return {
        "partition_index": partition,
        "committed_offset": commit.offset,
        "committed_leader_epoch": commit.leader_epoch,
        "committed_metadata": commit.metadata,
    }


def _small_enough(
    group: str, commits: Mapping[TopicPartition, CommittedOffset]
) -> Iterator[dict[TopicPartition, CommittedOffset]]:
    some: dict[TopicPartition, CommittedOffset] = {}
    size_bytes, overhead_bytes = 0, 100 + len(group.encode())
    for log, commit in commits.items():
        own_bytes = overhead_bytes + len(log.topic) + len(commit.metadata.encode())
        if some and size_bytes + own_bytes > _REQUEST_BYTES:
            yield some
            some, size_bytes = {}, 0
        some[log] = commit
        size_bytes += own_bytes
    if some:
        yield some


def forget_offsets(cluster: Cluster, logs: Mapping[str, Iterable[TopicPartition]]) -> Refusals:
    """Remove positions of classic and consumer groups."""

    def ask(coordinator: Connection, group: str) -> Iterator[GroupRefusal]:
        topics = [
            {"name": topic, "partitions": [{"partition_index": p} for p in partitions]}
            for topic, partitions in by_topic(logs[group]).items()
        ]
        reply = coordinator.call("OffsetDelete", {"group_id": group, "topics": topics})
        yield GroupRefusal(reply.error_code)
        for topic in reply.topics:
            yield from (
                GroupRefusal(p.error_code, TopicPartition(topic.name, p.partition_index)) for p in topic.partitions
            )

    return _change(cluster, logs, ask, "OffsetDelete")


def move_share_groups(cluster: Cluster, starts: Mapping[str, Mapping[TopicPartition, int]]) -> Refusals:
    """Set where share groups start; those that are not there are made. What was delivered of it begins anew."""

    def ask(coordinator: Connection, group: str) -> Iterator[GroupRefusal]:
        topics = [
            {"topic_name": topic, "partitions": [_start_of(p, starts[group][TopicPartition(topic, p)]) for p in found]}
            for topic, found in by_topic(starts[group]).items()
        ]
        reply = coordinator.call("AlterShareGroupOffsets", {"group_id": group, "topics": topics})
        yield GroupRefusal(reply.error_code, None, reply.error_message or "")
        for topic in reply.responses:
            for p in topic.partitions:
                log = TopicPartition(topic.topic_name, p.partition_index)
                yield GroupRefusal(p.error_code, log, p.error_message or "")

    return _change(cluster, starts, ask, "AlterShareGroupOffsets")


def _start_of(partition: int, start: int) -> dict[str, int]:
    return {"partition_index": partition, "start_offset": start}


def forget_share_topics(cluster: Cluster, topics: Mapping[str, Iterable[str]]) -> Refusals:
    """Let share groups forget topics; a broker offers this for whole topics alone."""

    def ask(coordinator: Connection, group: str) -> Iterator[GroupRefusal]:
        fields = {"group_id": group, "topics": [{"topic_name": each} for each in topics[group]]}
        reply = coordinator.call("DeleteShareGroupOffsets", fields)
        yield GroupRefusal(reply.error_code, None, reply.error_message or "")
        for each in reply.responses:
            yield GroupRefusal(each.error_code, None, f"{each.topic_name}: {each.error_message or ''}")

    return _change(cluster, topics, ask, "DeleteShareGroupOffsets")


def delete_groups(cluster: Cluster, groups: Iterable[str]) -> Refusals:
    """Remove groups with all they have. One that is not there counts as removed."""

    def ask(coordinator: Connection, group: str) -> Iterator[GroupRefusal]:
        for each in coordinator.call("DeleteGroups", {"groups_names": [group]}).results:
            yield GroupRefusal(OK if each.error_code == GROUP_ID_NOT_FOUND else each.error_code)

    return _change(cluster, groups, ask, "DeleteGroups")


def _change(cluster: Cluster, groups: Iterable[str], call: _Call, doing: str) -> Refusals:
    """One group after the other; answers that say OK are no refusals.

    A passing trouble anywhere in a group lets all of the group be tried again.
    """

    def ask(coordinator: Connection, some: Sequence[str]) -> Iterator[KeyedAnswer[tuple[GroupRefusal, ...]]]:
        for group in some:
            refused = tuple(each for each in call(coordinator, group) if each.code != OK)
            passing = (each.code for each in refused if each.code in COORDINATOR_MOVED | TRY_AGAIN)
            yield group, next(passing, OK), refused

    return ask_coordinators(cluster, CoordinatorKind.GROUP, groups, ask, doing=doing)
