"""What a backup has to export: the logs of its cut, each up to the first transaction that was open there."""

from collections.abc import Mapping

from logkeep.kafka.datasets.sources.records_of_backup import BackupRecords
from logkeep.kafka.datasets.sources.selection import ExportSelection
from logkeep.kafka.datasets.values import ExportableLog, ExportableLogs
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.record.documents import PartitionRecord
from logkeep.kafka.retention.guarantee import knows_brokers
from logkeep.kafka.scan.plan import ScanSelection, plan_scan, selected_cuts
from logkeep.kafka.scan.values import ScanIsolation, ScanRange
from logkeep.model.ranges import Range
from logkeep.repository.backups.manifest import LogCut


def read_backup(
    view: KafkaBackupView, wanted: ExportSelection, isolation: ScanIsolation
) -> tuple[ExportableLogs, BackupRecords]:
    """The selected logs of a backup, and how to read them. Raises UsageError if nothing is selected."""
    selection = ScanSelection(
        patterns=wanted.include, exclude=wanted.exclude, internal=wanted.internal, isolation=isolation
    )
    cuts = selected_cuts(view, selection)
    wanted.refuse_nothing([c.log.name for c in cuts], [t.name for t in view.record.topics])
    ranges = {DatasetLog(r.log.name, r.log.partition): r for r in plan_scan(view, selection)}
    logs = wanted.chosen(_logs(view, cuts, ranges))
    topics = {each.log.topic for each in logs}
    facts = ExportableLogs(
        cluster_id=view.record.cluster_id,
        live=False,
        topics=tuple(t for t in view.record.topics if t.name in topics),
        logs=logs,
        groups=view.record.groups,
        acls=view.record.acls,
        quotas=view.record.quotas,
        configs_known=knows_brokers(view.record),
        named=frozenset(wanted.include) & topics,
    )
    return facts, BackupRecords(ranges)


def _logs(view: KafkaBackupView, cuts: list[LogCut], ranges: Mapping[DatasetLog, ScanRange]) -> list[ExportableLog]:
    recorded = {(r.topic, r.partition): r for r in view.record.logs}
    doubts = {f.where: f.what for f in view.unproven_deletions([c.log for c in cuts])}
    gaps = view.gaps({c.log: Range(c.start, c.end) for c in cuts})
    found = []
    for cut in sorted(cuts, key=lambda c: (c.log.name, c.log.partition)):
        log = DatasetLog(cut.log.name, cut.log.partition)
        scanned = ranges.get(log)
        source = ExportableLog(
            log=log,
            history=cut.log.history,
            start=cut.start,
            end=max(_last_stable(cut, recorded.get(log)), cut.start),
            size_bytes=scanned.size_bytes if scanned is not None else 0,
            buried=sum(each.offsets for each in view.burials.get(cut.log, ())),
            folded_to=view.folds[cut.log].end if cut.log in view.folds else 0,
            unproven=doubts.get(str(cut.log), ""),
            lost=tuple(Range(gap.start, gap.end) for gap in gaps if gap.log == cut.log),
        )
        found.append(source)
    return found


def _last_stable(cut: LogCut, record: PartitionRecord | None) -> int:
    return cut.end if record is None else min(record.last_stable, cut.end)
