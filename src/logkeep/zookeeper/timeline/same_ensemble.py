"""Are two trees of one past? What an archive ends with is compared with a later snapshot of what should be the same.

Pure. Where a purge was faster than the backups, no record is in both. But every node keeps count: who created it and
when, how often its data was set, how many children it was given, which transaction last changed either. From the
archive's end on these only go forward. Another ensemble has other nodes; data that was restored from before the end
lacks what came between, and its counters have gone back.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from logkeep.formats.zookeeper.snapshot import NodeRow
from logkeep.zookeeper.model.tree import Node, Tree

_SYSTEM = b"/zookeeper"


class _Counters(NamedTuple):
    """What a snapshot says of a node, without its data."""

    czxid: int
    ctime: int
    mzxid: int
    version: int
    pzxid: int
    cversion: int


def same_past(archived: Tree, later: Iterable[NodeRow], last: int, until: int) -> bool:
    """True only with evidence: at least one node of users that both have, and nothing that contradicts.

    `until`: the transaction that the snapshot is named after; what it holds of later ones may be half there.
    """
    found = {
        row.path: _Counters(row.czxid, row.ctime, row.mzxid, row.version, row.pzxid, row.cversion)
        for row in later
        if not row.path.startswith(_SYSTEM)
    }
    new = Counter(_parent(path) for path, seen in found.items() if path and last < seen.czxid <= until)
    old = {path: seen for path, seen in found.items() if seen.czxid <= last}
    goes_on = all(_goes_on(archived.nodes.get(path), seen, last, new[path]) for path, seen in old.items())
    return goes_on and any(old) and _all_explained(archived, old, last)


def _goes_on(node: Node | None, seen: _Counters, last: int, new_children: int) -> bool:
    """Whether a node that was there at the archive's end can have become this one."""
    if node is None or (node.czxid, node.ctime) != (seen.czxid, seen.ctime):
        return False
    if seen.mzxid <= last and (seen.mzxid, seen.version) != (node.mzxid, node.version):
        return False
    if seen.mzxid > last and seen.version <= node.version:
        return False
    if seen.pzxid <= last:
        return (seen.pzxid, seen.cversion) == (node.pzxid, node.cversion)
    return seen.cversion - node.cversion >= new_children  # it counts every child that it was ever given


def _all_explained(archived: Tree, old: Mapping[bytes, _Counters], last: int) -> bool:
    """A node that is gone was deleted since, which its parent remembers, if that is still there."""
    for path in archived.nodes:
        if path in old or path.startswith(_SYSTEM):
            continue
        parent = old.get(_parent(path))
        if parent is not None and parent.pzxid <= last:
            return False
    return True


def _parent(path: bytes) -> bytes:
    return path[: path.rindex(b"/")]
