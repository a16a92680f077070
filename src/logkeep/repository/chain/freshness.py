"""When somebody last looked at a source, and what the newest backup lacked then.

A run that follows a source commits nothing while nothing changes, so the age of the newest backup says little: what
counts is when it was last seen to equal the source. Advisory: written over and over under one name, read by `status`
alone. No backup, restore, verification or collection ever asks for it; one that is lost or cannot be read means that
no look is known, and a forged one can deceive `status` and nobody else.
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
    """One look at a source."""

    looked: str
    """When; everything that the source held then is in the backup, but for the lag."""
    backup: StoredId
    """The newest backup then."""
    lag_offsets: Position
    """Positions that the source had beyond that backup's cut at the end of the look."""
    next_within_s: int = 3600
    """After so long without another look, nobody knows how things are."""


def put_freshness(place: SourceRef, looked: datetime, backup: int, lag_offsets: int, next_within_s: int = 3600) -> None:
    """Write down a look, over the last one. When somebody else does at the same moment, theirs stands as well."""
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
    """The last look, or None when none is known."""
    try:
        found = read(place.store, layout.freshness(place.source), Freshness, place.repository)
        dated = datetime.fromisoformat(found.looked).tzinfo is not None
    except (ObjectMissing, Damaged, FormatTooNew, ValueError):
        return None
    return found if dated and found.source == place.source else None
