"""The files of ZooKeeper, byte for byte: jute, transaction logs, snapshots. Knows nothing of servers and backups.

Paths, ACL schemes and ids stay bytes, as they lie in the files: digests are over these bytes, and what one server wrote
must come back the same whatever its encoding was. `shown` turns them into text for people.
"""


def shown(path: bytes) -> str:
    """A path as people read it; bytes that are no UTF-8 are told as such."""
    return path.decode(errors="backslashreplace") or "/"
