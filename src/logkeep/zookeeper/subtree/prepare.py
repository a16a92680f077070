"""Prepare a subtree restore: read the live nodes, plan the changes, cut them into batches. Changes nothing."""

import re
from dataclasses import dataclass
from typing import Final

from logkeep.errors import TargetUnsafe
from logkeep.formats.zookeeper import shown
from logkeep.model.plurals import plural
from logkeep.zookeeper.model.paths import above
from logkeep.zookeeper.model.tree import Tree
from logkeep.zookeeper.server.client import LiveNode, ZooKeeperSession
from logkeep.zookeeper.subtree.batches import Batch, cut_batches
from logkeep.zookeeper.subtree.changes import CreateNode
from logkeep.zookeeper.subtree.plan import SubtreePlan, plan
from logkeep.zookeeper.subtree.source_nodes import wanted_subtree

_OLD: Final = re.compile(r"3\.[0-4](\.|-|$)")
NEVER_RESTORED: Final = (
    "zxids, versions and times: nodes get those of the changes that are made now",
    "counters of sequential nodes: a node that is created anew begins at 0, so numbers can come again",
    "sessions and the nodes that they owned",
    "whether a live node is a container or has a time to live, which no client can see: it stays what it is",
)


@dataclass(frozen=True)
class SubtreeOptions:
    path: bytes
    target: bytes
    delete_extra: bool = False
    proven: bool = False
    """The session has credentials."""
    jute_maxbuffer: int = 0xFFFFF
    version: str = ""
    """Of the servers, if known."""


@dataclass(frozen=True)
class PreparedSubtree:
    planned: SubtreePlan
    batches: tuple[Batch, ...]


def prepare(tree: Tree, session: ZooKeeperSession, options: SubtreeOptions) -> PreparedSubtree:
    """Raises UsageError, RestoreFailed, NotAuthorised for live nodes that may not be read, TargetUnsafe."""
    wanted, live = wanted_subtree(tree, options.path, options.target), _read_live(session, options.target)
    planned = plan(wanted, live, delete_extra=options.delete_extra, proven=options.proven)
    _check_kinds(planned, options.version)
    return PreparedSubtree(planned, cut_batches(planned.changes, options.jute_maxbuffer))


def _read_live(session: ZooKeeperSession, top: bytes) -> dict[bytes, LiveNode]:
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
            f"{plural(len(special), 'node is a container or has', 'nodes are containers or have')} a time to live, "
            f"and the servers are {version}",
            subject=shown(special[0].path),
            remedy="restore to servers of 3.5 or later, or a path without such nodes",
        )
