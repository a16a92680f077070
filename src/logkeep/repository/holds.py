"""Expiring holds of readers: what must not be pruned while a restore, verify or drill is reading it.

A reader puts its hold first and then looks whether the backup is still there; prune looks for holds before it deletes
an id, and sweep again before it deletes objects. Whoever comes second sees the other.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import msgspec

from logkeep.errors import Damaged, ObjectMissing, StoreDenied, StoreError, UnknownBackup
from logkeep.model.ids import BackupId, StoredId
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository import layout
from logkeep.repository.chain import Place, read_chain
from logkeep.repository.documents import SourceDocument, read, seal
from logkeep.repository.fold import BackupEntry
from logkeep.repository.owner import Owner
from logkeep.repository.renewal import Renewal

DEFAULT_TTL = timedelta(minutes=30)
GRACE = timedelta(minutes=10)
"""A hold counts this much longer than it says: the clocks of reader and pruner differ."""


class HoldDocument(SourceDocument, frozen=True, kw_only=True, tag="reader-hold"):
    id: StoredId
    owner: Owner
    operation: str
    expires: str


def held_ids(place: Place, now: datetime) -> dict[BackupId, str]:
    """Ids that readers hold now, with who and until when. A hold that cannot be read counts: better safe."""
    held: dict[BackupId, str] = {}
    for info in place.store.list(layout.holds(place.source)):
        placed = layout.placed(info.name)
        if placed is None:
            continue
        try:
            document = read(place.store, info.name, HoldDocument, place.repository)
        except ObjectMissing:
            continue
        except Damaged:
            held[BackupId(placed.number)] = f"an unreadable hold, {info.name}"
            continue
        if now <= datetime.fromisoformat(document.expires) + GRACE:
            held[BackupId(placed.number)] = f"{document.operation} by {document.owner} until {document.expires}"
    return held


def expired_holds(place: Place, now: datetime) -> list[str]:
    """Names of holds that nobody will renew any more."""
    names = []
    for info in place.store.list(layout.holds(place.source)):
        try:
            document = read(place.store, info.name, HoldDocument, place.repository)
        except (Damaged, ObjectMissing):
            continue
        if now > datetime.fromisoformat(document.expires) + GRACE:
            names.append(info.name)
    return names


@contextmanager
def reading(
    place: Place, backup_id: BackupId, owner: Owner, operation: str, clock: Clock, tokens: TokenSource
) -> Iterator[BackupEntry]:
    """Hold a backup while the body reads it, and give its entry. Where we may not write, read without a hold."""
    name = layout.hold(place.source, backup_id, tokens())
    document = HoldDocument(
        repository=place.repository,
        source=place.source,
        id=backup_id,
        owner=owner,
        operation=operation,
        expires=rfc3339(clock() + DEFAULT_TTL),
    )
    try:
        place.store.put_new(name, seal(document))
    except StoreDenied:
        yield _still_there(place, backup_id)
        return
    try:
        with Renewal(lambda: _renew(place, name, document, clock), DEFAULT_TTL.total_seconds() / 3):
            yield _still_there(place, backup_id)
    finally:
        _drop(place, name)


def _still_there(place: Place, backup_id: BackupId) -> BackupEntry:
    entry = read_chain(place).entry(backup_id)
    if entry is None:
        raise UnknownBackup(f"backup {backup_id} is not there any more", subject=place.source)
    return entry


def _renew(place: Place, name: str, document: HoldDocument, clock: Clock) -> bool:
    try:
        version = place.store.head(name).version
        place.store.replace(
            name, seal(msgspec.structs.replace(document, expires=rfc3339(clock() + DEFAULT_TTL))), version
        )
    except StoreError:
        return True  # tried again at the next turn; three turns fit into one life time
    return True


def _drop(place: Place, name: str) -> None:
    try:
        place.store.delete(name)
    except StoreError:
        return  # a writer without the right to delete: the hold runs out by itself
