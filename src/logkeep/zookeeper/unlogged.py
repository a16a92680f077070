"""What servers change without a transaction: no replay can know it, so nobody may compare it.

Members of an ensemble write what they know of it into /zookeeper/config when they start, and every server counts nodes
and bytes under a quota by itself. Servers make both anew when they load a tree, so a restore needs neither.
"""

from typing import Final

CONFIG: Final = b"/zookeeper/config"
_QUOTAS: Final = b"/zookeeper/quota/"
_COUNTED: Final = b"/zookeeper_stats"


def data_is_unlogged(path: bytes) -> bool:
    return stat_is_unlogged(path) or (path.startswith(_QUOTAS) and path.endswith(_COUNTED))


def stat_is_unlogged(path: bytes) -> bool:
    """Then version, mzxid and mtime say nothing either; the ACL does."""
    return path == CONFIG
