"""The label of an imported backup: which tool wrote the dataset, and what is doubtful. Pinned by the manifest."""

from typing import ClassVar, Final

import msgspec

from logkeep.model.ids import BackupId, StoredId
from logkeep.repository.backups.attachments import put_attachment, read_attachment
from logkeep.repository.backups.manifest import AttachmentRef, Manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import MIB, SourceDocument

ROLE: Final = "import"


class ToolLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which tool wrote a dataset, and what it could not know."""

    format: str
    """The name of the format, as in `--format`."""
    tool: str
    version: str = ""
    """Empty if the dataset does not have it."""
    unknown: tuple[str, ...] = ()
    """What the format has no place for, or the tool did not archive."""


class Doubt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something doubtful about the records of one partition: how often, and where first."""

    code: str
    count: int
    first: str


class ImportedPartition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topic: str
    partition: int
    doubts: tuple[Doubt, ...]


class ImportLabel(SourceDocument, frozen=True, kw_only=True, tag="kafka-import"):
    limit: ClassVar[int] = 64 * MIB

    id: StoredId
    label: ToolLabel
    url: str
    """The location of the dataset; it never contains a secret."""
    doubtful: tuple[ImportedPartition, ...]
    """Partitions with something doubtful."""


def put_label(
    place: SourceRef,
    backup_id: BackupId,
    label: ToolLabel,
    url: str,
    doubtful: tuple[ImportedPartition, ...],
    token: str,
) -> AttachmentRef:
    document = ImportLabel(
        repository=place.repository, source=place.source, id=backup_id, label=label, url=url, doubtful=doubtful
    )
    return put_attachment(place, backup_id, ROLE, document, token)


def read_label(place: SourceRef, manifest: Manifest) -> ImportLabel | None:
    """The label of a backup; None if the backup was not imported."""
    return read_attachment(place, manifest, ROLE, ImportLabel)
