"""A restore that was interrupted between the old data and the new: nothing is planned on top of it. Reads journals."""

from collections.abc import Iterable, Iterator

from logkeep.errors import TargetUnsafe
from logkeep.zookeeper.restore.journal import Phase, read_journal
from logkeep.zookeeper.restore.places import ServerDirectories


def unfinished(places: Iterable[ServerDirectories]) -> Iterator[TargetUnsafe]:
    for place in places:
        journal = read_journal(place.data_dir)
        if journal is not None and journal.phase in (Phase.OLD, Phase.NEW):
            yield interrupted(journal.restore, place)


def interrupted(restore: str, place: ServerDirectories) -> TargetUnsafe:
    what = f"restore {restore} was interrupted between the old data and the new"
    return TargetUnsafe(what, subject=str(place.data_dir), remedy="continue it or roll it back first")
