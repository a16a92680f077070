"""Reads, sets and rolls back group offsets of the target; every change is read back and compared."""

from collections.abc import Iterable, Mapping

from logkeep.errors import LogkeepError, RestoreFailed, TargetUnsafe
from logkeep.kafka.admin.group_changes import (
    Refusals,
    commit_offsets,
    delete_groups,
    forget_offsets,
    forget_share_topics,
    move_share_groups,
)
from logkeep.kafka.admin.groups import CommittedOffset, describe_groups, group_offsets, list_groups, share_group_offsets
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import failure
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.plan.group_rollback import GroupBack
from logkeep.kafka.restore.plan.groups import GroupsPlan, TargetGroup

Wanted = Mapping[str, Mapping[TopicPartition, CommittedOffset | None]]
"""The expected offsets of each group; None: no offset."""


def read_groups(cluster: Cluster, names: Iterable[str]) -> dict[str, TargetGroup]:
    """The groups with these names that the target has."""
    wanted = set(names)
    found = [g for g in list_groups(cluster) if g.name in wanted]
    details = describe_groups(cluster, found)
    share = {g.name for g in found if g.kind == "share"}
    commits = {
        **group_offsets(cluster, [g.name for g in found if g.name not in share]),
        **share_group_offsets(cluster, sorted(share)),
    }
    return {
        g.name: TargetGroup(g, commits.get(g.name, {}), details[g.name].members if g.name in details else ())
        for g in found
    }


def set_groups(cluster: Cluster, plan: GroupsPlan) -> None:
    """Set the offsets of all groups of a plan, and read them back. The plan's rows hold the previous offsets.

    Share groups come first: if a broker does not support them, nothing was changed. Raises TargetUnsafe when a group
    has members by now, RestoreFailed when a group has other offsets afterwards, and errors of brokers.
    """
    share = {g.name: g.commits for g in plan.groups if g.share}
    plain = {g.name: g.commits for g in plan.groups if not g.share}
    _put(cluster, share, plain)
    _compare(cluster, share, {**share, **plain})


def roll_back(cluster: Cluster, groups: Iterable[GroupBack]) -> None:
    """Set groups to their previous offsets, and read them back. Raises as `set_groups` does."""
    chosen = list(groups)
    _raise_refused(delete_groups(cluster, [g.name for g in chosen if g.remove]))
    share = {g.name: g for g in chosen if g.share}
    plain = {g.name: g for g in chosen if not g.share}
    topics = {name: sorted({log.topic for log in g.forget}) for name, g in share.items() if g.forget}
    _raise_refused(forget_share_topics(cluster, topics))
    _raise_refused(forget_offsets(cluster, {name: g.forget for name, g in plain.items() if g.forget}))
    _put(cluster, {n: g.put for n, g in share.items() if g.put}, {n: g.put for n, g in plain.items() if g.put})
    _compare(cluster, share, {g.name: {**dict.fromkeys(g.forget), **g.put} for g in chosen})


def _put(
    cluster: Cluster,
    share: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
    plain: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
) -> None:
    starts = {name: {log: c.offset for log, c in commits.items()} for name, commits in share.items()}
    _raise_refused(move_share_groups(cluster, starts))
    _raise_refused(commit_offsets(cluster, plain))


def _raise_refused(refusals: Refusals) -> None:
    refused = {name: each for name, each in refusals.items() if each}
    if refused:
        raise _error(refused)


def _error(refused: Refusals) -> LogkeepError:
    name, (first, *_) = next(iter(sorted(refused.items())))
    if first.live:
        return TargetUnsafe(
            f"has active members by now: {first}",
            subject=f"group {name}",
            remedy="stop its consumers and run again; `kafka groups rollback` undoes what was set",
        )
    subject = f"group {name}{f', {first.log}' if first.log else ''}"
    error = failure(first.code, subject=subject, doing="setting offsets", message=first.said)
    error.remedy = f"{error.remedy}; `kafka groups rollback` undoes what was set"
    return error


def _compare(cluster: Cluster, share: Iterable[str], wanted: Wanted) -> None:
    shared = set(share)
    found = {
        **group_offsets(cluster, [name for name in wanted if name not in shared]),
        **share_group_offsets(cluster, [name for name in wanted if name in shared]),
    }
    for name, positions in sorted(wanted.items()):
        for log, commit in sorted(positions.items()):
            now = found.get(name, {}).get(log)
            if _offset_and_metadata(now) != _offset_and_metadata(commit):
                raise RestoreFailed(
                    f"has {_offset_text(now)} instead of {_offset_text(commit)}, which was set",
                    subject=f"group {name}, {log}",
                    remedy="find out which other client commits for this group, then run again",
                )


def _offset_and_metadata(commit: CommittedOffset | None) -> tuple[int, str] | None:
    return None if commit is None else (commit.offset, commit.metadata)


def _offset_text(commit: CommittedOffset | None) -> str:
    return "no offset" if commit is None else f"offset {commit.offset}"
