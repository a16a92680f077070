"""Which groups come back, where they are put, and what that overwrites. Pure: values in, a plan out.

A group that is being read by is refused, with its members named: it would go on from what it holds in memory, and the
broker would not let it be moved. A plan becomes rows of a receipt, which hold what stood there before; a rollback is
decided from such rows alone.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.formats.kafka.offsets_topic import PositionKey
from logkeep.kafka.admin.groups import CommittedOffset, Group, GroupMember
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import CommitRecord, GroupRecord
from logkeep.kafka.record.group_positions import GroupPosition
from logkeep.kafka.restore.plan.group_offsets import (
    GroupOffsets,
    LeftOutOffset,
    Omission,
    Reason,
    Routes,
    TranslatedOffset,
    carried_over,
)
from logkeep.kafka.topic_selection import compiled
from logkeep.model.findings import Finding, Severity
from logkeep.repository.restores.documents import RestoredGroup

Commits = Mapping[TopicPartition, CommittedOffset]
_AT_REST = frozenset({"empty", "dead", ""})
_SHARE = "share"
_SHOWN = 5

_WHY = {
    Reason.EXACT: "",
    Reason.HOLE: "no record at its offset, the next one is what it read next",
    Reason.END: "it had read everything",
    Reason.EXPIRED: "what it read next was gone from the source already",
    Reason.BEYOND: "it had read further than what came back",
    Reason.SHARED: "records of several partitions stand here",
    Omission.TOPIC: "the topic was not restored",
    Omission.PARTITION: "the partition was not restored",
    Omission.GONE: "the target does not have this partition",
}
_LATER = "where it goes on is known when the records are there"
_TOLD = frozenset(_WHY[each] for each in (Reason.EXPIRED, Reason.BEYOND, Reason.SHARED))
"""What is said of positions that were set and are not exact; what was left alone is what nobody asked for."""


@dataclass(frozen=True)
class TargetGroup:
    """A group as the target has it now."""

    group: Group
    commits: Commits = field(default_factory=dict)
    members: tuple[GroupMember, ...] = ()

    @property
    def live(self) -> bool:
        return bool(self.members) or self.group.state.lower() not in _AT_REST

    @property
    def share(self) -> bool:
        return self.group.kind == _SHARE


@dataclass(frozen=True)
class PlannedGroup:
    name: str
    share: bool
    positions: GroupOffsets
    before: Commits = field(default_factory=dict)
    """Where it stands in the target, in any partition."""

    @property
    def commits(self) -> dict[TopicPartition, CommittedOffset]:
        """To be set. No leader epochs: they are another cluster's, and one too high lets a consumer wait for ever."""
        return {
            p.target: CommittedOffset(p.offset, -1, "" if self.share else p.metadata) for p in self.positions.placed
        }

    @property
    def overwritten(self) -> tuple[TranslatedOffset, ...]:
        """Those that stand elsewhere now."""
        return tuple(
            p for p in self.positions.placed if self.before.get(p.target, _Nowhere).offset not in {-1, p.offset}
        )


_Nowhere = CommittedOffset(-1, -1, "")


@dataclass(frozen=True)
class GroupsPlan:
    groups: tuple[PlannedGroup, ...]
    untouched: tuple[str, ...] = ()
    """Groups that were meant and have no position in anything that came back."""

    @property
    def again(self) -> int:
        return sum(g.positions.again for g in self.groups)


def plan_groups(
    groups: Iterable[GroupRecord],
    routes: Routes,
    patterns: Sequence[str],
    standing: Mapping[str, TargetGroup],
    recovered: Mapping[PositionKey, GroupPosition] | None = None,
) -> GroupsPlan:
    """What to set. Raises UsageError for patterns that cannot be meant, and TargetUnsafe where groups may not be moved.

    `recovered` are positions that the cluster has forgotten since: they are younger than those of the record.
    """
    meant = _meant([*_with_recovered(groups, recovered or {})], patterns)
    planned = [
        PlannedGroup(g.name, g.kind == _SHARE, carried_over(g.commits, routes), _before(standing.get(g.name)))
        for g in meant
    ]
    moved = tuple(g for g in planned if g.positions.placed)
    refuse_unsafe({g.name: g.share for g in moved}, standing)
    return GroupsPlan(moved, tuple(g.name for g in planned if not g.positions.placed))


def _before(standing: TargetGroup | None) -> Commits:
    return {} if standing is None else standing.commits


def _meant(groups: Sequence[GroupRecord], patterns: Sequence[str]) -> list[GroupRecord]:
    meant = [compiled(p) for p in patterns]
    known = sorted(groups, key=lambda g: g.name)
    found = [g for g in known if not meant or any(p.fullmatch(g.name) for p in meant)]
    idle = [p.pattern for p in meant if not any(p.fullmatch(g.name) for g in known)]
    if idle:
        shown = ", ".join([*(g.name for g in known[:_SHOWN]), *(["…"] if len(known) > _SHOWN else [])]) or "none"
        raise UsageError(
            f"no group of the backup matches {' or '.join(idle)}",
            remedy=f"patterns match whole names; the backup has: {shown}",
        )
    return found


def _with_recovered(groups: Iterable[GroupRecord], found: Mapping[PositionKey, GroupPosition]) -> Iterable[GroupRecord]:
    """Groups with erased positions in place of older ones; groups that only exist there are classic ones."""
    erased: dict[str, dict[TopicPartition, CommitRecord]] = {}
    for key, p in found.items():
        if p.erased_ms is not None:
            commit = CommitRecord(key.topic, key.partition, p.offset, p.offset, p.leader_epoch, p.metadata)
            erased.setdefault(key.group, {})[TopicPartition(key.topic, key.partition)] = commit
    for group in groups:
        own = {TopicPartition(c.topic, c.partition): c for c in group.commits}
        commits = {**own, **erased.pop(group.name, {})}
        yield GroupRecord(group.name, group.kind, group.state, group.protocol_type, tuple(commits.values()))
    for name, positions in sorted(erased.items()):
        yield GroupRecord(name, "classic", "Empty", "consumer", tuple(positions.values()))


def refuse_unsafe(share: Mapping[str, bool], standing: Mapping[str, TargetGroup]) -> None:
    """Raise TargetUnsafe when one of these groups has members, or is of the other kind in the target."""
    there = {name: standing[name] for name in sorted(share) if name in standing}
    live = [s for s in there.values() if s.live]
    if live:
        raise TargetUnsafe(
            f"{len(live)} of {len(share)} groups are being read by: {'; '.join(map(_told, live[:_SHOWN]))}"
            f"{'; …' if len(live) > _SHOWN else ''}",
            remedy="stop these consumers; or restore with --what data,configs and set groups later with "
            "`kafka groups restore`; or name other groups with --groups; nothing was changed",
        )
    for name, found in there.items():
        if found.share != share[name] and found.commits:
            kinds = ("a share group", f"a {found.group.kind} group")
            raise TargetUnsafe(
                f"is {kinds[share[name]]} in the target and {'' if share[name] else 'not '}a share group in the backup",
                subject=f"group {name}",
                remedy="delete that group, or leave it out with --groups; nothing was changed",
            )


def _told(standing: TargetGroup) -> str:
    members = [f"{m.client_id} at {m.host.lstrip('/')}" for m in standing.members[:_SHOWN]]
    more = [f"and {len(standing.members) - _SHOWN} more"] if len(standing.members) > _SHOWN else []
    return f"{standing.group.name} ({', '.join([*members, *more]) or standing.group.state})"


def rows_of(plan: GroupsPlan) -> tuple[RestoredGroup, ...]:
    """The plan as a receipt keeps it, with what stands there before."""
    placed = [_placed_row(g, p) for g in plan.groups for p in g.positions.placed]
    left = [_left_row(g, each) for g in plan.groups for each in g.positions.left_out]
    return (*placed, *left)


def rows_foreseen(plan: GroupsPlan, spread: Collection[str]) -> tuple[RestoredGroup, ...]:
    """The same before the records are there, where they get other offsets: no position is known yet.

    `spread` are topics of the target whose records come from several partitions: whether positions there will be exact
    is not known either.
    """
    return tuple(
        row
        if row.offset is None
        else msgspec.structs.replace(
            row,
            offset=None,
            reread=0,
            exact=row.exact and row.topic not in spread,
            detail=_LATER if row.exact or row.topic in spread else row.detail,
        )
        for row in rows_of(plan)
    )


def inexact_findings(rows: Iterable[RestoredGroup]) -> list[Finding]:
    """Groups that do not go on with the record that was next: somebody has to know before the consumers are started."""
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        if not row.exact and row.detail in _TOLD:
            found[row.group, row.detail] = found.get((row.group, row.detail), 0) + 1
    return [
        Finding(
            code="group-not-exact",
            severity=Severity.WARNING,
            where=f"group {name}",
            what=f"in {partitions} {'partition' if partitions == 1 else 'partitions'} it does not go on where it was: "
            f"{detail}",
        )
        for (name, detail), partitions in sorted(found.items())
    ]


def _placed_row(group: PlannedGroup, placed: TranslatedOffset) -> RestoredGroup:
    before = group.before.get(placed.target)
    return RestoredGroup(
        group=group.name,
        topic=placed.target.topic,
        partition=placed.target.partition,
        previous_offset=None if before is None else before.offset,
        previous_metadata="" if before is None else before.metadata,
        offset=placed.offset,
        exact=placed.exact,
        reread=placed.again or _given_up(before, placed),
        detail=_WHY[placed.reason] or (_FURTHER if _given_up(before, placed) else ""),
        share=group.share,
    )


def _given_up(before: CommittedOffset | None, placed: TranslatedOffset) -> int:
    """How far a group goes back that has read further in the target: at most so many records come again."""
    return max(0, before.offset - placed.offset) if before is not None else 0


_FURTHER = "it has read further here meanwhile, and goes back"


def _left_row(group: PlannedGroup, left: LeftOutOffset) -> RestoredGroup:
    return RestoredGroup(
        group=group.name,
        topic=left.source.topic,
        partition=left.source.partition,
        exact=False,
        detail=_WHY[left.why],
        share=group.share,
    )
