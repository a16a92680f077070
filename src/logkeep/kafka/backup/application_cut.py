"""The cut of an application that runs on the cluster: what a backup asks of it between its request and its copy."""

from typing import Protocol

from logkeep.kafka.record.documents import GroupRecord
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId
from logkeep.repository.backups.manifest import AttachmentRef
from logkeep.repository.chain.commits import SourceRef


class ApplicationCut(Protocol):
    """One cut. The backup calls these in this order; everything that is copied lies after `take`."""

    def take(self, backup_id: BackupId) -> None:
        """Let every task of the application take its checkpoint. Raises LogkeepError if one does not."""

    def groups(self, found: tuple[GroupRecord, ...]) -> tuple[GroupRecord, ...]:
        """The groups of the record, those of the application at the offsets of their checkpoints."""

    def attach(self, place: SourceRef, backup_id: BackupId, token: str) -> AttachmentRef:
        """Store the positions of the cut beside the manifest."""

    def findings(self) -> tuple[Finding, ...]:
        """What the user should know of the cut."""
