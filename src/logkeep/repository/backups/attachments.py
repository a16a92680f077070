"""Attachments: documents of one kind of source, stored beside a manifest and pinned by it."""

import hashlib

from logkeep.errors import Damaged, ObjectMissing
from logkeep.model.ids import BackupId
from logkeep.repository.backups.manifest import AttachmentRef, Manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import DocumentT, SourceDocument, open_in_place, seal


def put_attachment(
    place: SourceRef, backup_id: BackupId, role: str, document: SourceDocument, token: str
) -> AttachmentRef:
    """Store a document for an ongoing backup; it is valid once the manifest names the reference."""
    data = seal(document)
    place.store.put_new(layout.attachment(place.source, backup_id, role, token), data)
    return AttachmentRef(role, token, len(data), hashlib.sha256(data).hexdigest())


def read_attachment(place: SourceRef, manifest: Manifest, role: str, kind: type[DocumentT]) -> DocumentT | None:
    """The attachment with this role; None if the backup has none. Raises Damaged."""
    ref = next((a for a in manifest.attachments if a.role == role), None)
    if ref is None:
        return None
    name = layout.attachment(place.source, BackupId(manifest.id), role, ref.token)
    try:
        data = place.store.get(name, kind.limit)
    except ObjectMissing as error:
        raise Damaged("the attachment is missing", subject=name) from error
    if len(data) != ref.size or hashlib.sha256(data).hexdigest() != ref.sha256:
        raise Damaged("it is not the attachment that was committed", subject=name)
    return open_in_place(data, name, kind, place.repository)
