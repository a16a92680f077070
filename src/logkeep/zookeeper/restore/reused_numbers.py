"""Numbers that a rollback goes back behind: zxids that come twice, and an epoch that members may have who stay.

A restore names its snapshot above all zxids; a rollback puts old files back as they are, so nobody can but say it.
"""

from collections.abc import Iterable, Iterator

from logkeep.errors import TargetUnsafe
from logkeep.formats.zookeeper.names import FileKind, hex_zxid
from logkeep.model.findings import Finding
from logkeep.zookeeper.restore.journal import RestoreJournal
from logkeep.zookeeper.restore.limits import warning
from logkeep.zookeeper.restore.target_dirs import LiveDirectory, ServerDirectories
from logkeep.zookeeper.restore.target_state import epochs_in, highest_zxid

_REMEDY = (
    "restart the clients (a server turns away one that has seen a later zxid than its own), and whatever remembers "
    "zxids of nodes"
)

_EVERY_MEMBER = "roll back every member before any of them is started"


def given_again(journal: RestoreJournal) -> Iterator[Finding]:
    """Of a restore that had ended, when it is rolled back. What cannot be read is told too: the data is in place."""
    for place in (each.place() for each in journal.places if journal.was_done):
        try:
            restored = _restored(place, journal.restore)
            ran, old = highest_zxid(restored, (FileKind.LOG,)), highest_zxid(place.lives)
            epochs = _epochs(restored), _epochs(place.lives)
        except TargetUnsafe as error:
            what = f"how far the restored server had got cannot be found out: {error}"
            yield warning("zxids-reused", what, _REMEDY, where=str(place.data_dir))
            continue
        if ran > old:
            what = f"the restored server had got to {hex_zxid(ran)}, and the old data ends with {hex_zxid(old)}: "
            what += "the zxids in between are given out again"
            yield warning("zxids-reused", what, _REMEDY, where=str(place.data_dir))
        if epochs[0] > epochs[1]:
            what = (
                f"epoch {epochs[1]} is back, the restored member had {epochs[0]}: of an ensemble, one member that is "
            )
            what += "not rolled back has the higher epoch, and its tree wins over all others"
            yield warning("epoch-lowered", what, _EVERY_MEMBER, where=str(place.data_dir))


def _epochs(lives: Iterable[LiveDirectory]) -> int:
    """The highest; 0 where there is none."""
    return max((epoch for live in lives for epoch in epochs_in(live)[0]), default=0)


def _restored(place: ServerDirectories, restore: str) -> list[LiveDirectory]:
    return [LiveDirectory(live.staged(restore)) for live in place.lives]
