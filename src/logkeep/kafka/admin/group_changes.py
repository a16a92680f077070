"""Changes to group offsets: set, delete, remove the group. What a broker refuses is a value, not an error.

Every change is to one group without members: a broker refuses to change a group with active consumers. All changes may
be repeated, and are, while a coordinator moves.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from logkeep.kafka.admin.coordinators import CoordinatorKind, KeyedAnswer, ask_coordinators
from logkeep.kafka.admin.groups import CommittedOffset
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.error_codes import COORDINATOR_MOVED, GROUP_ID_NOT_FOUND, OK, TRY_AGAIN
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.group_offsets import HIGHEST, commit_request, parse_commit
from logkeep.kafka.client.protocol import error_name
from logkeep.kafka.client.topology import TopicPartition, by_topic

_TOGETHER = 8
"""OffsetCommit requests in flight at one coordinator."""
_REQUEST_BYTES = 400_000
"""A coordinator writes all commits of a request as one batch, which its topic limits: 1 MB by default."""
_LIVE = frozenset({22, 25, 27, 68, 86, 113})
"""Wrong generation, unknown member, rebalance, group not empty, topic has subscribers, old member epoch."""


@dataclass(frozen=True)
class GroupRefusal:
    """What a broker refused: one partition, or the whole group if `log` is None."""

    code: int
    log: TopicPartition | None = None
    said: str = ""

    @property
    def live(self) -> bool:
        """Whether the reason is that the group has members."""
        return self.code in _LIVE

    def __str__(self) -> str:
        return f"{error_name(self.code)}{f': {self.said}' if self.said else ''}{f' ({self.log})' if self.log else ''}"


Refusals = dict[str, tuple[GroupRefusal, ...]]
"""What brokers refused, by group. Every group of the request is in it; an empty tuple: everything was done."""
_Call = Callable[[Connection, str], Iterable[GroupRefusal]]


def commit_offsets(cluster: Cluster, commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]]) -> Refusals:
    """Set offsets of classic and consumer groups, as an administrator; missing groups are created."""

    def ask(coordinator: Connection, some: Sequence[str]) -> Iterator[KeyedAnswer[tuple[GroupRefusal, ...]]]:
        requests = [(group, part) for group in some for part in _split_by_size(group, commits[group])]
        refused: dict[str, list[GroupRefusal]] = {group: [] for group in some}
        for (group, _), reply in zip(requests, _send_commits(coordinator, requests), strict=True):
            refused[group] += [GroupRefusal(code, log) for log, code in reply if code != OK]
        return (_keyed(group, tuple(each)) for group, each in refused.items())

    return ask_coordinators(cluster, CoordinatorKind.GROUP, commits, ask, doing="OffsetCommit")


_Commits = Mapping[TopicPartition, tuple[int, int, str]]


def _send_commits(
    coordinator: Connection, requests: Sequence[tuple[str, _Commits]]
) -> Iterator[list[tuple[TopicPartition, int]]]:
    """Send one OffsetCommit request after the other, some of them in flight together; yields the codes of each."""
    version, buffer = coordinator.version("OffsetCommit", at_most=HIGHEST), ReceiveBuffer()
    sent = 0
    for received in range(len(requests)):
        while sent < len(requests) and sent - received < _TOGETHER:
            coordinator.send_raw("OffsetCommit", version, commit_request(*requests[sent]))
            sent += 1
        yield parse_commit(coordinator.receive_raw(buffer))


def _keyed(group: str, refused: tuple[GroupRefusal, ...]) -> KeyedAnswer[tuple[GroupRefusal, ...]]:
    """A temporary error anywhere in a group repeats the whole group."""
    passing = (each.code for each in refused if each.code in COORDINATOR_MOVED | TRY_AGAIN)
    return group, next(passing, OK), refused


def _split_by_size(group: str, commits: Mapping[TopicPartition, CommittedOffset]) -> Iterator[_Commits]:
    """The commits of a group in parts, each small enough for one request."""
    some: dict[TopicPartition, tuple[int, int, str]] = {}
    size_bytes, overhead_bytes = 0, 100 + len(group.encode())
    for log, commit in commits.items():
        own_bytes = overhead_bytes + len(log.topic) + len(commit.metadata.encode())
        if some and size_bytes + own_bytes > _REQUEST_BYTES:
            yield some
            some, size_bytes = {}, 0
        some[log] = commit.offset, commit.leader_epoch, commit.metadata
        size_bytes += own_bytes
    if some:
        yield some


def forget_offsets(cluster: Cluster, logs: Mapping[str, Iterable[TopicPartition]]) -> Refusals:
    """Delete offsets of classic and consumer groups."""

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
    """Set the start offsets of share groups, and reset their delivery state; missing groups are created."""

    def ask(coordinator: Connection, group: str) -> Iterator[GroupRefusal]:
        topics = [
            {
                "topic_name": topic,
                "partitions": [
                    {"partition_index": p, "start_offset": starts[group][TopicPartition(topic, p)]} for p in found
                ],
            }
            for topic, found in by_topic(starts[group]).items()
        ]
        reply = coordinator.call("AlterShareGroupOffsets", {"group_id": group, "topics": topics})
        yield GroupRefusal(reply.error_code, None, reply.error_message or "")
        for topic in reply.responses:
            for p in topic.partitions:
                log = TopicPartition(topic.topic_name, p.partition_index)
                yield GroupRefusal(p.error_code, log, p.error_message or "")

    return _change(cluster, starts, ask, "AlterShareGroupOffsets")


def forget_share_topics(cluster: Cluster, topics: Mapping[str, Iterable[str]]) -> Refusals:
    """Delete topics from share groups; a broker offers this only for whole topics."""

    def ask(coordinator: Connection, group: str) -> Iterator[GroupRefusal]:
        fields = {"group_id": group, "topics": [{"topic_name": each} for each in topics[group]]}
        reply = coordinator.call("DeleteShareGroupOffsets", fields)
        yield GroupRefusal(reply.error_code, None, reply.error_message or "")
        for each in reply.responses:
            yield GroupRefusal(each.error_code, None, f"{each.topic_name}: {each.error_message or ''}")

    return _change(cluster, topics, ask, "DeleteShareGroupOffsets")


def delete_groups(cluster: Cluster, groups: Iterable[str]) -> Refusals:
    """Remove groups. A missing group counts as removed."""

    def ask(coordinator: Connection, group: str) -> Iterator[GroupRefusal]:
        for each in coordinator.call("DeleteGroups", {"groups_names": [group]}).results:
            yield GroupRefusal(OK if each.error_code == GROUP_ID_NOT_FOUND else each.error_code)

    return _change(cluster, groups, ask, "DeleteGroups")


def _change(cluster: Cluster, groups: Iterable[str], call: _Call, doing: str) -> Refusals:
    """Change one group after the other."""

    def ask(coordinator: Connection, some: Sequence[str]) -> Iterator[KeyedAnswer[tuple[GroupRefusal, ...]]]:
        for group in some:
            yield _keyed(group, tuple(each for each in call(coordinator, group) if each.code != OK))

    return ask_coordinators(cluster, CoordinatorKind.GROUP, groups, ask, doing=doing)
