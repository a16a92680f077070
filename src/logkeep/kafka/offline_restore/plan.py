"""Plans an offline restore from the backup and the broker's directories. Writes nothing."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from logkeep.directories.folder import Folder
from logkeep.directories.group_rights import dropped_group_rights
from logkeep.errors import LogDirUnusable, TargetUnsafe, UsageError
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.directories import FoundCopy, LogDirectories, list_directories
from logkeep.kafka.disks.layout import LogDirState
from logkeep.kafka.disks.metadata_image import ClusterImage, newest_image
from logkeep.kafka.offline_restore.instructions import (
    OfflineTarget,
    TopicToCreate,
    group_words,
    procedure,
    restore_words,
    usual_way,
)
from logkeep.kafka.offline_restore.locks import broker_stopped
from logkeep.kafka.offline_restore.log_folders import open_root, partition_folder
from logkeep.kafka.offline_restore.ownership_note import directory_state, old_files, origin_of
from logkeep.kafka.offline_restore.safety import about_replicas
from logkeep.kafka.offline_restore.values import (
    DirectoryState,
    OfflineRestoreLog,
    OfflineRestoreOptions,
    OfflineRestorePlan,
    OfflineUnit,
)
from logkeep.kafka.record.backup_view import KafkaBackupView, view_backup
from logkeep.kafka.record.topic_sets import topic_sets, torn_sets
from logkeep.kafka.restore.plan.folded_points import refuse_folded_points
from logkeep.kafka.restore.plan.selection import ChosenLog, SelectedLogs, select_logs
from logkeep.model.findings import Finding, Severity, warning
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry


@dataclass(frozen=True)
class PreparedOfflineRestore:
    """A plan, and the target's metadata if it is known."""

    plan: OfflineRestorePlan
    image: ClusterImage | None


def plan_offline_restore(
    place: SourceRef, entry: BackupEntry, options: OfflineRestoreOptions
) -> PreparedOfflineRestore:
    """The plan of a restore. Raises UsageError for what the backup does not have, LogDirUnusable for an unusable log
    directory."""
    view = view_backup(place, entry)
    chosen = select_logs(view.record, view.manifest.cut, options.selection)
    if not chosen.logs:
        raise UsageError("no topic is left to restore", remedy="internal topics are never restored")
    ranges = _ranges(chosen, options)
    refuse_folded_points(view, ranges, None)
    segments = view.segments(ranges)
    disks = _read_disks(options.roots)
    image, problems = newest_image(disks.metadata_logs)
    here = _find_directories(disks)
    roots = {str(root): open_root(root) for root in options.roots}
    logs = [
        _plan_log(log, ranges[log.log], segments[log.log], here[log.target], roots, view, options)
        for log in chosen.logs
        if log.target in here
    ]
    findings = [*options.torn, *_not_restored(view, chosen, ranges), *about_replicas(image, logs, sorted(disks.nodes))]
    findings += [warning("metadata-damaged", "target", problem) for problem in problems]
    findings += _group_rights(logs, roots)
    sets = topic_sets(view.record.topics, view.record.groups)
    findings += torn_sets(sets, [topic.name for topic, _ in chosen.topics], ())
    return PreparedOfflineRestore(
        OfflineRestorePlan(
            backup=options.backup,
            cluster_id=disks.cluster_id,
            nodes=tuple(sorted(disks.nodes)),
            own_cluster=disks.cluster_id == view.record.cluster_id,
            logs=tuple(logs),
            elsewhere=tuple(str(log.target) for log in chosen.logs if log.target not in here),
            running=_running(list(roots.values())),
            findings=tuple(findings),
            procedure=_procedure(place, chosen, ranges, disks, image, options),
            topics=len(chosen.topics),
        ),
        image,
    )


def _group_rights(logs: Sequence[OfflineRestoreLog], roots: Mapping[str, Folder]) -> list[Finding]:
    """One finding for each root: a broker's directories have one owner."""
    found: dict[str, Finding] = {}
    for log in logs:
        status = roots[log.root].find(f"{log.topic}-{log.partition}")
        if status is not None:
            rights = dropped_group_rights(roots[log.root], log.root, status.st_gid, status.st_mode)
            found |= {finding.where: finding for finding in rights}
    return list(found.values())


def _read_disks(roots: Sequence[Path]) -> LogDirectories:
    try:
        return list_directories(roots)
    except FileNotFoundError as error:
        raise LogDirUnusable("a file was deleted while it was listed", subject=str(error.filename)) from error


def _ranges(chosen: SelectedLogs, options: OfflineRestoreOptions) -> dict[LogName, Range]:
    """The range of each log to restore. Raises UsageError for an end that is not in the backup."""
    earlier = {(e.topic, e.partition): e.end for e in options.ends}
    found: dict[LogName, Range] = {}
    for log in chosen.logs:
        end = min(log.end, earlier.get((log.log.name, log.log.partition), log.end))
        if end < log.start:
            raise UsageError(f"it starts at {log.start}, so it cannot end at {end}", subject=str(log.log))
        found[log.log] = Range(log.start, end)
    return found


def _find_directories(disks: LogDirectories) -> dict[TopicPartition, FoundCopy]:
    """Each partition's directory. Raises TargetUnsafe when there are two: a broker would refuse to start, too."""
    found: dict[TopicPartition, FoundCopy] = {}
    for copy in disks.copies:
        if copy.state is LogDirState.CURRENT and copy.topic_id is not None:
            other = found.setdefault(copy.log, copy)
            if other is not copy:
                what = f"the partition has two directories, {other.copy.directory} and {copy.copy.directory}"
                remedy = "name the directories of one broker only"
                raise TargetUnsafe(what, subject=str(copy.log), remedy=remedy)
    return found


def _plan_log(
    log: ChosenLog,
    wanted: Range,
    segments: Sequence[Segment],
    found: FoundCopy,
    roots: Mapping[str, Folder],
    view: KafkaBackupView,
    options: OfflineRestoreOptions,
) -> OfflineRestoreLog:
    root, name = os.path.split(found.copy.directory)
    directory = partition_folder(roots[root], name)
    files = old_files(directory)
    planned = OfflineRestoreLog(
        log=log.log,
        topic=log.target.topic,
        partition=log.target.partition,
        start=wanted.start,
        end=wanted.end,
        segments=tuple(s for s in segments if s.has_object),
        buried=tuple(b.object for b in view.burials.get(log.log, ())),
        root=root,
        topic_id=found.topic_id.hex if found.topic_id else "",
        state=DirectoryState.EMPTY,
        old_files=files,
    )
    origin = origin_of(unit_of(planned, view.place, options))
    return msgspec.structs.replace(planned, state=directory_state(directory, files, origin))


def unit_of(planned: OfflineRestoreLog, place: SourceRef, options: OfflineRestoreOptions) -> OfflineUnit:
    return OfflineUnit(
        place=place,
        backup=options.backup,
        planned=planned,
        segment_bytes=options.segment_bytes,
        replace=options.replace,
    )


def check_room(logs: Sequence[OfflineRestoreLog]) -> None:
    """Raises TargetUnsafe when a disk is too small; replaced files stay until the new ones are proven."""
    wanted: dict[int, tuple[str, int]] = {}
    for log in logs:
        if log.state is not DirectoryState.RESTORED:
            device = Path(log.root).stat().st_dev
            wanted[device] = (log.root, wanted.get(device, ("", 0))[1] + log.size_bytes)
    for root, size in wanted.values():
        disk = os.statvfs(root)
        free = disk.f_bavail * disk.f_frsize
        if free < size:
            raise TargetUnsafe(
                f"{size} bytes are to be written, and {free} are free",
                subject=root,
                remedy="make room, or restore some of the topics or partitions",
            )


def _running(roots: Sequence[Folder]) -> bool:
    try:
        with broker_stopped(roots):
            return False
    except TargetUnsafe:
        return True


def _not_restored(view: KafkaBackupView, chosen: SelectedLogs, ranges: Mapping[LogName, Range]) -> list[Finding]:
    """Findings about parts of the backup that are not restored."""
    found = [
        warning("known-gap", str(gap.log), f"offsets [{gap.start}, {gap.end}) were never archived: {gap.reason}")
        for gap in view.gaps(ranges)
    ]
    found += [*view.unproven_deletions(ranges), *view.trim_findings(ranges)]
    if chosen.internal:
        what = "internal topics are not restored as files; `logkeep kafka groups restore` sets the groups"
        where = ", ".join(chosen.internal)
        found.append(Finding(code="internal-topics", severity=Severity.NOTE, where=where, what=what))
    return found


def _procedure(
    place: SourceRef,
    chosen: SelectedLogs,
    ranges: Mapping[LogName, Range],
    disks: LogDirectories,
    image: ClusterImage | None,
    options: OfflineRestoreOptions,
) -> str:
    replicas = {n for each in image.replicas.values() for some in each.values() for n in some} if image else set()
    target = OfflineTarget(
        backup=options.backup,
        source=place.source,
        roots=tuple(map(str, options.roots)),
        node=min(disks.nodes),
        brokers=options.brokers or tuple(sorted(replicas | disks.nodes)),
        restore_words=restore_words(options),
        group_words=group_words(options),
    )
    wanted = [
        TopicToCreate(name, record.partitions, record.replication_factor, record.configs, _bounds(name, chosen, ranges))
        for record, name in chosen.topics
    ]
    return procedure(wanted, target, options.way or usual_way(wanted))


def _bounds(topic: str, chosen: SelectedLogs, ranges: Mapping[LogName, Range]) -> tuple[tuple[int, int, int], ...]:
    return tuple(
        (log.target.partition, ranges[log.log].start, ranges[log.log].end)
        for log in chosen.logs
        if log.target.topic == topic
    )
