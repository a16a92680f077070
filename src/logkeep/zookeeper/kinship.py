"""Are two trees of one past? What an archive ends with is compared with a later snapshot of what should be the same.

Pure. Where a purge was faster than the backups, no record is in both. But nodes that were not touched since are: a node
that was created and last changed at or before the archive's end must be there, created by the same transaction at the
same time. Another ensemble, or data that was restored, has other nodes.
"""

from collections.abc import Iterable

from logkeep.formats.zookeeper.snapshot import NodeRow
from logkeep.zookeeper.tree import Tree

_SYSTEM = b"/zookeeper"


def same_past(archived: Tree, later: Iterable[NodeRow], last: int) -> bool:
    """True only with evidence: at least one node of users that both have, and none that differs."""
    shared = 0
    for row in later:
        if row.path == b"" or row.path.startswith(_SYSTEM) or max(row.czxid, row.mzxid) > last:
            continue
        node = archived.nodes.get(row.path)
        if node is None or (node.czxid, node.ctime, node.mzxid) != (row.czxid, row.ctime, row.mzxid):
            return False
        shared += 1
    return shared > 0
