"""Which groups are restored, the offsets they get, and what that overwrites. Pure: values in, a plan out.

A group with active members is refused, and the error names them: the members would continue from the offsets in their
memory, and the broker refuses to change a group in use. A plan becomes rows of a receipt, which include the previous
offsets; a rollback is decided from such rows alone.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.formats.kafka.internal_topics.offsets_topic import PositionKey
from logkeep.kafka.admin.groups import CommittedOffset, Group, GroupMember
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import CommitRecord, GroupRecord
from logkeep.kafka.restore.plan.group_offsets import (
    GroupOffsets,
    LeftOutOffset,
    Omission,
    Reason,
    Routes,
    RouteTable,
    TranslatedOffset,
)
from logkeep.kafka.topic_selection import compiled
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import first_names, plural
from logkeep.repository.restores.documents import RestoredGroup

Commits = Mapping[TopicPartition, CommittedOffset]
_AT_REST = frozenset({"empty", "dead", ""})
_SHARE = "share"
_SHOWN = 5

_WHY = {
    Reason.EXACT: "",
    Reason.HOLE: "no record at its offset, it continues with the next one",
    Reason.END: "it had read everything",
    Reason.EXPIRED: "the source had already deleted its next record",
    Reason.BEYOND: "it had read further than what was restored",
    Reason.SHARED: "the partition holds records of several partitions",
    Reason.DIFFERENT: "the topic was created anew since the backup, and holds other records there",
    Reason.UNPROVEN: "the topic was created anew since the backup, and no record there shows that it holds the same",
    Omission.TOPIC: "the topic was not restored",
    Omission.PARTITION: "the partition was not restored",
    Omission.GONE: "the target does not have this partition",
    Omission.OTHER_TOPIC: "it was committed for another topic of the same name",
}
NOT_EXACT = "group-not-exact"
"""The code of findings about offsets that are not exact."""
_LATER = "its offset is known when the records are restored"
_INEXACT = frozenset(_WHY[each] for each in (Reason.EXPIRED, Reason.BEYOND, Reason.SHARED))
"""Details of offsets that are set and not exact; offsets that the user left out are not reported."""


@dataclass(frozen=True)
class GroupPosition:
    """The last archived offset of a group in one partition, also one that the cluster has deleted since.

    When a topic or a group is deleted or expires, the broker writes a tombstone for the group's offset, and the cluster
    no longer has it. The archived log of `__consumer_offsets` still has the record before the tombstone.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    erased_ms: int | None = None
    """When the cluster deleted it, if it did."""


@dataclass(frozen=True)
class TargetGroup:
    """The current state of a group in the target."""

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
    """Its current offsets in the target, in any partition."""

    @property
    def commits(self) -> dict[TopicPartition, CommittedOffset]:
        """Offsets to set. No leader epochs: they are another cluster's, and consumers would wait for a higher one."""
        return {
            p.target: CommittedOffset(p.offset, -1, "" if self.share else p.metadata) for p in self.positions.placed
        }

    @property
    def overwritten(self) -> tuple[TranslatedOffset, ...]:
        """Offsets that replace another one."""
        return tuple(
            p for p in self.positions.placed if self.before.get(p.target, _NO_OFFSET).offset not in {-1, p.offset}
        )


_NO_OFFSET = CommittedOffset(-1, -1, "")


@dataclass(frozen=True)
class ForeignOffset:
    """An offset of a group in a topic that is not the archived one."""

    group: str
    share: bool
    offset: LeftOutOffset


@dataclass(frozen=True)
class GroupsPlan:
    groups: tuple[PlannedGroup, ...]
    untouched: tuple[str, ...] = ()
    """Selected groups that have no offset in anything that was restored."""
    foreign: tuple[ForeignOffset, ...] = ()

    @property
    def again(self) -> int:
        return sum(g.positions.again for g in self.groups)


def plan_groups(
    groups: Iterable[GroupRecord],
    routes: Routes,
    patterns: Sequence[str],
    current: Mapping[str, TargetGroup],
    recovered: Mapping[PositionKey, GroupPosition] | None = None,
) -> GroupsPlan:
    """The offsets to set. Raises UsageError for patterns without a group, TargetUnsafe for groups in use.

    `recovered` are offsets that the cluster has deleted since: they are newer than those of the record.
    """
    selected = _select([*_with_recovered(groups, recovered or {})], patterns)
    before = {name: group.commits for name, group in current.items()}
    table = RouteTable(routes)
    planned = [
        PlannedGroup(g.name, g.kind == _SHARE, table.translate(g.commits), before.get(g.name, {})) for g in selected
    ]
    moved = tuple(g for g in planned if g.positions.placed)
    refuse_unsafe({g.name: g.share for g in moved}, current)
    return GroupsPlan(moved, tuple(g.name for g in planned if not g.positions.placed))


def with_foreign(plan: GroupsPlan, foreign: Iterable[ForeignOffset], patterns: Sequence[str]) -> GroupsPlan:
    """The plan with the offsets of selected groups that are left out because of their topics."""
    wanted = [compiled(p) for p in patterns]
    own = (each for each in foreign if not wanted or any(p.fullmatch(each.group) for p in wanted))
    return replace(plan, foreign=tuple(own))


def _select(groups: Sequence[GroupRecord], patterns: Sequence[str]) -> list[GroupRecord]:
    wanted = [compiled(p) for p in patterns]
    known = sorted(groups, key=lambda g: g.name)
    found = [g for g in known if not wanted or any(p.fullmatch(g.name) for p in wanted)]
    idle = [p.pattern for p in wanted if not any(p.fullmatch(g.name) for g in known)]
    if idle:
        remedy = (
            f"patterns are regular expressions for whole names; the backup has: {first_names([g.name for g in known])}"
        )
        raise UsageError(f"no group of the backup matches {' or '.join(idle)}", remedy=remedy)
    return found


def _with_recovered(groups: Iterable[GroupRecord], found: Mapping[PositionKey, GroupPosition]) -> Iterable[GroupRecord]:
    """Groups with recovered offsets in place of older ones; groups that exist only in `found` are classic ones."""
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


def refuse_unsafe(share: Mapping[str, bool], current: Mapping[str, TargetGroup]) -> None:
    """Raise TargetUnsafe when one of these groups has members, or is a share group on one side only."""
    there = {name: current[name] for name in sorted(share) if name in current}
    live = [s for s in there.values() if s.live]
    if live:
        raise TargetUnsafe(
            f"{len(live)} of {plural(len(share), 'group has', 'groups have')} active members: "
            f"{'; '.join(map(_members_text, live[:_SHOWN]))}"
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


def _members_text(found: TargetGroup) -> str:
    members = [f"{m.client_id} at {m.host.lstrip('/')}" for m in found.members[:_SHOWN]]
    more = [f"and {len(found.members) - _SHOWN} more"] if len(found.members) > _SHOWN else []
    return f"{found.group.name} ({', '.join([*members, *more]) or found.group.state})"


def rows_of(plan: GroupsPlan) -> tuple[RestoredGroup, ...]:
    """The plan as rows of a receipt, with the previous offsets."""
    placed = [_placed_row(g, p) for g in plan.groups for p in g.positions.placed]
    left = [_left_row(g.name, each, share=g.share) for g in plan.groups for each in g.positions.left_out]
    foreign = [_left_row(each.group, each.offset, share=each.share) for each in plan.foreign]
    return (*placed, *left, *foreign)


def expected_rows(plan: GroupsPlan, spread: Collection[str]) -> tuple[RestoredGroup, ...]:
    """The rows before records with new offsets are written: the offsets of the groups are not known yet.

    `spread` are target topics with records of several partitions: whether their offsets will be exact is unknown too.
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
    """Groups that do not continue with their next record; the user must know before consumers are started."""
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        if not row.exact and row.detail in _INEXACT:
            found[row.group, row.detail] = found.get((row.group, row.detail), 0) + 1
    return [
        Finding(
            code=NOT_EXACT,
            severity=Severity.WARNING,
            where=f"group {name}",
            what=f"in {partitions} {'partition' if partitions == 1 else 'partitions'} it does not continue exactly: "
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
        reread=placed.again or _rewound(before, placed),
        detail=_WHY[placed.reason] or (_FURTHER if _rewound(before, placed) else ""),
        share=group.share,
    )


def _rewound(before: CommittedOffset | None, placed: TranslatedOffset) -> int:
    """How far a group goes back that has read further in the target: an upper bound of the records read again."""
    return max(0, before.offset - placed.offset) if before is not None else 0


_FURTHER = "it has read further in the target, and goes back"


def _left_row(group: str, left: LeftOutOffset, *, share: bool) -> RestoredGroup:
    return RestoredGroup(
        group=group,
        topic=left.source.topic,
        partition=left.source.partition,
        exact=False,
        detail=_WHY[left.why],
        share=share,
    )
