"""Zxids that come twice after a rollback: the restored servers had given them out, and the old data ends before them.

A restore names its snapshot above them; a rollback puts old files back as they are, so nobody can but say it.
"""

from collections.abc import Iterator

from logkeep.errors import TargetUnsafe
from logkeep.formats.zookeeper.names import FileKind, hex_zxid
from logkeep.model.findings import Finding
from logkeep.zookeeper.restore.holding import highest_zxid
from logkeep.zookeeper.restore.journal import Journal
from logkeep.zookeeper.restore.limits import warning
from logkeep.zookeeper.restore.places import Live, Place

_REMEDY = (
    "restart the clients (a server turns away one that has seen a later zxid than its own), and whatever remembers "
    "zxids of nodes"
)


def given_again(journal: Journal) -> Iterator[Finding]:
    """Of a restore that had ended, when it is rolled back. What cannot be read is told too: the data is in place."""
    for place in (each.place() for each in journal.places if journal.was_done):
        try:
            ran, old = highest_zxid(_restored(place, journal.restore), (FileKind.LOG,)), highest_zxid(place.lives)
        except TargetUnsafe as error:
            what = f"how far the restored server had got cannot be found out: {error}"
            yield warning("zxids-reused", what, _REMEDY, where=str(place.data_dir))
            continue
        if ran > old:
            what = f"the restored server had got to {hex_zxid(ran)}, and the old data ends with {hex_zxid(old)}: "
            what += "the zxids in between are given out again"
            yield warning("zxids-reused", what, _REMEDY, where=str(place.data_dir))


def _restored(place: Place, restore: str) -> list[Live]:
    return [Live(live.staged(restore)) for live in place.lives]
