"""Opens a backup to answer questions about its groups: only the logs of Kafka's own topics."""

import msgspec

from logkeep.formats.kafka.internal_topics.coordinator_records import DECODED_TOPICS
from logkeep.kafka.group_history.run import ArchivedGroups
from logkeep.kafka.record.documents import ROLE, ClusterRecord
from logkeep.kafka.record.stored_record import manifest_of_cluster, require_record
from logkeep.model.segments import LogName, Segment
from logkeep.model.work import EngineFor
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry, Folded


def archived_groups(place: SourceRef, folded: Folded, entry: BackupEntry, engine: EngineFor) -> ArchivedGroups:
    """The groups of a backup. Raises Damaged, and UsageError if it is not a backup of a Kafka cluster."""
    manifest = manifest_of_cluster(place, entry)
    record = require_record(read_attachment(place, manifest, ROLE, ClusterRecord), place, entry)
    cuts = tuple(c for c in manifest.cut if c.log.name in DECODED_TOPICS)
    only = msgspec.structs.replace(manifest, cut=cuts)
    segments: dict[LogName, list[Segment]] = {}
    for segment in rows_of(PartReader(place), only, served_parts(manifest, folded)).to_segments() if cuts else ():
        segments.setdefault(segment.log, []).append(segment)
    burials = burials_by_log(folded, entry.id, [c.log for c in cuts])
    return ArchivedGroups(
        place=place,
        manifest=only,
        record=record,
        earlier=[each for each in folded.completed if each.id < entry.id],
        segments={log: sorted(some, key=lambda s: s.start) for log, some in segments.items()},
        buried={log: tuple(each.object for each in some) for log, some in burials.items()},
        engine=engine,
    )
