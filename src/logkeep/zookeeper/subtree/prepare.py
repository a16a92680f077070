"""From a replayed tree and a live one to batches: reads the live nodes, changes nothing."""

import re
from dataclasses import dataclass
from typing import Final

from logkeep.errors import TargetUnsafe
from logkeep.formats.zookeeper import shown
from logkeep.zookeeper.model.paths import above
from logkeep.zookeeper.model.tree import Tree
from logkeep.zookeeper.server.client import LiveNode, ZooKeeperSession
from logkeep.zookeeper.subtree.batches import Batch, cut
from logkeep.zookeeper.subtree.changes import CreateNode
from logkeep.zookeeper.subtree.plan import SubtreePlan, plan
from logkeep.zookeeper.subtree.wanted import wanted

_OLD: Final = re.compile(r"3\.[0-4](\.|-|$)")
NEVER_RESTORED: Final = (
    "zxids, versions and times: nodes get those of the changes that are made now",
    "counters of sequential nodes: a node that is created anew begins at 0, so numbers can come again",
    "sessions and the nodes that they owned",
    "whether a live node is a container or has a time to live, which nobody can see: it stays what it is",
)


@dataclass(frozen=True)
class SubtreeWish:
    path: bytes
    target: bytes
    delete_extra: bool = False
    proven: bool = False
    """The session has credentials."""
    jute_maxbuffer: int = 0xFFFFF
    version: str = ""
    """Of the servers, where it is known."""


@dataclass(frozen=True)
class PreparedSubtree:
    planned: SubtreePlan
    batches: tuple[Batch, ...]


def prepare(tree: Tree, session: ZooKeeperSession, wish: SubtreeWish) -> PreparedSubtree:
    """Raises UsageError, RestoreFailed, NotAuthorised for live nodes that may not be read, TargetUnsafe."""
    asked = wanted(tree, wish.path, wish.target)
    planned = plan(asked, _live(session, wish.target), delete_extra=wish.delete_extra, proven=wish.proven)
    _check_kinds(planned, wish.version)
    return PreparedSubtree(planned, cut(planned.changes, wish.jute_maxbuffer))


def _live(session: ZooKeeperSession, top: bytes) -> dict[bytes, LiveNode]:
    upper, path = list[bytes](), top
    while path:
        path = above(path)
        upper.append(path)
    session.catch_up()
    found = {node.path: node for node in session.read_nodes(upper)}
    return found | {node.path: node for node in session.nodes(top)}


def _check_kinds(planned: SubtreePlan, version: str) -> None:
    special = [c for c in planned.changes if isinstance(c, CreateNode) and (c.container or c.ttl_ms is not None)]
    if special and _OLD.match(version):
        raise TargetUnsafe(
            f"{len(special)} nodes are containers or have a time to live, and the servers are {version}",
            subject=shown(special[0].path),
            remedy="restore to servers of 3.5 or later, or a path without such nodes",
        )
