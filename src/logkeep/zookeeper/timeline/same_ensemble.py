"""Whether a later snapshot continues an archive: compares the tree at the archive's end with it. Pure.

If the server purged its logs before the next backup, no record is in both. But every node has counters: which
transaction created it and when, how often its data was set, how many children it was given, which transaction last
changed either. After the archive's end these only increase. Another ensemble has other nodes; data that was restored
from before the end lacks what came between, and its counters are lower.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from logkeep.formats.zookeeper.snapshot import NodeRow
from logkeep.zookeeper.model.paths import SYSTEM, above
from logkeep.zookeeper.model.tree import Node, Tree


class _Counters(NamedTuple):
    """Counters of a node in a snapshot."""

    czxid: int
    ctime: int
    mzxid: int
    version: int
    pzxid: int
    cversion: int


def same_past(archived: Tree, later: Iterable[NodeRow], last: int, until: int) -> bool:
    """True only with evidence: at least one common node outside /zookeeper, and no contradiction.

    `until`: the transaction that the snapshot is named after; later ones may be in it in part.
    """
    found = {
        row.path: _Counters(row.czxid, row.ctime, row.mzxid, row.version, row.pzxid, row.cversion)
        for row in later
        if not row.path.startswith(SYSTEM)
    }
    new = Counter(above(path) for path, seen in found.items() if path and last < seen.czxid <= until)
    old = {path: seen for path, seen in found.items() if seen.czxid <= last}
    continues = all(_continues(archived.nodes.get(path), seen, last, new[path]) for path, seen in old.items())
    return continues and any(old) and _all_explained(archived, old, last)


def _continues(node: Node | None, seen: _Counters, last: int, new_children: int) -> bool:
    """Whether a node at the archive's end can have become this one."""
    if node is None or (node.czxid, node.ctime) != (seen.czxid, seen.ctime):
        return False
    if seen.mzxid <= last and (seen.mzxid, seen.version) != (node.mzxid, node.version):
        return False
    if seen.mzxid > last and seen.version <= node.version:
        return False
    if seen.pzxid <= last:
        return (seen.pzxid, seen.cversion) == (node.pzxid, node.cversion)
    return seen.cversion - node.cversion >= new_children  # counts every child ever created


def _all_explained(archived: Tree, old: Mapping[bytes, _Counters], last: int) -> bool:
    """A missing node was deleted since, and its parent shows this, if it still exists."""
    for path in archived.nodes:
        if path in old or path.startswith(SYSTEM):
            continue
        parent = old.get(above(path))
        if parent is not None and parent.pzxid <= last:
            return False
    return True
