"""Group offsets and log ends, read in the order that makes the cut consistent.

Group commits are read first, then the start and end of each log: a commit that was read before the end of its log
cannot be beyond that end, unless the group was ahead of the log. Only commits in the topics of the backup are read:
what groups do elsewhere changes nothing. Then come the transactions that were open at those
ends. Ends are read one after the other, so a transaction that is committed meanwhile may be in one log and not in
another. Therefore the state of transactional producers and groups is read before and after. If one has changed, the
logs that such producers write and such groups read are read again, which takes a few milliseconds, until two reads
agree. A producer or group that never agrees is reported.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from logkeep.kafka.admin.groups import CommittedOffset, Group, group_offsets, list_groups, share_group_offsets
from logkeep.kafka.admin.offsets import LogBounds, describe_producers, log_bounds
from logkeep.kafka.admin.transactions import list_transactions
from logkeep.kafka.backup.cut import Pause, settle
from logkeep.kafka.backup.transaction_activity import (
    Producers,
    changed_groups,
    changed_producers,
    moved_producers,
    transactional_groups,
    transactional_logs,
)
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import ClusterMetadata, TopicPartition
from logkeep.kafka.record.documents import OpenTransaction

_READS = 100
"""One read takes some milliseconds, and a typical transactional client commits every hundred or so."""
_BETWEEN_READS_S = 0.005

Commits = Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True)
class GroupFacts:
    group: Group
    commits: Commits
    """The group's commits in the topics of the backup."""


@dataclass(frozen=True)
class LogEnds:
    """Group offsets and log ends that belong together."""

    groups: tuple[GroupFacts, ...]
    bounds: Mapping[TopicPartition, LogBounds]
    open_transactions: tuple[OpenTransaction, ...] = ()
    undecided: tuple[OpenTransaction, ...] = ()
    """Open transactions that no coordinator reports as ongoing: it lost them, or this user may not see them."""
    unstable_groups: tuple[str, ...] = ()
    """Groups whose offsets may not belong to the output that is below the cut."""
    unstable_producers: tuple[int, ...] = ()
    """Producers with a transaction that may be below the cut in one log and above it in another."""
    transactional: frozenset[TopicPartition] = frozenset()
    """Logs that transactions write to, or that are read by groups which commit inside transactions."""
    producers: Producers = field(default_factory=dict)
    """What the leaders reported of the producers after the ends were read."""

    @property
    def stable(self) -> bool:
        return not self.unstable_groups and not self.unstable_producers

    def without(self, logs: Collection[TopicPartition]) -> "LogEnds":
        return self.only([log for log in self.bounds if log not in logs])

    def only(self, logs: Collection[TopicPartition]) -> "LogEnds":
        return replace(
            self,
            bounds={log: found for log, found in self.bounds.items() if log in logs},
            open_transactions=tuple(t for t in self.open_transactions if t.log in logs),
            undecided=tuple(t for t in self.undecided if t.log in logs),
        )

    def joined(self, other: "LogEnds") -> "LogEnds":
        """The logs of both; groups and unstable clients as in this one."""
        return replace(
            self,
            bounds={**self.bounds, **other.bounds},
            open_transactions=tuple(sorted((*self.open_transactions, *other.open_transactions))),
            undecided=tuple(sorted((*self.undecided, *other.undecided))),
            transactional=self.transactional | other.transactional,
            producers={**self.producers, **other.producers},
        )


def read_log_ends(
    cluster: Cluster, metadata: ClusterMetadata, partitions: Sequence[TopicPartition], pause: Pause
) -> LogEnds:
    """Read until two reads agree, at most a hundred times."""
    topics = frozenset(log.topic for log in partitions)
    ends = _read_once(cluster, metadata, _groups(cluster, topics), partitions, topics, pause)
    for _ in range(_READS):
        if ends.stable:
            break
        pause(_BETWEEN_READS_S)
        groups, read = _reread_groups(cluster, metadata, ends.groups, topics)
        again = sorted(ends.transactional | (read & set(ends.bounds)))
        ends = with_reread(ends, _read_once(cluster, metadata, groups, again, topics, pause))
        if ends.stable:
            ends = with_new_transactions(ends, describe_producers(cluster, partitions))
    return ends


def with_new_transactions(ends: LogEnds, now: Producers) -> LogEnds:
    """Pure: not stable after all if a transaction has come to a log that was not read again."""
    others = {log: states for log, states in now.items() if log not in ends.transactional}
    came = changed_producers(ends.producers, others)
    return replace(ends, unstable_producers=tuple(came), transactional=ends.transactional | transactional_logs(others))


def with_reread(before: LogEnds, fresh: LogEnds) -> LogEnds:
    """Pure: the earlier read with the logs of a later one; other logs keep their ends and open transactions."""
    kept = before.without(fresh.bounds)
    return replace(
        kept.joined(fresh),
        groups=fresh.groups,
        unstable_groups=fresh.unstable_groups,
        unstable_producers=fresh.unstable_producers,
    )


def _read_once(
    cluster: Cluster,
    metadata: ClusterMetadata,
    groups: tuple[GroupFacts, ...],
    partitions: Sequence[TopicPartition],
    topics: Collection[str],
    pause: Pause,
) -> LogEnds:
    before = describe_producers(cluster, partitions)
    settled = settle(
        log_bounds(cluster, partitions),
        producers=lambda some: describe_producers(cluster, some),
        states=lambda: {t.producer_id: t.state for t in list_transactions(cluster)},
        reread=lambda some: log_bounds(cluster, some),
        pause=pause,
    )
    after = describe_producers(cluster, partitions)
    commits = _plain_commits(groups)
    watched = transactional_groups(cluster, metadata, commits)
    read = {log for name in watched for log in commits[name] if log in settled.bounds}
    return LogEnds(
        groups=groups,
        bounds=settled.bounds,
        open_transactions=settled.open_transactions,
        undecided=settled.undecided,
        unstable_groups=(
            *changed_groups(cluster, {name: commits[name] for name in watched}, topics),
            *transactional_groups(cluster, metadata, [g.name for g in _new_groups(cluster, groups)]),
        ),
        unstable_producers=tuple(moved_producers(before, after)),
        transactional=frozenset(read | transactional_logs(after)),
        producers=after,
    )


def _plain_commits(groups: Sequence[GroupFacts]) -> dict[str, Commits]:
    """The commits of all groups except share groups. Groups without commits are in it too: their first commit may come
    at any moment."""
    return {g.group.name: g.commits for g in groups if g.group.kind != "share"}


def _groups(cluster: Cluster, topics: Collection[str]) -> tuple[GroupFacts, ...]:
    found = list_groups(cluster)
    plain = group_offsets(cluster, [g.name for g in found if g.kind != "share"], topics=topics)
    shared = share_group_offsets(cluster, [g.name for g in found if g.kind == "share"], topics=topics)
    commits = {**plain, **shared}
    return tuple(GroupFacts(g, commits.get(g.name, {})) for g in found)


def _new_groups(cluster: Cluster, groups: Sequence[GroupFacts]) -> list[Group]:
    """Groups created since these were listed. Share groups commit nothing inside transactions."""
    known = {g.group.name for g in groups}
    return [g for g in list_groups(cluster) if g.name not in known and g.kind != "share"]


def _reread_groups(
    cluster: Cluster, metadata: ClusterMetadata, groups: tuple[GroupFacts, ...], topics: Collection[str]
) -> tuple[tuple[GroupFacts, ...], set[TopicPartition]]:
    """All groups, new ones too, with current commits of those that commit inside transactions; and the logs they read.

    The ends of these logs have to be read again: otherwise a commit in a log that is new to a group would be beyond
    an end that was read earlier.
    """
    now = (*groups, *(GroupFacts(g, {}) for g in _new_groups(cluster, groups)))
    watched = transactional_groups(cluster, metadata, _plain_commits(now))
    fresh = group_offsets(cluster, watched, topics=topics)
    read = {log for commits in fresh.values() for log in commits}
    return tuple(replace(g, commits=fresh.get(g.group.name, g.commits)) for g in now), read
