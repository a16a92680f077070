"""A backup as a restore reads it: its manifest, its cluster record, and the segments of the selected logs."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from logkeep.errors import Damaged, UsageError
from logkeep.kafka.record.documents import ROLE, ClusterRecord
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.manifest import KnownGap, Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.parts import SegmentTable

KIND = "kafka"


@dataclass(frozen=True)
class KafkaBackupView:
    place: SourceRef
    entry: BackupEntry
    manifest: Manifest
    record: ClusterRecord
    rows: SegmentTable

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


def view_backup(place: SourceRef, entry: BackupEntry) -> KafkaBackupView:
    """Raises Damaged when a part of it is missing, UsageError when it is not a backup of a Kafka cluster."""
    manifest = read_manifest(place, entry)
    if manifest.kind != KIND:
        raise UsageError(
            f"backup {entry.id} is a backup of {manifest.kind}, not of a Kafka cluster", subject=place.source
        )
    record = read_attachment(place, manifest, ROLE, ClusterRecord)
    if record is None:
        raise Damaged("the backup has no record of its cluster", subject=f"{place.source} {entry.id}")
    rows = rows_of(PartReader(place), manifest, served_parts(manifest, read_chain(place)))
    return KafkaBackupView(place, entry, manifest, record, rows)
