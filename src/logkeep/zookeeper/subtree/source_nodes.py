"""The nodes of a backup's tree at and below a path, with their paths in the live tree. Pure.

Left out and reported: ZooKeeper's own nodes below /zookeeper, ephemeral nodes, and names that are not UTF-8, which no
server accepts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from logkeep.errors import RestoreFailed, UsageError
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.formats.zookeeper.transactions import Acls
from logkeep.zookeeper.model.paths import SYSTEM, in_order, is_system, is_text
from logkeep.zookeeper.model.tree import CONTAINER_OWNER, Node, Tree, is_ephemeral

_TTL_BITS: Final = (1 << 40) - 1


class LeftOutReason(StrEnum):
    SYSTEM = "ZooKeeper keeps /zookeeper for itself"
    ONTO_SYSTEM = "ZooKeeper keeps this path for itself, and the backup has it under another one"
    EPHEMERAL = "a session owned it"
    NO_TEXT = "its name is not UTF-8"
    LIVE_EPHEMERAL = "a session owns a live node of this name"
    BELOW_EPHEMERAL = "a session owns a live node above it"
    HOLDS_EPHEMERAL = "it is extra, and a session owns a node below it"
    EXTRA_EPHEMERAL = "it is extra, and a session owns it: it ends with the session"


@dataclass(frozen=True)
class SkippedNode:
    path: bytes
    """In the live tree."""
    why: LeftOutReason

    @property
    def lost(self) -> bool:
        """Whether the live tree then lacks a node that a full restore would have."""
        return self.why in (
            LeftOutReason.ONTO_SYSTEM,
            LeftOutReason.NO_TEXT,
            LeftOutReason.LIVE_EPHEMERAL,
            LeftOutReason.BELOW_EPHEMERAL,
        )


@dataclass(frozen=True)
class WantedNode:
    data: bytes | None
    acls: Acls
    container: bool = False
    ttl_ms: int | None = None

    @property
    def may_be_gone(self) -> bool:
        """Whether the server may remove it by itself."""
        return self.container or self.ttl_ms is not None


@dataclass(frozen=True)
class WantedSubtree:
    top: bytes
    """In the live tree."""
    nodes: dict[bytes, WantedNode]
    """Parents first."""
    above: dict[bytes, WantedNode]
    """The backup's nodes above the top, parents first, created where missing. Empty if the target path differs."""
    left_out: tuple[SkippedNode, ...]


def wanted_subtree(tree: Tree, path: bytes, target: bytes) -> WantedSubtree:
    """Raises RestoreFailed when the tree has no such node, UsageError for paths of ZooKeeper itself."""
    _check(tree, path, target)
    nodes, left_out = dict[bytes, WantedNode](), list[SkippedNode]()
    for found in sorted(_below(tree, path), key=in_order):
        new = target + found[len(path) :]
        why = _left_out_reason(found, new, tree)
        if why is None:
            nodes[new] = _node(tree.nodes[found])
        elif found == SYSTEM or why is not LeftOutReason.SYSTEM:  # nodes below /zookeeper are not reported one by one
            left_out.append(SkippedNode(new, why))
    upper = {} if path != target else {p: _node(tree.nodes[p]) for p in _ancestors(path)}
    return WantedSubtree(target, nodes, upper, tuple(left_out))


def _check(tree: Tree, path: bytes, target: bytes) -> None:
    for each in (path, target):
        if is_system(each):
            remedy = "name another path; `logkeep zookeeper restore` restores the whole tree"
            raise UsageError("ZooKeeper keeps this path for itself", subject=shown(each), remedy=remedy)
    node = tree.nodes.get(path)
    what = "the backup has no such node" if node is None else "a session owned this node: it cannot be restored"
    if node is None or is_ephemeral(node.owner, tree.sessions):
        remedy = "name another path, or another moment with --to-zxid or --to-time"
        raise RestoreFailed(f"{what}, at {hex_zxid(tree.zxid)}", subject=shown(path), remedy=remedy)


def _below(tree: Tree, path: bytes) -> Iterator[bytes]:
    prefix = path + b"/"
    return (found for found in tree.nodes if found == path or found.startswith(prefix))


def _ancestors(path: bytes) -> list[bytes]:
    """Without the root, which always exists."""
    names = path.split(b"/")[1:-1]
    return [b"/" + b"/".join(names[: n + 1]) for n in range(len(names))]


def _left_out_reason(path: bytes, new: bytes, tree: Tree) -> LeftOutReason | None:
    if is_system(path):
        return LeftOutReason.SYSTEM
    if is_ephemeral(tree.nodes[path].owner, tree.sessions):
        return LeftOutReason.EPHEMERAL
    if is_system(new):
        return LeftOutReason.ONTO_SYSTEM
    return None if is_text(path) else LeftOutReason.NO_TEXT


def _node(node: Node) -> WantedNode:
    if node.owner == CONTAINER_OWNER:
        return WantedNode(node.data, node.acls, container=True)
    return WantedNode(node.data, node.acls, ttl_ms=node.owner & _TTL_BITS if node.owner else None)
