"""Other backups that may have what a damaged one lost.

Records of backups tell which may: by the transactions of their logs, and by the hashes of their snapshots. An object
counts once, however many backups share it, and never as its own donor. Whether one fits is decided record by record.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from logkeep.errors import Damaged
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.repair.donors import may_help
from logkeep.zookeeper.repo.view import ArchiveView, view_of
from logkeep.zookeeper.timeline.object_check import Kept

MOST_DONORS: Final = 32
"""So many backups are read for records; they all have something of their own that may be what is lost."""


@dataclass(frozen=True)
class Helping:
    views: tuple[ArchiveView, ...] = ()
    """Newest first, each with nothing but what may help."""
    unread: int = 0
    """Backups that may have it too and were not looked at."""


def donors_of(place: SourceRef, folded: Folded, view: ArchiveView, damaged: Sequence[Kept]) -> Helping:
    if not damaged:
        return Helping()
    broken, seen = {view.row_of(kept).token for kept in damaged}, set[tuple[str, str, int]]()
    found, unread = list[ArchiveView](), 0
    for entry in reversed(folded.completed):
        if str(entry.id) == view.name:
            continue
        try:
            other = view_of(place, entry, folded)
        except Damaged:
            unread += 1
            continue
        new = {key: kept for key, kept in _useful(other, damaged, broken) if key not in seen}
        seen |= new.keys()
        if new and len(found) < MOST_DONORS:
            found.append(other.only(list(new.values())))
        elif new:
            unread += 1
    return Helping(tuple(found), unread)


def _useful(
    other: ArchiveView, damaged: Sequence[Kept], broken: Container[str]
) -> Iterator[tuple[tuple[str, str, int], Kept]]:
    """What may help, and what it is told apart by: its object, and where it begins in it."""
    everything: list[Kept] = [*other.snapshots, *other.logs]
    for kept in everything:
        if any(may_help(kept, bad) for bad in damaged):
            token = other.row_of(kept).token
            if token not in broken:
                yield (token, kept.name, kept.last if isinstance(kept, ArchivedLog) else kept.zxid), kept
