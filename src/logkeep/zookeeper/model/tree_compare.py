"""Which parts of two trees may be compared: what servers change without a log record is left out. Pure.

`content_of` sums up a tree without what servers before 3.6 themselves do not agree on. They count children again when
they replay the window of a fuzzy snapshot: how often a node was given children, and when it last was, may differ
between two of their own snapshots. Everything else may not.

`data_is_unlogged` and `stat_is_unlogged` name what every server changes without a transaction, so that no replay can
know it. Members of an ensemble write its configuration into /zookeeper/config when they start, and every server counts
nodes and bytes under a quota by itself. Servers create both again when they load a tree, so a restore needs neither.
"""

import struct
import zlib
from typing import Final

from logkeep.zookeeper.model.paths import CONFIG, SYSTEM
from logkeep.zookeeper.model.tree import Tree

_QUOTAS: Final = b"/zookeeper/quota/"
_COUNTED: Final = b"/zookeeper_stats"
_STAT: Final = struct.Struct(">qqqqiiq")
_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF


def content_of(tree: Tree) -> int:
    """One number for paths, data, ACLs, owners, versions and the zxids and times of creation and data changes.

    Nodes below `/zookeeper` are left out.
    """
    total = 0
    for path, node in tree.nodes.items():
        if not path.startswith(SYSTEM):
            stat = _STAT.pack(
                node.czxid, node.mzxid, node.ctime, node.mtime, node.version, node.aversion, node.owner
            )  # fmt: skip
            total += zlib.crc32(
                repr(node.acls).encode(), zlib.crc32(stat, zlib.crc32(node.data or b"", zlib.crc32(path)))
            )
    return total & _MASK


def data_is_unlogged(path: bytes) -> bool:
    return stat_is_unlogged(path) or (path.startswith(_QUOTAS) and path.endswith(_COUNTED))


def stat_is_unlogged(path: bytes) -> bool:
    """Whether version, mzxid and mtime are not logged either; the ACL is."""
    return path == CONFIG
