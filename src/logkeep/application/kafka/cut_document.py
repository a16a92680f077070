"""The stored cut of an application on Kafka: its positions and the records in transit. Pinned by the manifest."""

from typing import ClassVar

import msgspec

from logkeep.kafka.record.documents import APPLICATION_CUT
from logkeep.model.ids import BackupId, StoredId
from logkeep.model.segments import Position
from logkeep.repository.backups.attachments import put_attachment, read_attachment
from logkeep.repository.backups.manifest import AttachmentRef, Manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import MIB, SourceDocument


class CutReader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """P: the next record that a group's task would have read."""

    group: str
    offset: Position


class ApplicationLog(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """P, B and E of one log, and the offsets in it that are in transit."""

    topic: str
    partition: Position
    before: Position
    """B: the end of the log before the marker was sent."""
    end: Position
    """E: the end once every task had its checkpoint."""
    readers: tuple[CutReader, ...] = ()
    in_transit: tuple[Position, ...] = ()

    @property
    def kept_to(self) -> int:
        """The end of the part that is completely in the cut."""
        return max(self.before, *(reader.offset for reader in self.readers), 0)


class ParticipantCut(SourceDocument, frozen=True, kw_only=True, tag="application-cut"):
    limit: ClassVar[int] = 64 * MIB

    id: StoredId
    application: str
    """Its name; `stamp` is the id in its headers."""
    stamp: str
    history: int
    transactional: bool
    """False: a task that ended without a commit may have produced records twice."""
    forced: int
    """How many tasks took the checkpoint because of a record."""
    disagreeing: int
    """Records whose stamp contradicts their cause: possible duplicates."""
    logs: tuple[ApplicationLog, ...]


def put_cut(place: SourceRef, backup_id: BackupId, document: ParticipantCut, token: str) -> AttachmentRef:
    return put_attachment(place, backup_id, APPLICATION_CUT, document, token)


def read_cut(place: SourceRef, manifest: Manifest) -> ParticipantCut | None:
    """None: the backup is not one of an application."""
    return read_attachment(place, manifest, APPLICATION_CUT, ParticipantCut)
