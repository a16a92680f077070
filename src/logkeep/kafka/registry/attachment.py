"""The registry that `kafka backup --registry` read: a packed attachment of the backup, under the role `registry`."""

from datetime import datetime
from typing import ClassVar

from logkeep.kafka.registry.values import ArchivedRegistry
from logkeep.model.ids import BackupId, StoredId
from logkeep.model.time import rfc3339
from logkeep.repository.backups.attachments import read_attachment, stream_attachment
from logkeep.repository.backups.manifest import LARGEST_ATTACHMENT, WITH_PACKED, AttachmentRef, Manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import SourceDocument
from logkeep.repository.chain.format import PACKED_RECORDS, require_feature

ROLE = "registry"


class RegistryDocument(SourceDocument, frozen=True, kw_only=True, tag="kafka-registry"):
    limit: ClassVar[int] = LARGEST_ATTACHMENT
    newest: ClassVar[int] = WITH_PACKED

    id: StoredId
    url: str
    """Without credentials."""
    captured: str
    registry: ArchivedRegistry
    export: bytes = b""
    """Apicurio's own export, a zip file that its import takes; empty for other registries."""


def put_registry(
    place: SourceRef,
    backup_id: BackupId,
    registry: ArchivedRegistry,
    *,
    url: str,
    export: bytes,
    captured: datetime,
    token: str,
) -> AttachmentRef:
    """Store it for an ongoing backup; it is valid once the manifest names the reference."""
    require_feature(place.store, PACKED_RECORDS)
    document = RegistryDocument(
        version=WITH_PACKED,
        repository=place.repository,
        source=place.source,
        id=backup_id,
        url=url,
        captured=rfc3339(captured),
        registry=registry,
        export=export,
    )
    return stream_attachment(place, backup_id, ROLE, document, token)


def captured_registry(place: SourceRef, manifest: Manifest) -> RegistryDocument | None:
    """The registry that a backup has; None if the backup was taken without --registry. Raises Damaged."""
    return read_attachment(place, manifest, ROLE, RegistryDocument)
