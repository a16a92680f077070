"""How much a source stores in the repository, and how much of it is marked as garbage."""

from collections.abc import Iterable

import msgspec

from logkeep.model.time import Rfc3339, rfc3339
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.upkeep.marks import marked_since, read_marks

MOST_OBJECTS = 100_000
"""Of a source with more objects the first ones are counted: `status` runs every few minutes."""


class StoredSize(msgspec.Struct, frozen=True, kw_only=True):
    """Objects and bytes of a source. Only `prune` can find garbage that is not marked; it reads every manifest."""

    objects: int
    stored_bytes: int
    complete: bool
    """False: there are more. The first 100,000 of each source are counted, and no source that cannot be read."""
    garbage_objects: int
    """Marked by `prune` or `delete`, to be deleted by a later run."""
    garbage_bytes: int
    garbage_marked_at: Rfc3339 | None = None
    """When the first of them was marked."""


def stored_size(place: SourceRef, most_objects: int = MOST_OBJECTS) -> StoredSize:
    """By a listing that ends after the last object that counts. Reads no manifests and no parts."""
    marked = marked_since(read_marks(place))
    found = place.store.some(layout.source_root(place.source), most_objects + 1)
    listed = found[:most_objects]
    garbage = [info for info in listed if info.name in marked]
    return StoredSize(
        objects=len(listed),
        stored_bytes=sum(info.size for info in listed),
        complete=len(found) == len(listed),
        garbage_objects=len(garbage),
        garbage_bytes=sum(info.size for info in garbage),
        garbage_marked_at=rfc3339(min(marked[info.name] for info in garbage)) if garbage else None,
    )


def total_size(sizes: Iterable[StoredSize | None]) -> StoredSize:
    """Of several sources; one that cannot be read has none, and the total is not complete then."""
    every = list(sizes)
    known = [one for one in every if one is not None]
    return StoredSize(
        objects=sum(one.objects for one in known),
        stored_bytes=sum(one.stored_bytes for one in known),
        complete=len(known) == len(every) and all(one.complete for one in known),
        garbage_objects=sum(one.garbage_objects for one in known),
        garbage_bytes=sum(one.garbage_bytes for one in known),
        garbage_marked_at=min((one.garbage_marked_at for one in known if one.garbage_marked_at), default=None),
    )
