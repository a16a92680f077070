"""Whether the data that a rollback puts back is still beside the restored one: before anything is moved. Reads names.

Without it a rollback would leave an empty `version-2`, on which a server starts with an empty tree.
"""

from pathlib import Path

from logkeep.errors import TargetUnsafe
from logkeep.zookeeper.restore.holding import OF_NOTHING
from logkeep.zookeeper.restore.journal import JournalPlace, Phase, RestoreJournal


def check_old_data(journal: RestoreJournal) -> None:
    """Raises TargetUnsafe where somebody took it away. In the other phases part of it is in `version-2`."""
    if journal.phase not in (Phase.NEW, Phase.DONE):
        return
    gone = [path for place in journal.places for path in _gone(place, journal.restore)]
    if gone:
        raise TargetUnsafe(
            "the old data is gone: nothing is there to put back in place",
            subject=", ".join(map(str, gone)),
            remedy="if it was moved, move it back there and roll back again; if it was deleted, the restored data is "
            "all there is: leave it (--continue ends an interrupted restore), or restore a backup",
        )


def _gone(place: JournalPlace, restore: str) -> list[Path]:
    """Directories that must hold old files, and do not."""
    without = {*place.made, *(place.empty or ())}
    wanted = [live.kept(restore) for live in place.place().lives if str(live.path) not in without]
    gone = [path for path in wanted if not (path.is_dir() and any(path.iterdir()))]
    if place.empty is None and (place.fingerprint == OF_NOTHING or len(gone) < len(wanted)):
        return []  # a journal that does not tell: a directory of which nothing is left may have been empty
    return gone
