"""Objects with buried offsets: written once, pinned by the commit that names them, compared by every reader."""

from bisect import bisect_left
from collections.abc import Iterable

from logkeep.model.segments import LogName
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import read_pinned
from logkeep.repository.chain.fold import Burial, Folded
from logkeep.repository.object_writer import put_object

_LARGEST = 1 << 30
MANY_BURIALS = 64
"""If a log has more burials than this, they are joined, provided that at most half of them are left."""


def put_burial(place: SourceRef, data: bytes, token: str) -> ObjectRef:
    """Store the runs of one log. They count once a commit names them."""
    name = layout.buried(place.source, token)
    stored = put_object(place.store, name, data, token)
    return ObjectRef(token, stored.size_bytes, stored.sha256)


def read_burial(place: SourceRef, ref: ObjectRef) -> bytes:
    """The object that a commit names. Raises Damaged."""
    name = layout.buried(place.source, ref.token)
    missing, changed = "the buried offsets are missing", "these are not the buried offsets that were committed"
    return read_pinned(place.store, name, ref, min(ref.size, _LARGEST), missing=missing, changed=changed)


def burials_by_log(folded: Folded, backup_id: int, logs: Iterable[LogName]) -> dict[LogName, tuple[Burial, ...]]:
    """The burials that apply to a backup, by log. Logs without burials are left out."""
    found: dict[LogName, list[Burial]] = {}
    for each in folded.burials(backup_id):
        found.setdefault(each.log, []).append(each)
    return {log: tuple(found[log]) for log in logs if log in found}


def alike_burials(folded: Folded, many: int = MANY_BURIALS) -> list[tuple[Burial, ...]]:
    """Burials of one log that can become one, because all kept backups have either all of them or none. Pure.

    Those of a backup that is not decided yet stay as they are: they are forgotten if it fails.
    """
    ids = sorted(entry.id for entry in folded.completed)
    logs: dict[LogName, dict[int, list[Burial]]] = {}
    for each in folded.buried or ():
        if each.first <= folded.last_id:
            logs.setdefault(each.log, {}).setdefault(bisect_left(ids, each.first), []).append(each)
    found = list[tuple[Burial, ...]]()
    for groups in logs.values():
        there = sum(map(len, groups.values()))
        if there > many and 2 * len(groups) <= there:
            found += [tuple(some) for some in groups.values() if len(some) > 1]
    return found
