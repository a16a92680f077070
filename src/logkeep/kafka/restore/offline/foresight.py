"""What an offline restore would do, found out from the backup and from the directories. Writes nothing."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from logkeep.errors import Damaged, TargetUnsafe
from logkeep.kafka.record import ROLE, ClusterRecord
from logkeep.kafka.restore.offline.choose import ChosenLog, ChosenTopic, choose_logs, choose_topics
from logkeep.kafka.restore.offline.directories import old_files, standing_of
from logkeep.kafka.restore.offline.locks import broker_stopped
from logkeep.kafka.restore.offline.note import origin_of
from logkeep.kafka.restore.offline.procedure import Target, TargetTopic, procedure, usual_way
from logkeep.kafka.restore.offline.safety import about_replicas
from logkeep.kafka.restore.offline.values import Foreseen, OfflineUnit, OfflineWish, PlannedLog, Standing
from logkeep.kafka.salvage.cluster_image import ClusterImage, newest_image
from logkeep.kafka.salvage.disk_layout import Standing as DirectoryStanding
from logkeep.kafka.salvage.disks import Disks, FoundCopy, look
from logkeep.kafka.values import TopicPartition
from logkeep.kafka.verify_records import covered
from logkeep.model.findings import Finding, Severity
from logkeep.repository.attachments import read_attachment
from logkeep.repository.chain import Place, read_chain
from logkeep.repository.content import PartReader, rows_of, served_parts
from logkeep.repository.fold import BackupEntry
from logkeep.repository.manifest import Manifest
from logkeep.repository.source import read_manifest


@dataclass(frozen=True)
class Prepared:
    """A plan, and the target's own metadata where it is known."""

    foreseen: Foreseen
    image: ClusterImage | None


def foresee(place: Place, entry: BackupEntry, wish: OfflineWish) -> Prepared:
    """Raises UsageError for what the backup does not have, LogDirUnusable for what is no log directory."""
    manifest = read_manifest(place, entry)
    record = _record(place, manifest)
    topics = choose_topics(record, wish)
    rows = rows_of(PartReader(place), manifest, served_parts(manifest, read_chain(place)))
    chosen = choose_logs(manifest, topics, covered(place.source, manifest, rows.to_segments()), wish)
    disks = look(wish.roots)
    image, problems = newest_image(disks.metadata_logs)
    here = _here(disks)
    logs = [_planned(log, here[log.target], place, wish) for log in chosen if log.target in here]
    findings = [*_gaps(manifest, chosen), *about_replicas(image, logs, sorted(disks.nodes))]
    findings += [_note("metadata-damaged", "target", problem) for problem in problems]
    return Prepared(
        Foreseen(
            backup=wish.backup,
            cluster_id=disks.cluster_id,
            nodes=tuple(sorted(disks.nodes)),
            own_cluster=disks.cluster_id == record.cluster_id,
            logs=tuple(logs),
            elsewhere=tuple(log.name for log in chosen if log.target not in here),
            running=_running(wish.roots),
            findings=tuple(findings),
            procedure=_procedure(place, topics, chosen, disks, image, wish),
            topics=len(topics),
        ),
        image,
    )


def _record(place: Place, manifest: Manifest) -> ClusterRecord:
    record = read_attachment(place, manifest, ROLE, ClusterRecord)
    if record is None:
        raise Damaged("the backup has no record of its cluster", subject=f"backup {manifest.id} of {place.source}")
    return record


def _here(disks: Disks) -> dict[TopicPartition, FoundCopy]:
    """Each partition's directory. Raises TargetUnsafe when there are two: a broker would not start on them either."""
    found: dict[TopicPartition, FoundCopy] = {}
    for copy in disks.copies:
        if copy.standing is DirectoryStanding.CURRENT and copy.topic_id is not None:
            other = found.setdefault(copy.log, copy)
            if other is not copy:
                what = f"the partition has two directories, {other.copy.directory} and {copy.copy.directory}"
                remedy = "name the directories of one broker only"
                raise TargetUnsafe(what, subject=str(copy.log), remedy=remedy)
    return found


def _planned(log: ChosenLog, found: FoundCopy, place: Place, wish: OfflineWish) -> PlannedLog:
    directory = Path(found.copy.directory)
    files = old_files(directory)
    planned = PlannedLog(
        log=log.log,
        topic=log.topic,
        partition=log.partition,
        start=log.start,
        end=log.end,
        segments=log.segments,
        root=str(directory.parent),
        topic_id=found.topic_id.hex if found.topic_id else "",
        standing=Standing.EMPTY,
        old_files=files,
    )
    origin = origin_of(unit_of(planned, place, wish))
    return msgspec.structs.replace(planned, standing=standing_of(directory, files, origin))


def unit_of(planned: PlannedLog, place: Place, wish: OfflineWish) -> OfflineUnit:
    return OfflineUnit(
        place=place, backup=wish.backup, planned=planned, segment_bytes=wish.segment_bytes, replace=wish.replace
    )


def check_room(logs: Sequence[PlannedLog]) -> None:
    """Raises TargetUnsafe when a disk cannot take what goes there; what is replaced stays until the new is proven."""
    wanted: dict[int, tuple[str, int]] = {}
    for log in logs:
        if log.standing is not Standing.RESTORED:
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


def _running(roots: Sequence[Path]) -> bool:
    try:
        with broker_stopped(roots):
            return False
    except TargetUnsafe:
        return True


def _gaps(manifest: Manifest, chosen: Sequence[ChosenLog]) -> list[Finding]:
    ends = {log.log: log.end for log in chosen}
    return [
        _note("known-gap", str(gap.log), f"offsets [{gap.start}, {gap.end}) were never archived: {gap.reason}")
        for gap in manifest.gaps
        if gap.start < ends.get(gap.log, 0)
    ]


def _note(code: str, where: str, what: str) -> Finding:
    return Finding(code=code, severity=Severity.WARNING, where=where, what=what)


def _procedure(
    place: Place,
    topics: Sequence[ChosenTopic],
    logs: Sequence[ChosenLog],
    disks: Disks,
    image: ClusterImage | None,
    wish: OfflineWish,
) -> str:
    replicas = {n for each in image.replicas.values() for some in each.values() for n in some} if image else set()
    target = Target(
        backup=wish.backup,
        source=place.source,
        roots=tuple(map(str, wish.roots)),
        node=min(disks.nodes),
        brokers=wish.brokers or tuple(sorted(replicas | disks.nodes)),
    )
    wanted = [_target_topic(t, [log for log in logs if log.topic == t.name]) for t in topics]
    return procedure(wanted, target, wish.way or usual_way(wanted))


def _target_topic(topic: ChosenTopic, logs: Sequence[ChosenLog]) -> TargetTopic:
    record = topic.record
    bounds = tuple((log.partition, log.start, log.end) for log in logs)
    return TargetTopic(topic.name, record.partitions, record.replication_factor, record.configs, bounds)
