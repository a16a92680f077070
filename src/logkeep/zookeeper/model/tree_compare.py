"""What a tree holds, as one number, without what servers before 3.6 themselves do not agree on.

They count children anew when they replay the window of a fuzzy snapshot: how often a node was given children, and when
that last was, may differ between two of their own snapshots. Everything else may not. Pure.

What servers change without a transaction: no replay can know it, so nobody may compare it.

Members of an ensemble write what they know of it into /zookeeper/config when they start, and every server counts nodes
and bytes under a quota by itself. Servers make both anew when they load a tree, so a restore needs neither.
"""

import struct
import zlib
from typing import Final

from logkeep.zookeeper.model.tree import Tree

_STAT: Final = struct.Struct(">qqqqiiq")
_SYSTEM: Final = b"/zookeeper"
_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF


def content_of(tree: Tree) -> int:
    """Paths, data, ACLs, owners, versions, and who made and changed the data when: all but `/zookeeper`."""
    total = 0
    for path, node in tree.nodes.items():
        if not path.startswith(_SYSTEM):
            stat = _STAT.pack(
                node.czxid, node.mzxid, node.ctime, node.mtime, node.version, node.aversion, node.owner
            )  # fmt: skip
            total += zlib.crc32(
                repr(node.acls).encode(), zlib.crc32(stat, zlib.crc32(node.data or b"", zlib.crc32(path)))
            )
    return total & _MASK


CONFIG: Final = b"/zookeeper/config"
_QUOTAS: Final = b"/zookeeper/quota/"
_COUNTED: Final = b"/zookeeper_stats"


def data_is_unlogged(path: bytes) -> bool:
    return stat_is_unlogged(path) or (path.startswith(_QUOTAS) and path.endswith(_COUNTED))


def stat_is_unlogged(path: bytes) -> bool:
    """Then version, mzxid and mtime say nothing either; the ACL does."""
    return path == CONFIG
