"""A second repository that says of a backup what it likes, with every hash and CRC right: a bug's work."""

import hashlib
import struct
from collections.abc import Callable
from datetime import timedelta

import google_crc32c
import msgspec

from logkeep.formats.kafka.batches import walk
from logkeep.kafka.record.documents import ROLE
from logkeep.model.segments import Segment
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.attachments import put_attachment
from logkeep.repository.backups.backup import FinishedRun, begin
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.write_session import writing
from tests.support.kafka.whole_backups import Archive

Change = Callable[[list[bytes]], list[bytes]]


def tampered(archive: Archive, backup_id: int, place: SourceRef, change: Change, cluster: str = "") -> int:
    """Copy a backup, with the batches of every object changed, perhaps as that of another cluster; its new id."""
    manifest, record = archive.manifest(backup_id), archive.record(backup_id)
    segments = [s for some in archive.segments(backup_id).values() for s in some]
    with writing(place, "backup", utc_now, random_token, timedelta(minutes=5)) as session:
        source = ensure_source(place, "kafka", {"cluster_id": cluster or record.cluster_id}, utc_now())
        ongoing = begin(session, source)
        new = [_copied(archive.place, place, s, change) if s.has_object else s for s in segments]
        told = msgspec.structs.replace(record, repository=place.repository, source=place.source, id=ongoing.id)
        ref = put_attachment(place, ongoing.id, ROLE, told, random_token())
        return ongoing.complete(FinishedRun(cut=manifest.cut, new=new, gaps=manifest.gaps, attachments=(ref,))).id


def _copied(old: SourceRef, new: SourceRef, segment: Segment, change: Change) -> Segment:
    data = old.store.get(layout.segment(old.source, segment), 1 << 30)
    batches = walk(data).batches
    ends = (batches.positions + batches.sizes).tolist()
    changed = b"".join(change([data[a:b] for a, b in zip(batches.positions.tolist(), ends, strict=True)]))
    digest = hashlib.sha256(changed).hexdigest()
    records = int(walk(changed).batches.headers["records"].sum())
    made = msgspec.structs.replace(
        segment,
        stored_bytes=len(changed),
        plain_bytes=len(changed),
        sha256=digest,
        plain_sha256=digest,
        records=records,
    )
    writer = new.store.open_new(layout.segment(new.source, made), len(changed))
    writer.write(changed)
    writer.close()
    return made


def resealed(batch: bytes) -> bytes:
    """A batch whose bytes were changed, with the right CRC-32C."""
    return batch[:17] + struct.pack(">I", google_crc32c.value(batch[21:])) + batch[21:]
