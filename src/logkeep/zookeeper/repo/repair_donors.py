"""Find other backups that may have what a damaged one lost.

Donors are chosen by the transactions of their logs and the hashes of their snapshots, from the backups' records. An
object counts once, however many backups share it, and never as its own donor. Whether it fits is decided later, record
by record.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from logkeep.errors import Damaged
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded
from logkeep.zookeeper.model.archived import ArchivedFile, ArchivedLog
from logkeep.zookeeper.repair.donors import may_help
from logkeep.zookeeper.repo.view import ArchiveView, view_of

MAX_DONORS: Final = 32
"""The maximum number of backups that are read for lost records."""


@dataclass(frozen=True)
class DonorBackups:
    views: tuple[ArchiveView, ...] = ()
    """Newest first, each with only the objects that may help."""
    unread: int = 0
    """Number of backups that may help too and were not read."""


def find_donors(place: SourceRef, folded: Folded, view: ArchiveView, damaged: Sequence[ArchivedFile]) -> DonorBackups:
    if not damaged:
        return DonorBackups()
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
        if new and len(found) < MAX_DONORS:
            found.append(other.only(list(new.values())))
        elif new:
            unread += 1
    return DonorBackups(tuple(found), unread)


def _useful(
    other: ArchiveView, damaged: Sequence[ArchivedFile], broken: Container[str]
) -> Iterator[tuple[tuple[str, str, int], ArchivedFile]]:
    """Logs and snapshots that may help, each with a key: its object, its name and its last transaction."""
    everything: list[ArchivedFile] = [*other.snapshots, *other.logs]
    for kept in everything:
        if any(may_help(kept, bad) for bad in damaged):
            token = other.row_of(kept).token
            if token not in broken:
                yield (token, kept.name, kept.last if isinstance(kept, ArchivedLog) else kept.zxid), kept
