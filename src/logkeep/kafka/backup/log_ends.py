"""Where groups stand and logs end, asked in the order that makes the cut sound.

Group commits come first, then where logs begin and end: a commit that was read before the end of its log was read
cannot lie behind it, unless the group was ahead of the log. Then come the transactions that were open at those ends.
Ends are read one after the other, so a transaction that is committed meanwhile may be in one log and not in another.
Therefore whoever works in transactions is looked at before and after: if one has moved, the logs that such producers
write and such groups read are asked once more, which takes a few milliseconds, until nothing moved. What never stands
still is told.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from logkeep.kafka.admin.groups import CommittedOffset, Group, group_offsets, list_groups, share_group_offsets
from logkeep.kafka.admin.offsets import LogBounds, describe_producers, log_bounds
from logkeep.kafka.admin.transactions import list_transactions
from logkeep.kafka.backup.cut import Pause, SettledCut, settle
from logkeep.kafka.backup.transaction_activity import (
    Producers,
    changed_producers,
    moved_meanwhile,
    moved_producers,
    transactional_groups,
    transactional_logs,
)
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import ClusterMetadata, TopicPartition
from logkeep.kafka.record.documents import OpenTransaction

_LOOKS = 100
"""One look takes some milliseconds, and a copier commits every hundred or so."""
_BETWEEN_LOOKS_S = 0.005

Commits = Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True)
class GroupFacts:
    group: Group
    commits: Commits


@dataclass(frozen=True)
class LogEnds:
    """Positions and ends that belong together."""

    groups: tuple[GroupFacts, ...]
    bounds: Mapping[TopicPartition, LogBounds]
    open_transactions: tuple[OpenTransaction, ...] = ()
    undecided: tuple[OpenTransaction, ...] = ()
    """Those of them that nobody calls ongoing: left behind by a coordinator, or hidden from this user."""
    restless_groups: tuple[str, ...] = ()
    """Those whose position may not belong to the output that is below the cut."""
    restless_producers: tuple[int, ...] = ()
    """Those of which a transaction may be below the cut in one log and behind it in another."""
    transactional: frozenset[TopicPartition] = frozenset()
    """Logs that transactions write to, or that groups read who commit inside of transactions."""
    remembered: Producers = field(default_factory=dict)
    """What the leaders knew of the producers at the end."""

    @property
    def steady(self) -> bool:
        return not self.restless_groups and not self.restless_producers

    def without(self, logs: Collection[TopicPartition]) -> "LogEnds":
        """What it says of all other logs."""
        return self.only([log for log in self.bounds if log not in logs])

    def only(self, logs: Collection[TopicPartition]) -> "LogEnds":
        """What it says of these logs."""
        return replace(
            self,
            bounds={log: found for log, found in self.bounds.items() if log in logs},
            open_transactions=tuple(t for t in self.open_transactions if t.log in logs),
            undecided=tuple(t for t in self.undecided if t.log in logs),
        )

    def joined(self, other: "LogEnds") -> "LogEnds":
        """What both say of their logs; groups, and whoever was restless, as in this one."""
        return replace(
            self,
            bounds={**self.bounds, **other.bounds},
            open_transactions=tuple(sorted((*self.open_transactions, *other.open_transactions))),
            undecided=tuple(sorted((*self.undecided, *other.undecided))),
            transactional=self.transactional | other.transactional,
            remembered={**self.remembered, **other.remembered},
        )


def steady_look(
    cluster: Cluster, metadata: ClusterMetadata, partitions: Sequence[TopicPartition], pause: Pause
) -> LogEnds:
    """Look until nothing moved meanwhile, or too often."""
    look = _look(cluster, metadata, _groups(cluster), partitions, pause)
    for _ in range(_LOOKS):
        if look.steady:
            break
        pause(_BETWEEN_LOOKS_S)
        groups, read = _again(cluster, metadata, look.groups)
        asked = sorted(look.transactional | (read & set(look.bounds)))
        look = renewed(look, _look(cluster, metadata, groups, asked, pause))
        if look.steady:
            look = widened(look, describe_producers(cluster, partitions))
    return look


def widened(look: LogEnds, now: Producers) -> LogEnds:
    """Pure: not steady after all when a transaction has come to a log that was not asked again."""
    others = {log: states for log, states in now.items() if log not in look.transactional}
    came = changed_producers(look.remembered, others)
    return replace(look, restless_producers=tuple(came), transactional=look.transactional | transactional_logs(others))


def renewed(before: LogEnds, fresh: LogEnds) -> LogEnds:
    """Pure: the look before with what was asked again; logs that were not asked keep their ends and what is open."""
    kept = before.without(fresh.bounds)
    return replace(
        kept.joined(fresh),
        groups=fresh.groups,
        restless_groups=fresh.restless_groups,
        restless_producers=fresh.restless_producers,
    )


def _look(
    cluster: Cluster,
    metadata: ClusterMetadata,
    groups: tuple[GroupFacts, ...],
    partitions: Sequence[TopicPartition],
    pause: Pause,
) -> LogEnds:
    before = describe_producers(cluster, partitions)
    settled = _settled(cluster, partitions, pause)
    after = describe_producers(cluster, partitions)
    commits = _plain_commits(groups)
    watched = transactional_groups(cluster, metadata, commits)
    read = {log for name in watched for log in commits[name] if log in settled.bounds}
    return LogEnds(
        groups=groups,
        bounds=settled.bounds,
        open_transactions=settled.open_transactions,
        undecided=settled.undecided,
        restless_groups=(
            *moved_meanwhile(cluster, {name: commits[name] for name in watched}),
            *transactional_groups(cluster, metadata, [g.name for g in _new_groups(cluster, groups)]),
        ),
        restless_producers=tuple(moved_producers(before, after)),
        transactional=frozenset(read | transactional_logs(after)),
        remembered=after,
    )


def _settled(cluster: Cluster, partitions: Sequence[TopicPartition], pause: Pause) -> SettledCut:
    return settle(
        log_bounds(cluster, partitions),
        producers=lambda some: describe_producers(cluster, some),
        states=lambda: {t.producer_id: t.state for t in list_transactions(cluster)},
        reread=lambda some: log_bounds(cluster, some),
        pause=pause,
    )


def _plain_commits(groups: Sequence[GroupFacts]) -> dict[str, Commits]:
    """Also of those without a position: their first one may come at any moment."""
    return {g.group.name: g.commits for g in groups if g.group.kind != "share"}


def _groups(cluster: Cluster) -> tuple[GroupFacts, ...]:
    found = list_groups(cluster)
    plain = group_offsets(cluster, [g.name for g in found if g.kind != "share"])
    shared = share_group_offsets(cluster, [g.name for g in found if g.kind == "share"])
    commits = {**plain, **shared}
    return tuple(GroupFacts(g, commits.get(g.name, {})) for g in found)


def _new_groups(cluster: Cluster, groups: Sequence[GroupFacts]) -> list[Group]:
    """Groups that have come since these were listed. Share groups commit nothing inside of transactions."""
    known = {g.group.name for g in groups}
    return [g for g in list_groups(cluster) if g.name not in known and g.kind != "share"]


def _again(
    cluster: Cluster, metadata: ClusterMetadata, groups: tuple[GroupFacts, ...]
) -> tuple[tuple[GroupFacts, ...], set[TopicPartition]]:
    """The groups, new ones too; those that commit inside of transactions with where they stand now, and what they read.

    The ends of all that they read have to be asked again: a position in a log that is new to a group would else lie
    beyond an end that was read before.
    """
    now = (*groups, *(GroupFacts(g, {}) for g in _new_groups(cluster, groups)))
    watched = transactional_groups(cluster, metadata, _plain_commits(now))
    fresh = group_offsets(cluster, watched)
    read = {log for commits in fresh.values() for log in commits}
    return tuple(replace(g, commits=fresh.get(g.group.name, g.commits)) for g in now), read
