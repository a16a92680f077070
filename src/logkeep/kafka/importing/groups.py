"""Groups of a dataset as the cluster record has them. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from logkeep.kafka.importing.reader import DatasetReader
from logkeep.kafka.record.documents import ClusterRecord, CommitRecord, GroupRecord
from logkeep.repository.backups.manifest import LogCut


def group_records(reader: DatasetReader, cut: Iterable[LogCut], last: ClusterRecord | None) -> tuple[GroupRecord, ...]:
    """Groups with their offsets in archived partitions: as committed, and not above the cut.

    What the dataset no longer has stays as the last backup has it.
    """
    ends = {(c.log.name, c.log.partition): c.end for c in cut}
    found = {name: _group(name, offsets, ends) for name, offsets in reader.groups.items()}
    if reader.known_groups:
        found = {each.name: _clamped(_within(each, ends), ends) for each in reader.known_groups}
    for old in last.groups if last else ():
        kept = _clamped(old, ends)
        found[old.name] = _joined(kept, found[old.name]) if old.name in found else kept
    return tuple(found[name] for name in sorted(found) if found[name].commits)


def _group(name: str, offsets: Mapping[tuple[str, int], int], ends: Mapping[tuple[str, int], int]) -> GroupRecord:
    commits = tuple(
        CommitRecord(topic, partition, min(offset, ends[topic, partition]), offset, -1, "")
        for (topic, partition), offset in sorted(offsets.items())
        if (topic, partition) in ends
    )
    return GroupRecord(name=name, kind="classic", state="Empty", protocol_type="consumer", commits=commits)


def _within(group: GroupRecord, ends: Mapping[tuple[str, int], int]) -> GroupRecord:
    """The group without commits in topics that are not imported."""
    kept = tuple(c for c in group.commits if (c.topic, c.partition) in ends)
    return msgspec.structs.replace(group, commits=kept)


def _clamped(group: GroupRecord, ends: Mapping[tuple[str, int], int]) -> GroupRecord:
    """A carried group: what was committed above the last cut may be below this one."""
    commits = tuple(
        msgspec.structs.replace(c, offset=min(c.committed, ends.get((c.topic, c.partition), c.offset)))
        for c in group.commits
    )
    return msgspec.structs.replace(group, commits=commits)


def _joined(old: GroupRecord, new: GroupRecord) -> GroupRecord:
    commits = {(c.topic, c.partition): c for c in (*old.commits, *new.commits)}
    return msgspec.structs.replace(new, commits=tuple(commits[key] for key in sorted(commits)))
