"""The differences of two trees, node by node. Pure.

Changes that servers make without a transaction are not compared: see `model.tree_compare`.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from logkeep.formats.zookeeper import shown
from logkeep.zookeeper.model.tree import Node, Tree
from logkeep.zookeeper.model.tree_compare import data_is_unlogged, stat_is_unlogged

_STAT: Final = ("czxid", "mzxid", "pzxid", "ctime", "mtime", "version", "cversion", "aversion", "owner")


class DifferenceKind(StrEnum):
    CREATED = "created"
    DELETED = "deleted"
    DATA = "data"
    ACL = "ACL"
    STAT = "stat"


class NodeDifference(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    kinds: tuple[DifferenceKind, ...]
    stat: tuple[str, ...] = ()
    """Names of the fields that differ."""
    bytes_before: int | None = None
    """Size of its data; None if there is no node, or its data is null."""
    bytes_after: int | None = None
    version_before: int | None = None
    version_after: int | None = None
    mzxid_after: int | None = None
    """The transaction that wrote its data; None if it was deleted."""


def differences(before: Tree, after: Tree, below: bytes = b"") -> Iterator[NodeDifference]:
    """In the order of their paths. `below`: only this node and everything below it; the root is empty."""
    for path in sorted(before.nodes.keys() | after.nodes.keys()):
        if path == below or path.startswith(below + b"/"):
            found = _difference(path, before.nodes.get(path), after.nodes.get(path))
            if found is not None:
                yield found


def _difference(path: bytes, before: Node | None, after: Node | None) -> NodeDifference | None:
    if before is None:
        return _node_difference(path, (DifferenceKind.CREATED,), before, after)
    if after is None:
        return _node_difference(path, (DifferenceKind.DELETED,), before, after)
    kinds = list[DifferenceKind]()
    if before.data != after.data and not data_is_unlogged(path):
        kinds.append(DifferenceKind.DATA)
    if before.acls != after.acls:
        kinds.append(DifferenceKind.ACL)
    stat = _stat(path, before, after)
    kinds += [DifferenceKind.STAT] if stat else []
    return _node_difference(path, tuple(kinds), before, after, stat) if kinds else None


def _stat(path: bytes, before: Node, after: Node) -> tuple[str, ...]:
    if stat_is_unlogged(path):
        return ()
    return tuple(name for name in _STAT if getattr(before, name) != getattr(after, name))


def _node_difference(
    path: bytes, kinds: tuple[DifferenceKind, ...], before: Node | None, after: Node | None, stat: tuple[str, ...] = ()
) -> NodeDifference:
    return NodeDifference(
        path=shown(path),
        kinds=kinds,
        stat=stat,
        bytes_before=_size(before),
        bytes_after=_size(after),
        version_before=before.version if before else None,
        version_after=after.version if after else None,
        mzxid_after=after.mzxid if after else None,
    )


def _size(node: Node | None) -> int | None:
    return None if node is None or node.data is None else len(node.data)
