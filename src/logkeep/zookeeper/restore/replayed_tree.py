"""The replayed tree of a restore: whether it is proven, the zxid that servers will report, the bytes to write. Pure."""

from logkeep.errors import RestoreFailed
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.zookeeper.restore.limits import TreeContent
from logkeep.zookeeper.restore.numbers import member_name, standalone_name
from logkeep.zookeeper.restore.target.disk_space import Sizes
from logkeep.zookeeper.restore.values import Form, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import RestorePath
from logkeep.zookeeper.timeline.replay import ReplayedTree, unproven


def check_replayed(path: RestorePath, replayed: ReplayedTree, options: ZooKeeperRestoreOptions) -> None:
    """Raises RestoreFailed for a tree that differs from the server's, or is not proven to be equal."""
    wrong = replayed.first_mismatch
    if wrong is not None and not options.accept_mismatch:
        raise RestoreFailed(
            "the replayed tree differs from the tree that the server had",
            subject=f"zxid {hex_zxid(wrong.zxid)}",
            remedy="verify the backup: a transaction is missing or was changed; restore to an earlier one, or give the "
            "reason to restore it anyway with --accept-mismatch",
        )
    left = unproven(path, replayed)
    if left and not options.believe:
        ends = ", ".join(hex_zxid(border.before) for border in left)
        raise RestoreFailed(
            f"nothing proves that an epoch ended with {ends}",
            subject=f"zxid {hex_zxid(path.until)}",
            remedy="back up more members, restore to a zxid before it, or accept the unproven end",
        )


def name_of(zxid: int, form: Form, highest: int, epoch: int | None) -> int:
    """The zxid that servers will report."""
    if form is Form.ORIGINAL:
        return zxid
    return standalone_name(zxid, highest) if epoch is None else member_name(epoch)


def sizes_of(path: RestorePath, content: TreeContent, form: Form) -> Sizes:
    base = path.base.snapshot
    if form is Form.EXACT:
        return Sizes(content.size_bytes)
    return Sizes(0 if base is None else base.size_bytes, sum(piece.log.size_bytes for piece in path.slices))
