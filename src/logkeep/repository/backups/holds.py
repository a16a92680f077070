"""Expiring holds of readers: a backup is not pruned while a restore, verification or drill reads it.

A reader puts its hold first and then checks that the backup is still there; prune reads the holds before it deletes an
id, and garbage collection again before it deletes objects. The second of two always sees the first.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from logkeep.errors import Damaged, ObjectMissing, StoreDenied, StoreError, UnknownBackup
from logkeep.model.ids import BackupId, StoredId
from logkeep.model.time import TokenSource
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.documents import SourceDocument, read, seal
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.chain.lease import Renewal
from logkeep.repository.chain.owner import Owner

DEFAULT_TTL = timedelta(minutes=30)
_NEVER = datetime.max.replace(tzinfo=UTC)


class HoldDocument(SourceDocument, frozen=True, kw_only=True, tag="reader-hold"):
    id: StoredId
    owner: Owner
    operation: str
    lifetime_s: int
    """How long the hold lasts after it was written, by the store's clock: the clocks of readers and pruners differ."""


@dataclass(frozen=True)
class ReaderHold:
    """A hold as the store shows it."""

    name: str
    backup: BackupId
    expires: datetime
    """When the hold expires, by the store's clock."""
    who: str


def reader_holds(place: SourceRef) -> list[ReaderHold]:
    """All holds of readers, expired ones too. An unreadable one counts as never expiring."""
    found = []
    for info in place.store.list(layout.holds(place.source)):
        placed = layout.placed(info.name)
        if placed is None:
            continue
        try:
            document = read(place.store, info.name, HoldDocument, place.repository)
        except ObjectMissing:
            continue  # removed meanwhile
        except Damaged:
            found.append(ReaderHold(info.name, BackupId(placed.number), _NEVER, f"an unreadable hold, {info.name}"))
            continue
        expires = info.modified + timedelta(seconds=document.lifetime_s)
        found.append(
            ReaderHold(info.name, BackupId(placed.number), expires, f"{document.operation} by {document.owner}")
        )
    return found


def held_ids(holds: Iterable[ReaderHold], store_now: datetime) -> dict[BackupId, str]:
    """Ids that readers hold at a time of the store's clock, and the readers. Pure."""
    return {h.backup: h.who for h in holds if store_now <= h.expires}


@contextmanager
def reading(
    place: SourceRef, backup_id: BackupId, owner: Owner, operation: str, tokens: TokenSource
) -> Iterator[BackupEntry]:
    """Hold a backup while the body reads it; yields its entry. Without write permission there is no hold."""
    name = layout.hold(place.source, backup_id, tokens())
    document = HoldDocument(
        repository=place.repository,
        source=place.source,
        id=backup_id,
        owner=owner,
        operation=operation,
        lifetime_s=int(DEFAULT_TTL.total_seconds()),
    )
    try:
        place.store.put_new(name, seal(document))
    except StoreDenied:
        yield _find_entry(place, backup_id)
        return
    try:
        with Renewal(lambda: _renew(place, name, seal(document)), DEFAULT_TTL.total_seconds() / 3):
            yield _find_entry(place, backup_id)
    finally:
        _drop(place, name)


def _find_entry(place: SourceRef, backup_id: BackupId) -> BackupEntry:
    entry = read_chain(place).entry(backup_id)
    if entry is None:
        raise UnknownBackup(f"backup {backup_id} does not exist any more", subject=place.source)
    return entry


def _renew(place: SourceRef, name: str, data: bytes) -> bool:
    try:
        place.store.replace(name, data, place.store.head(name).version)
    except StoreError:
        return True  # tried again; there are three renewals per lifetime
    return True


def _drop(place: SourceRef, name: str) -> None:
    try:
        place.store.delete(name)
    except StoreError:
        return  # no permission to delete: the hold expires
