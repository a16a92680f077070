"""The last comparison of a source with its newest backup: when it was, and what the backup lacked.

A run that follows a source commits nothing while nothing changes, so the age of the newest backup says little: what
counts is when it was last compared with the source. Advisory: replaced under one name, read by `status` alone. No
backup, restore, verification or garbage collection uses it. If it is lost or unreadable, no comparison is known; a
forged one misleads only `status`.
"""

from contextlib import suppress
from datetime import datetime

from logkeep.errors import AlreadyExists, Damaged, FormatTooNew, ObjectMissing, VersionMismatch
from logkeep.model.ids import StoredId
from logkeep.model.segments import Position
from logkeep.model.time import rfc3339
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import SourceDocument, read, seal


class Freshness(SourceDocument, frozen=True, kw_only=True, tag="freshness"):
    """One comparison with the source."""

    looked: str
    """When; everything that the source held then is in the backup, except the lag."""
    backup: StoredId
    """The newest backup then."""
    lag_offsets: Position
    """Positions that the source had beyond that backup's cut."""
    next_within_s: int = 3600
    """After this time without another comparison, it is outdated."""


def put_freshness(place: SourceRef, looked: datetime, backup: int, lag_offsets: int, next_within_s: int = 3600) -> None:
    """Replace the last comparison. If another run does so at the same moment, either may win."""
    document = Freshness(
        repository=place.repository,
        source=place.source,
        looked=rfc3339(looked),
        backup=backup,
        lag_offsets=lag_offsets,
        next_within_s=next_within_s,
    )
    name, data = layout.freshness(place.source), seal(document)
    with suppress(AlreadyExists, VersionMismatch):
        try:
            version = place.store.head(name).version
        except ObjectMissing:
            place.store.put_new(name, data)
        else:
            place.store.replace(name, data, version)


def read_freshness(place: SourceRef) -> Freshness | None:
    """The last comparison, or None if none is known."""
    try:
        found = read(place.store, layout.freshness(place.source), Freshness, place.repository)
        dated = datetime.fromisoformat(found.looked).tzinfo is not None
    except (ObjectMissing, Damaged, FormatTooNew, ValueError):
        return None
    return found if dated and found.source == place.source else None
