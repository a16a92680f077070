"""Plans the rollback of group offsets to those before a restore. Pure: rows of a receipt in, changes out.

A previous offset is set again. An offset that did not exist before is deleted, and a group without other offsets is
removed. Offsets that changed since the restore are reported, because the rollback discards that progress.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from logkeep.kafka.admin.groups import CommittedOffset
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.plan.groups import TargetGroup, refuse_unsafe
from logkeep.repository.restores.documents import RestoredGroup


@dataclass(frozen=True)
class GroupBack:
    """The changes of one group: offsets to set, offsets to delete, or removal."""

    name: str
    share: bool
    put: Mapping[TopicPartition, CommittedOffset] = field(default_factory=dict)
    forget: tuple[TopicPartition, ...] = ()
    remove: bool = False
    """The group would have no offsets left."""
    kept: tuple[TopicPartition, ...] = ()
    """Start offsets of a share group that stay: brokers delete them by whole topics, and others of the topic stay."""


@dataclass(frozen=True)
class Rollback:
    groups: tuple[GroupBack, ...]
    rows: tuple[RestoredGroup, ...]
    """The changes as rows of a receipt."""
    moved_on: tuple[TopicPartition, ...] = ()


def plan_rollback(rows: Iterable[RestoredGroup], current: Mapping[str, TargetGroup]) -> Rollback:
    """The changes that restore the previous offsets. Raises TargetUnsafe for groups with active members."""
    by_group: dict[str, list[RestoredGroup]] = {}
    for row in rows:
        if row.offset is not None or row.previous_offset is not None:
            by_group.setdefault(row.group, []).append(row)
    refuse_unsafe({name: own[0].share for name, own in by_group.items()}, current)
    now = {name: current[name].commits if name in current else {} for name in by_group}
    back = {name: _group_back(name, own, now[name]) for name, own in sorted(by_group.items())}
    every = [(row, now[name], back[name]) for name in back for row in by_group[name]]
    return Rollback(
        tuple(back.values()),
        tuple(_row_back(row, found, group) for row, found, group in every),
        tuple(_log(row) for row, found, _ in every if _moved_on(row, found)),
    )


def _log(row: RestoredGroup) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)


def _moved_on(row: RestoredGroup, now: Mapping[TopicPartition, CommittedOffset]) -> bool:
    found = now.get(_log(row))
    return found is not None and found.offset not in {row.offset, row.previous_offset}


def _group_back(name: str, rows: Sequence[RestoredGroup], now: Mapping[TopicPartition, CommittedOffset]) -> GroupBack:
    share = rows[0].share
    put = {
        _log(r): CommittedOffset(r.previous_offset, -1, r.previous_metadata)
        for r in rows
        if r.previous_offset is not None
    }
    forget = tuple(sorted({_log(r) for r in rows if r.previous_offset is None} & set(now)))
    if not put and set(now) <= set(forget):
        return GroupBack(name, share, remove=bool(now))
    staying = {log.topic for log in {*put, *now} - set(forget)} if share else set[str]()
    kept = tuple(log for log in forget if log.topic in staying)
    return GroupBack(name, share, put, tuple(log for log in forget if log not in kept), kept=kept)


def _row_back(row: RestoredGroup, now: Mapping[TopicPartition, CommittedOffset], group: GroupBack) -> RestoredGroup:
    found, stays = now.get(_log(row)), _log(row) in group.kept
    return RestoredGroup(
        group=row.group,
        topic=row.topic,
        partition=row.partition,
        previous_offset=None if found is None else found.offset,
        previous_metadata="" if found is None else found.metadata,
        offset=found.offset if stays and found else row.previous_offset,
        exact=not stays,
        detail=_detail(row, stays=stays, moved=_moved_on(row, now)),
        share=row.share,
    )


def _detail(row: RestoredGroup, *, stays: bool, moved: bool) -> str:
    if stays:
        return "stays: brokers delete start offsets of a share group by whole topics"
    removed = "" if row.previous_offset is not None else "removed"
    return ", ".join(word for word in (removed, "changed since the restore" if moved else "") if word)
