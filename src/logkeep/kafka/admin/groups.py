"""Groups: classic, consumer (KIP-848) and share; their members and offsets."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from logkeep.kafka.admin.coordinators import CoordinatorKind, KeyedAnswer, ask_coordinators, ask_each_coordinator
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.error_codes import GROUP_ID_NOT_FOUND, INVALID_GROUP_ID, OK, UNSTABLE_OFFSET_COMMIT, check
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.group_offsets import HIGHEST, FetchedOffsets, parse_fetch
from logkeep.kafka.client.topology import TopicPartition

_GONE = frozenset({GROUP_ID_NOT_FOUND, INVALID_GROUP_ID})
_DESCRIBE = {"consumer": "ConsumerGroupDescribe", "share": "ShareGroupDescribe"}


@dataclass(frozen=True, order=True)
class Group:
    """`kind` is classic, consumer, share or streams; `state` as the broker writes it (Empty, Stable …)."""

    name: str
    kind: str
    state: str
    protocol_type: str


@dataclass(frozen=True, order=True)
class GroupMember:
    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    topics: tuple[str, ...] = ()
    assigned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True)
class GroupDetails:
    name: str
    kind: str
    state: str
    members: tuple[GroupMember, ...]


@dataclass(frozen=True)
class CommittedOffset:
    """A group's offset in one log. `leader_epoch` -1 = unknown; for a share group `offset` is its start offset."""

    offset: int
    leader_epoch: int
    metadata: str


def list_groups(cluster: Cluster) -> tuple[Group, ...]:
    """All groups. Every broker is asked: each knows only the groups that it coordinates."""
    found: set[Group] = set()
    for node, reply in ask_each_coordinator(cluster, "ListGroups", {"states_filter": [], "types_filter": []}):
        check(reply.error_code, subject=f"broker {node}", doing="ListGroups")
        found |= {_group(each) for each in reply.groups}
    return tuple(sorted(found))


def _group(found: Any) -> Group:
    kind = (found.group_type or "classic").lower()
    return Group(found.group_id, kind, found.group_state or "", found.protocol_type or "")


def describe_groups(cluster: Cluster, groups: Iterable[Group]) -> dict[str, GroupDetails]:
    """Members and state. A group that was deleted meanwhile is left out; a streams group has only its state."""
    chosen = list(groups)
    done: dict[str, GroupDetails] = {
        each.name: GroupDetails(each.name, each.kind, each.state, ()) for each in chosen if each.kind == "streams"
    }
    for kind in ("classic", "consumer", "share"):
        names = [each.name for each in chosen if each.kind == kind]
        done |= _describe(cluster, kind, names)
    return done


def _describe(cluster: Cluster, kind: str, names: Sequence[str]) -> dict[str, GroupDetails]:
    if not names:
        return {}
    api = _DESCRIBE.get(kind, "DescribeGroups")

    def ask(coordinator: Connection, some: Sequence[str]) -> Iterator[KeyedAnswer[GroupDetails]]:
        field = "group_ids" if kind in _DESCRIBE else "groups"
        reply = coordinator.call(api, {field: list(some), "include_authorized_operations": False})
        for each in reply.groups:
            # Before version 6 of DescribeGroups an unknown group has the state "Dead" and no error.
            code = GROUP_ID_NOT_FOUND if each.group_state == "Dead" else each.error_code
            yield each.group_id, code, _details(each, kind)

    return ask_coordinators(cluster, CoordinatorKind.GROUP, names, ask, doing=api, gone=_GONE)


def _details(found: Any, kind: str) -> GroupDetails:
    if kind == "classic":
        members = [GroupMember(m.member_id, m.client_id, m.client_host, m.group_instance_id) for m in found.members]
        return GroupDetails(found.group_id, kind, found.group_state, tuple(sorted(members)))
    members = [_modern_member(each, kind) for each in found.members]
    return GroupDetails(found.group_id, kind, found.group_state, tuple(sorted(members)))


def _modern_member(found: Any, kind: str) -> GroupMember:
    return GroupMember(
        member_id=found.member_id,
        client_id=found.client_id,
        host=found.client_host,
        instance_id=found.instance_id if kind == "consumer" else None,
        topics=tuple(sorted(found.subscribed_topic_names)),
        assigned=tuple(
            TopicPartition(topic.topic_name, partition)
            for topic in found.assignment.topic_partitions
            for partition in topic.partitions
        ),
    )


def group_offsets(
    cluster: Cluster, groups: Iterable[str], *, require_stable: bool = False, topics: Collection[str] | None = None
) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    """All commits of classic and consumer groups, with metadata. Groups without commits have an empty mapping.

    With `require_stable` this waits until commits of open transactions are decided; with `topics`, commits in other
    topics are left out.
    """

    def ask(
        coordinator: Connection, some: Sequence[str]
    ) -> Iterator[KeyedAnswer[dict[TopicPartition, CommittedOffset]]]:
        for found in _fetch(coordinator, some, require_stable=require_stable):
            codes = (p.error for _, offsets in found.topics for p in offsets)
            code = found.error or next((each for each in codes if each != OK), OK)
            yield found.group, code, _commits(found, topics)

    return ask_coordinators(cluster, CoordinatorKind.GROUP, groups, ask, doing="OffsetFetch", gone=_GONE)


def groups_with_pending_commits(cluster: Cluster, groups: Iterable[str], *, topics: Collection[str]) -> set[str]:
    """Groups with a commit in these topics inside a transaction that is open, or decided and not completed yet."""

    def ask(coordinator: Connection, some: Sequence[str]) -> Iterator[KeyedAnswer[bool]]:
        for found in _fetch(coordinator, some, require_stable=True):
            chosen = (offsets for topic, offsets in found.topics if topic in topics)
            codes = {found.error, *(p.error for offsets in chosen for p in offsets)}
            code = next((each for each in codes if each not in {OK, UNSTABLE_OFFSET_COMMIT}), OK)
            yield found.group, code, UNSTABLE_OFFSET_COMMIT in codes

    answers = ask_coordinators(cluster, CoordinatorKind.GROUP, groups, ask, doing="OffsetFetch", gone=_GONE)
    return {name for name, pending in answers.items() if pending}


def _fetch(coordinator: Connection, groups: Sequence[str], *, require_stable: bool) -> list[FetchedOffsets]:
    """All offsets of these groups, in one request."""
    asked = [{"group_id": each, "member_id": None, "member_epoch": -1, "topics": None} for each in groups]
    fields = {"groups": asked, "require_stable": require_stable}
    coordinator.send("OffsetFetch", fields, at_most=HIGHEST)
    return parse_fetch(coordinator.receive_raw(ReceiveBuffer()))


def _commits(found: FetchedOffsets, topics: Collection[str] | None) -> dict[TopicPartition, CommittedOffset]:
    return {
        TopicPartition(topic, p.partition): CommittedOffset(p.offset, p.leader_epoch, p.metadata)
        for topic, offsets in found.topics
        if topics is None or topic in topics
        for p in offsets
        if p.offset >= 0
    }


def share_group_offsets(
    cluster: Cluster, groups: Iterable[str], *, topics: Collection[str] | None = None
) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    """The start offset of each share group. Partitions without one are left out; with `topics`, all other topics."""

    def ask(
        coordinator: Connection, some: Sequence[str]
    ) -> Iterator[KeyedAnswer[dict[TopicPartition, CommittedOffset]]]:
        fields = {"groups": [{"group_id": each, "topics": None} for each in some]}
        for group in coordinator.call("DescribeShareGroupOffsets", fields).groups:
            codes = (p.error_code for topic in group.topics for p in topic.partitions)
            code = group.error_code or next((each for each in codes if each != OK), OK)
            yield group.group_id, code, _share_starts(group, topics)

    return ask_coordinators(cluster, CoordinatorKind.GROUP, groups, ask, doing="DescribeShareGroupOffsets", gone=_GONE)


def _share_starts(group: Any, topics: Collection[str] | None) -> dict[TopicPartition, CommittedOffset]:
    return {
        TopicPartition(topic.topic_name, p.partition_index): CommittedOffset(p.start_offset, p.leader_epoch, "")
        for topic in group.topics
        if topics is None or topic.topic_name in topics
        for p in topic.partitions
        if p.start_offset >= 0
    }
