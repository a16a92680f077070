"""Finds the live objects of a source: all that an existing backup, an ongoing backup or a reader needs.

A manifest or part that is unreadable stops garbage collection, because the objects it names are unknown. An unreadable
receipt names objects that were written since its backup began, so all of those stay.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from logkeep.errors import Damaged
from logkeep.model.ids import BackupId
from logkeep.repository.backups.catch_ups import catch_up_receipts
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.detached_backup import detached_requests
from logkeep.repository.backups.journal import open_ids, receipts
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.backups.trim_floors import untrimmed
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import PartRef
from logkeep.repository.chain.commits import SourceRef, replacements_ever
from logkeep.repository.chain.documents import read
from logkeep.repository.chain.fold import CatchUp, Folded
from logkeep.repository.parts import tokens
from logkeep.store.base import ObjectInfo

_CLOCK_GRAIN = timedelta(seconds=2)
FAILED_GRACE = timedelta(days=7)
"""Segments of a failed backup may be the only copy of data that the source has deleted: a later run adopts them."""


@dataclass
class LiveObjects:
    """Tokens and directories that must stay."""

    tokens: set[str] = field(default_factory=set)
    """The tokens of data objects and the indexes beside them, and of parts, manifests and attachments."""
    journals: set[BackupId] = field(default_factory=set)
    catch_ups: set[str] = field(default_factory=set)

    all_burials: bool = False
    """A reader may use buried offsets whose objects were joined since it began: all of them stay."""
    unknown_since: datetime | None = None
    """A receipt is unreadable: its objects were written after this time, so all such data objects stay."""

    def holds(self, info: ObjectInfo) -> bool:
        """Whether an object is live."""
        data_token = layout.data_token(info.name)
        token = data_token or layout.document_token(info.name)
        if token is not None and token in self.tokens:
            return True
        if self.all_burials and layout.is_buried(info.name):
            return True
        if data_token and self.unknown_since is not None and info.modified >= self.unknown_since:
            return True
        if layout.catch_up_of(info.name) in self.catch_ups:
            return True
        return layout.in_journal(info.name) and layout.backup_of(info.name) in self.journals


def live_objects(place: SourceRef, folded: Folded, readers: Iterable[BackupId], now: datetime) -> LiveObjects:
    """Find the live objects. Raises Damaged if that is impossible."""
    live, reader = LiveObjects(), PartReader(place)
    live.tokens.update(each.object.token for each in folded.buried or ())
    held = set(readers)
    live.all_burials = bool(held)
    ever = replacements_ever(place) if held or any(one.keep_old for one in folded.replacements) else {}
    for entry in folded.completed:
        # A reader may have begun before the backup was trimmed.
        manifest = read_manifest(place, untrimmed(entry) if entry.id in held else entry)
        live.tokens.add(entry.manifest.token)
        _keep(live, reader, manifest, served_parts(manifest, folded))
        _keep_replaced(live, reader, manifest, _kept_old(manifest, folded, ever, held=entry.id in held))
    for backup_id in held - {BackupId(e.id) for e in folded.completed}:
        _keep_deleted_but_held(live, reader, place, backup_id)
    opened = open_ids(place, folded.last_id)
    for backup_id in [*opened, *_recently_failed(folded, now)]:
        _keep_journal(live, place, backup_id)
    for request in detached_requests(place, opened):
        _keep_since_request(live, place, BackupId(request.id))  # copies that are being written have no receipts yet
    for catch_up in folded.catch_ups or ():
        _keep_catch_up(live, place, catch_up)
    return live


def _keep(live: LiveObjects, reader: PartReader, manifest: Manifest, parts: tuple[PartRef, ...]) -> None:
    live.tokens.update(a.token for a in manifest.attachments)
    if parts:
        live.tokens.update(p.token for p in parts)
        live.tokens.update(tokens(rows_of(reader, manifest, parts)))


def _kept_old(
    manifest: Manifest, folded: Folded, ever: Mapping[str, tuple[PartRef, ...]], *, held: bool
) -> tuple[PartRef, ...]:
    """Replaced parts that must stay: a reader may have begun before, and a repair keeps what it replaced.

    `ever`: all parts that ever replaced each part. Repaired parts may have been merged before.
    """
    kept = {r.old for r in folded.replacements if r.keep_old or held}
    served = (ref for named in manifest.parts for ref in (named, *ever.get(named.token, ())))
    return tuple(ref for ref in dict.fromkeys(served) if ref.token in kept)


def _keep_replaced(live: LiveObjects, reader: PartReader, manifest: Manifest, parts: tuple[PartRef, ...]) -> None:
    """Keep replaced parts and the objects they name.

    An unreadable one has no reader: it was removed before the reader began, or a repair replaced it.
    """
    for part in parts:
        live.tokens.add(part.token)
        with suppress(Damaged):
            _keep(live, reader, manifest, (part,))


def _keep_deleted_but_held(live: LiveObjects, reader: PartReader, place: SourceRef, backup_id: BackupId) -> None:
    """A restore that began before the backup was deleted can finish.

    The folded chain drops replacements that no completed backup needs, so the whole chain is read.
    """
    served_by = replacements_ever(place)
    for info in place.store.list(layout.backup(place.source, backup_id)):
        if not layout.is_manifest(info.name):
            continue
        manifest = read(place.store, info.name, Manifest, place.repository)
        live.tokens.add(layout.document_token(info.name) or "")
        replaced = tuple(p for p in manifest.parts if p.token in served_by)
        _keep_replaced(live, reader, manifest, replaced)
        for token in {p.token for p in replaced}:
            _keep_replaced(live, reader, manifest, served_by[token])
        _keep(live, reader, manifest, tuple(p for p in manifest.parts if p not in replaced))


def _recently_failed(folded: Folded, now: datetime) -> list[BackupId]:
    """Failed backups whose segments a later run may still adopt."""
    newest = folded.completed[-1].id if folded.completed else 0
    return [
        BackupId(f.id)
        for f in folded.failed
        if f.id > newest or now - datetime.fromisoformat(f.recorded) < FAILED_GRACE
    ]


def _keep_catch_up(live: LiveObjects, place: SourceRef, catch_up: CatchUp) -> None:
    damaged: list[str] = []
    for receipt in catch_up_receipts(place, catch_up, damaged):
        live.tokens.update(s.token for s in receipt.segments)
    live.catch_ups.add(catch_up.token)
    if damaged:
        began = place.store.head(layout.commit(place.source, catch_up.generation)).modified - _CLOCK_GRAIN
        live.unknown_since = min(live.unknown_since or began, began)


def _keep_journal(live: LiveObjects, place: SourceRef, backup_id: BackupId) -> None:
    damaged: list[str] = []
    for receipt in receipts(place, backup_id, damaged):
        live.tokens.update(s.token for s in receipt.segments)
    live.journals.add(backup_id)
    if damaged:
        _keep_since_request(live, place, backup_id)


def _keep_since_request(live: LiveObjects, place: SourceRef, backup_id: BackupId) -> None:
    began = place.store.head(layout.request(place.source, backup_id)).modified - _CLOCK_GRAIN
    live.unknown_since = min(live.unknown_since or began, began)
