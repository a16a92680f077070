"""The groups of a backup as they were at an earlier time. Pure: archived positions in, groups to restore out.

A commit records the id of its topic. One for another topic of the same name, which was deleted since or had been
deleted before, says nothing about the archived records: it is left out and reported.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.group_history.values import ArchivedPosition
from logkeep.kafka.record.documents import CommitRecord, GroupRecord, TopicRecord
from logkeep.kafka.restore.plan.group_offsets import LeftOutOffset, Omission
from logkeep.kafka.restore.plan.groups import ForeignOffset

_SHARE = "share"


@dataclass(frozen=True)
class PastGroups:
    groups: tuple[GroupRecord, ...]
    foreign: tuple[ForeignOffset, ...]


def past_groups(
    positions: Iterable[ArchivedPosition], topics: Iterable[TopicRecord], kinds: Mapping[str, str]
) -> PastGroups:
    """`topics`: of the backup; `kinds`: of groups that existed then, by name. A group whose positions had all been
    erased has none."""
    ids = {t.name: t.id for t in topics}
    commits: dict[tuple[str, bool], list[CommitRecord]] = {}
    foreign: list[ForeignOffset] = []
    for p in positions:
        own = commits.setdefault((p.group, p.share), [])
        if p.erased_ms is not None:
            continue
        if p.topic_id and ids.get(p.topic, p.topic_id) != p.topic_id:
            left = LeftOutOffset(TopicPartition(p.topic, p.partition), p.offset, Omission.OTHER_TOPIC)
            foreign.append(ForeignOffset(p.group, p.share, left))
        else:
            own.append(CommitRecord(p.topic, p.partition, p.offset, p.offset, p.leader_epoch, p.metadata))
    groups = [
        GroupRecord(name, _SHARE if share else _kind(kinds.get(name)), "Empty", "" if share else "consumer", tuple(own))
        for (name, share), own in sorted(commits.items())
    ]
    return PastGroups(tuple(groups), tuple(foreign))


def _kind(known: str | None) -> str:
    """The kind to restore. A group with committed offsets was no share group, even if one has its name now."""
    return known if known is not None and known != _SHARE else "classic"
