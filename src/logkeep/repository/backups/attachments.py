"""Attachments: documents of one kind of source, stored beside a manifest and pinned by it.

A packed attachment is the sealed document in zstd frames of at most 2 MiB, which `zstd -d` turns back into it. Its
reference states the size of the document: before anything is unpacked, that size is compared with the limit of its
type, and the frames may state no more in total.
"""

import hashlib

from logkeep.errors import Damaged
from logkeep.formats.zstd_frames import FRAME_BYTES, packed_frame
from logkeep.formats.zstd_reader import opened_document, unpacked_frames
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.repository.backups.manifest import AttachmentRef, Manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import DocumentT, SourceDocument, open_in_place, read_pinned, seal
from logkeep.repository.object_writer import put_object


def put_attachment(
    place: SourceRef, backup_id: BackupId, role: str, document: SourceDocument, token: str
) -> AttachmentRef:
    """Store a document for an ongoing backup; it is valid once the manifest names the reference."""
    data = seal(document)
    place.store.put_new(layout.attachment(place.source, backup_id, role, token), data)
    return AttachmentRef(role, token, len(data), hashlib.sha256(data).hexdigest())


def put_packed_attachment(
    place: SourceRef, backup_id: BackupId, role: str, document: SourceDocument, token: str
) -> AttachmentRef:
    """The same, packed. The repository must require the feature `packed-records` by now."""
    plain = memoryview(seal(document))
    data = b"".join(packed_frame(plain[at : at + FRAME_BYTES]) for at in range(0, len(plain), FRAME_BYTES))
    place.store.put_new(layout.attachment(place.source, backup_id, role, token, Codec.ZSTD), data)
    return AttachmentRef(role, token, len(data), hashlib.sha256(data).hexdigest(), Codec.ZSTD, len(plain))


def stream_attachment(
    place: SourceRef, backup_id: BackupId, role: str, document: SourceDocument, token: str
) -> AttachmentRef:
    """The same for documents with archived data: many megabytes, whose length is compared with what the store kept."""
    plain, name = seal(document), layout.attachment(place.source, backup_id, role, token, Codec.ZSTD)
    stored = put_object(place.store, name, plain, token, Codec.ZSTD)
    return AttachmentRef(role, token, stored.size_bytes, stored.sha256, Codec.ZSTD, stored.plain_bytes)


def read_attachment(place: SourceRef, manifest: Manifest, role: str, kind: type[DocumentT]) -> DocumentT | None:
    """The attachment with this role; None if the backup has none. Raises Damaged."""
    ref = next((a for a in manifest.attachments if a.role == role), None)
    if ref is None:
        return None
    name = layout.attachment(place.source, BackupId(manifest.id), role, ref.token, ref.codec)
    missing, changed = "the attachment is missing", "it is not the attachment that was committed"
    data = read_pinned(place.store, name, ref, kind.limit, missing=missing, changed=changed)
    if ref.packed:
        data = _unpacked(data, ref, kind.limit, name)
    return open_in_place(data, name, kind, place.repository)


def _unpacked(data: bytes, ref: AttachmentRef, limit: int, name: str) -> bytes:
    if ref.codec is not Codec.ZSTD:
        raise Damaged(f"no attachment is packed with {ref.codec}", subject=name)
    if ref.plain_size > limit:
        raise Damaged(f"the document has {ref.plain_size} bytes; the limit is {limit}", subject=name)
    plain = b"".join(unpacked_frames(iter((data,)), ref.plain_size, name, opened_document))
    if len(plain) != ref.plain_size:
        raise Damaged(f"it holds {len(plain)} bytes instead of {ref.plain_size}", subject=name)
    return plain
