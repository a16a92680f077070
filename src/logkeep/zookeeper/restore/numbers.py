"""Under which zxid and epoch restored data comes back. Pure.

A server that stands alone goes on counting behind the name of its newest snapshot: the name lies above everything that
the replaced data held, and above everything later that the backup holds, so that no zxid that is known of is given out
twice and no client has seen a later one than its server.

Members of an ensemble get an epoch above every epoch that was ever in use. A member that was forgotten, with its old
data, then loses every election; and since the snapshot is named after the beginning of that epoch, the forgotten member
is behind it and is sent the whole tree. Were the snapshot named after the zxid of its tree, a member with later zxids
would be told to cut its log instead, which leaves it with whatever later snapshot it has.
"""

from collections.abc import Iterable

from logkeep.errors import TargetUnsafe
from logkeep.formats.zookeeper.names import epoch_of, hex_zxid

HIGHEST_ZXID = (1 << 63) - 1
_LARGEST_EPOCH = (1 << 31) - 2


def is_absurd(epoch: int) -> bool:
    """Whether no epoch lies above it, so that no server can have got there by counting."""
    return epoch >= _LARGEST_EPOCH


def epoch_above(epochs: Iterable[int], zxids: Iterable[int], min_epoch: int) -> int:
    """`epochs`: of epoch files and live servers; `zxids`: of the backup and of everything that is replaced."""
    found = 1 + max([*epochs, *(epoch_of(zxid) for zxid in zxids), min_epoch, 0])
    if found > _LARGEST_EPOCH:
        by_word = "give --min-epoch the highest epoch that any member has (currentEpoch in version-2)"
        by_numbers = "look which server or file of the backup has an absurd zxid, and leave it out"
        raise TargetUnsafe(
            f"an epoch above {found - 1} is needed, and there is none",
            remedy=by_word if is_absurd(min_epoch) else by_numbers,
        )
    return found


def highest_used(zxid: int, replaced: Iterable[int], archived: Iterable[int]) -> int:
    """The largest zxid that stands for another tree than the one at `zxid`; 0 where none is known of.

    A backup that ends with `zxid` ends with this very tree; replaced data that does may hold another history.
    """
    return max([0, *replaced, *(each for each in archived if each > zxid)])


def lone_name(zxid: int, highest: int) -> int:
    """The name of the snapshot of a server that stands alone; `highest`: that was used, 0 for none."""
    named = zxid if zxid > highest else highest + 1
    if named >= HIGHEST_ZXID - 1:
        raise TargetUnsafe(
            f"zxids up to {hex_zxid(highest)} are in use, and none lies above",
            remedy="look which file of the backup has an absurd zxid in its name, and leave it out",
        )
    return named


def member_name(epoch: int) -> int:
    """The beginning of the epoch, which is no transaction's zxid."""
    return epoch << 32
