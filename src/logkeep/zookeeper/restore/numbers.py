"""The zxid and the epoch of restored data, and the numbers that a rollback makes servers use a second time.

A standalone server counts on from the zxid in the name of its newest snapshot. That name is above every zxid of the
replaced data and above every later zxid of the backup. So no known zxid is used twice, and no client has seen a later
zxid than its server.

Members of an ensemble get an epoch above every epoch that was ever in use. A member that was not restored then loses
every election. The snapshot is named after the beginning of that epoch, so the leader sends such a member the whole
tree. If the snapshot were named after the zxid of its tree, the leader would make a member with later zxids truncate
its log instead, and the member would keep its later snapshots.

A rollback restores old files as they are: it can only report which numbers are used again.
"""

from collections.abc import Iterable, Iterator, Sequence

from logkeep.directories.folder import Folder
from logkeep.errors import OtherOwner, TargetUnsafe
from logkeep.formats.zookeeper.names import FileKind, epoch_of, hex_zxid
from logkeep.model.findings import Finding
from logkeep.zookeeper.restore.limits import warning
from logkeep.zookeeper.restore.target.directories import ServerDirectories
from logkeep.zookeeper.restore.target.journal import RestoreJournal
from logkeep.zookeeper.restore.target.state import epochs_in, highest_zxid
from logkeep.zookeeper.restore.values import HIGHEST_EPOCH

HIGHEST_ZXID = (1 << 63) - 1
_RESTART_CLIENTS = (
    "restart the clients (a server rejects a client that has seen a later zxid than its own), and everything that "
    "stores zxids of nodes"
)
_EVERY_MEMBER = "roll back every member before any of them is started"


def epoch_above(epochs: Iterable[int], zxids: Iterable[int], min_epoch: int) -> int:
    """`epochs`: of epoch files and live servers; `zxids`: of the backup and of all replaced data."""
    found = 1 + max([*epochs, *(epoch_of(zxid) for zxid in zxids), min_epoch, 0])
    if found > HIGHEST_EPOCH:
        by_user = "give --min-epoch the highest epoch that any member has (currentEpoch in version-2)"
        by_files = "find the server or file of the backup with an impossible zxid, and leave it out"
        raise TargetUnsafe(
            f"an epoch above {found - 1} is needed, and there is none",
            remedy=by_user if min_epoch >= HIGHEST_EPOCH else by_files,
        )
    return found


def highest_used(zxid: int, replaced: Iterable[int], archived: Iterable[int]) -> int:
    """The largest zxid that belongs to another tree than the one at `zxid`; 0 where none is known.

    A backup that ends with `zxid` ends with this very tree; replaced data that does may hold another history.
    """
    return max([0, *replaced, *(each for each in archived if each > zxid)])


def standalone_name(zxid: int, highest: int) -> int:
    """The zxid in the name of a standalone server's snapshot; `highest`: the highest used zxid, 0 for none."""
    named = zxid if zxid > highest else highest + 1
    if named >= HIGHEST_ZXID - 1:
        raise TargetUnsafe(
            f"zxids up to {hex_zxid(highest)} are in use, and there is none above",
            remedy="find the file of the backup with an impossible zxid in its name, and leave it out",
        )
    return named


def member_name(epoch: int) -> int:
    """The beginning of the epoch, which no transaction has as its zxid."""
    return epoch << 32


def reused_numbers(journal: RestoreJournal, places: Sequence[ServerDirectories]) -> Iterator[Finding]:
    """Zxids and epochs that come back with a rollback of a completed restore. Unreadable files are findings too: the
    data is in place already."""
    for place in places if journal.was_done else ():
        where = str(place.data_dir)
        try:
            restored = [live.beside(live.staged(journal.restore)) for live in place.lives]
            current = [live.folder for live in place.lives]
            reached, old = highest_zxid(restored, (FileKind.LOG,)), highest_zxid(current)
            epoch, old_epoch = _highest_epoch(restored), _highest_epoch(current)
        except (TargetUnsafe, OtherOwner) as error:
            what = f"the last zxid of the restored server cannot be read: {error}"
            yield warning("zxids-reused", what, _RESTART_CLIENTS, where)
            continue
        if reached > old:
            what = (
                f"the restored server had reached {hex_zxid(reached)}, and the old data ends with {hex_zxid(old)}: "
                "the zxids in between will be used again"
            )
            yield warning("zxids-reused", what, _RESTART_CLIENTS, where)
        if epoch > old_epoch:
            what = (
                f"epoch {old_epoch} is back, the restored member had {epoch}: a member of the ensemble that is not "
                "rolled back has the higher epoch, and its tree replaces all others"
            )
            yield warning("epoch-lowered", what, _EVERY_MEMBER, where)


def _highest_epoch(folders: Iterable[Folder | None]) -> int:
    return max((epoch for folder in folders for epoch in epochs_in(folder)[0]), default=0)
