"""What a completed backup of an application says of it: an attachment of its manifest."""

from typing import Annotated, ClassVar, Final

import msgspec

from logkeep.checkpoint.partition_copy import PartitionCopy
from logkeep.errors import Damaged
from logkeep.model.ids import StoredId
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.manifest import LARGEST_ATTACHMENT, Manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import SourceDocument

ROLE: Final = "application"


class ApplicationRecord(SourceDocument, frozen=True, kw_only=True, tag="application"):
    limit: ClassVar[int] = LARGEST_ATTACHMENT

    id: StoredId
    """The id of the backup and of its checkpoint."""
    application: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}$")]
    name: str
    partitions: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    history: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
    nonce: str
    copies: tuple[PartitionCopy, ...]
    """One for each partition, in order."""


def read_application(place: SourceRef, manifest: Manifest) -> ApplicationRecord:
    """The record of a backup. Raises Damaged."""
    record = read_attachment(place, manifest, ROLE, ApplicationRecord)
    where = f"backup {manifest.id} of {place.source}"
    if record is None:
        raise Damaged("the backup has no record of its application", subject=where)
    if (record.source, record.id) != (place.source, manifest.id):
        raise Damaged("the record belongs to another backup", subject=where)
    if [copy.partition for copy in record.copies] != list(range(record.partitions)):
        raise Damaged("the record does not have one copy of each partition", subject=where)
    return record
