"""A backup as a restore reads it: its manifest, its cluster record, and the segments of the selected logs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from logkeep.errors import Damaged, UsageError
from logkeep.kafka.record.documents import ClusterRecord
from logkeep.kafka.record.folded_backups import folded_over_remedy, folded_over_text, known_folds
from logkeep.kafka.record.lost_burials import LOST_BURIAL, LOST_BURIAL_REMEDY, lost_burials
from logkeep.kafka.record.stored_record import manifest_of_cluster, read_record, require_record
from logkeep.kafka.record.unproven_deletions import deletion_findings
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.folds import folded_over, folds_by_log, with_dense
from logkeep.repository.backups.manifest import KnownGap, Manifest
from logkeep.repository.backups.source import read_trimmed_cuts
from logkeep.repository.backups.trim_floors import TrimmedCut, trim_findings
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry, Burial, FoldedLog
from logkeep.repository.parts import SegmentTable, dense_logs


@dataclass(frozen=True)
class KafkaBackupView:
    place: SourceRef
    entry: BackupEntry
    manifest: Manifest
    record: ClusterRecord
    rows: SegmentTable
    burials: Mapping[LogName, tuple[Burial, ...]] = field(default_factory=dict)
    """The burials of logs with archived records that this backup leaves out."""
    trimmed: tuple[TrimmedCut, ...] = ()
    """Logs that were trimmed: they begin later now than when the backup was taken."""
    folds: Mapping[LogName, FoldedLog] = field(default_factory=dict)
    """The last fold of each log that was folded."""
    dense: frozenset[LogName] = frozenset()
    """Logs that had a record at every offset before they were folded."""

    def segments(self, wanted: Mapping[LogName, Range]) -> dict[LogName, tuple[Segment, ...]]:
        """The segments of each log that overlap its range, in order. A log without any has an empty tuple."""
        found: defaultdict[LogName, list[Segment]] = defaultdict(list)
        for segment in self.rows.covering(wanted).to_segments():
            found[segment.log].append(segment)
        return {log: tuple(sorted(found[log], key=lambda s: s.start)) for log in wanted}

    def gaps(self, wanted: Mapping[LogName, Range]) -> list[KnownGap]:
        """Offsets in the restored ranges that were lost before they could be archived."""
        return [
            gap
            for gap in self.manifest.gaps
            if gap.log in wanted and gap.start < wanted[gap.log].end and gap.end > wanted[gap.log].start
        ]

    def unproven_deletions(self, logs: Iterable[LogName]) -> list[Finding]:
        """Logs among these whose archive may lack a deletion."""
        return deletion_findings(self.record, self.manifest, lambda: dense_logs(self.rows) | self.dense, map(str, logs))

    def trim_findings(self, logs: Iterable[LogName]) -> list[Finding]:
        """Topics of these logs that are restored without what was trimmed."""
        return trim_findings(self.trimmed, logs, Severity.WARNING)

    def refuse_trimmed(self, wanted: Mapping[LogName, Range]) -> None:
        """Raise UsageError if a plan needs offsets that were trimmed since it was made."""
        for cut in self.trimmed:
            span = wanted.get(cut.log)
            if span is not None and span.start < min(cut.start, span.end):
                raise UsageError(
                    f"{cut.log} was trimmed since this restore was planned: it begins at offset {cut.start} now",
                    subject=f"backup {self.entry.id}",
                    remedy="abort this restore and begin another one",
                )


def view_backup(place: SourceRef, entry: BackupEntry) -> KafkaBackupView:
    """Open a backup for a restore. Raises Damaged when a part of it is missing, UsageError when it is not a backup of a
    Kafka cluster."""
    manifest = manifest_of_cluster(place, entry)
    record = require_record(read_record(place, manifest), place, entry)
    folded = read_chain(place)
    rows = rows_of(PartReader(place), manifest, served_parts(manifest, folded))
    burials = burials_by_log(folded, entry.id, [c.log for c in manifest.cut])
    refuse_lost_burials(record, burials)
    for fold in folded_over(folded, entry.id, manifest.cut):
        subject = f"{fold.log.name}/{fold.log.partition}"
        raise Damaged(folded_over_text(fold), subject=subject, remedy=folded_over_remedy(fold))
    folds = known_folds(folds_by_log(folded, [c.log for c in manifest.cut]), record, entry.id)
    dense = frozenset(with_dense(folded, entry.id, ()))
    trimmed = tuple(read_trimmed_cuts(place, entry))
    return KafkaBackupView(place, entry, manifest, record, rows, burials, trimmed, folds, dense)


def refuse_lost_burials(record: ClusterRecord, burials: Mapping[LogName, tuple[Burial, ...]]) -> None:
    """Raise Damaged if the chain lost a burial that the backup knows of."""
    for each in lost_burials(record, burials):
        raise Damaged(
            LOST_BURIAL,
            subject=f"{each.topic}/{each.partition}",
            remedy=LOST_BURIAL_REMEDY,
        )
