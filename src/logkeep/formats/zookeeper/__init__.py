"""ZooKeeper's file formats: jute, transaction logs, snapshots. Knows nothing of servers and backups.

Paths, ACL schemes and ids stay bytes, as in the files: digests are computed over these bytes, and a restore must write
them unchanged whatever their encoding is. `shown` converts them to text for display.
"""


def shown(path: bytes) -> str:
    """A path as text; bytes that are not UTF-8 are escaped."""
    return path.decode(errors="backslashreplace") or "/"
