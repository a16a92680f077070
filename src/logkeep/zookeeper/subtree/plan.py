"""What must change in a live tree so that a subtree is as the backup has it: values in, changes out. Pure.

Order: nodes that are missing and data that differs, parents first; then what is extra, children first, where that was
asked for; ACLs last, so that none of them stands in the way of what comes before. A node that others are created below
gets its own ACL last too; until then only this session may use it, or, for a session that has proven nothing,
everybody may create and delete below it and nobody may read it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from logkeep.errors import UsageError
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.transactions import Acl, Acls
from logkeep.zookeeper.model.paths import above, in_order, is_system
from logkeep.zookeeper.server.client import LiveNode
from logkeep.zookeeper.subtree.changes import Change, CreateNode, DeleteNode, SetNode, SetNodeAcls
from logkeep.zookeeper.subtree.masks import is_masked, masked
from logkeep.zookeeper.subtree.wanted import LeftOutReason, SkippedNode, WantedNode, WantedSubtree

_CREATE: Final = 4
_OURS_ALONE: Final[Acls] = (Acl(31, b"auth", b""),)
_UNREADABLE: Final[Acls] = (Acl(4 | 8 | 16, b"world", b"anyone"),)
_EVERYBODY: Final = (b"world", b"anyone")


@dataclass(frozen=True)
class SubtreePlan:
    changes: tuple[Change, ...]
    left_out: tuple[SkippedNode, ...]
    masked: tuple[bytes, ...]
    """Nodes that would be deleted and whose ACLs the server does not show in full: an undo cannot bring these back."""
    extra: int
    """Live nodes that the backup does not have, whether or not they would be deleted."""
    not_compared: tuple[bytes, ...] = ()
    """Nodes whose ACLs the server shows without hashes, and which are equal or not: only who may change them knows."""


def plan(wanted: WantedSubtree, live: Mapping[bytes, LiveNode], *, delete_extra: bool, proven: bool) -> SubtreePlan:
    """`live`: what there is at and below the top and above it. `proven`: the session has credentials."""
    missing_above = {path: node for path, node in wanted.above.items() if path not in live}
    _check_parent(wanted, live, missing_above)
    in_the_way = list(_in_the_way(wanted, live))
    unreachable = {each.path for each in in_the_way}
    nodes = {**missing_above, **{p: node for p, node in wanted.nodes.items() if p not in unreachable}}
    created, inner = _building(nodes, live, proven=proven)
    extra = [path for path in live if _is_extra(path, wanted)]
    deletes, kept = _deletes(extra, live) if delete_extra else ((), ())
    sets = {
        path: SetNode(path, node.data, there.version, there.data, there.czxid, node.may_be_gone)
        for path, node, there in _differing(nodes, live)
    }
    first = [created.get(path) or sets.get(path) for path in nodes]
    changes = (*(change for change in first if change is not None), *deletes, *_acls(nodes, live, inner))
    hidden = tuple(each.path for each in deletes if is_masked(each.before_acls))
    not_compared = tuple(
        path for path, node in nodes.items() if path in live and _is_unknown(node.acls, live[path].acls)
    )
    return SubtreePlan(changes, (*wanted.left_out, *in_the_way, *kept), hidden, len(extra), not_compared)


def _check_parent(wanted: WantedSubtree, live: Mapping[bytes, LiveNode], missing: Mapping[bytes, WantedNode]) -> None:
    if wanted.top and above(wanted.top) not in live and above(wanted.top) not in missing:
        remedy = "create the nodes above it first"
        raise UsageError("there is no node above it in the live tree", subject=shown(wanted.top), remedy=remedy)


def _in_the_way(wanted: WantedSubtree, live: Mapping[bytes, LiveNode]) -> Iterator[SkippedNode]:
    """Nodes of sessions have no children, and are nobody else's to change."""
    blocked = {path for path in (*wanted.above, *wanted.nodes) if path in live and live[path].owner}
    left_out = {each.path for each in wanted.left_out}
    for path in wanted.nodes:
        if path in blocked:
            yield SkippedNode(path, LeftOutReason.LIVE_EPHEMERAL)
        elif path and (above(path) in blocked or above(path) in left_out):
            blocked.add(path)
            yield SkippedNode(path, LeftOutReason.BELOW_EPHEMERAL)


def _building(
    nodes: Mapping[bytes, WantedNode], live: Mapping[bytes, LiveNode], *, proven: bool
) -> tuple[dict[bytes, CreateNode], dict[bytes, Acls]]:
    """Nodes to create, and for those that others are created below what their ACLs are until the end."""
    missing = [path for path in nodes if path not in live]
    parents = {above(path) for path in missing}
    meanwhile = _OURS_ALONE if proven else _UNREADABLE
    inner = {path: meanwhile for path in missing if path in parents and not _all_may_create(nodes[path].acls)}
    made = {
        path: CreateNode(path, node.data, inner.get(path, node.acls), node.container, node.ttl_ms)
        for path in missing
        if (node := nodes[path])
    }
    return made, inner


def _all_may_create(acls: Acls) -> bool:
    return any(acl.perms & _CREATE and (acl.scheme, acl.id) == _EVERYBODY for acl in acls)


def _differing(
    nodes: Mapping[bytes, WantedNode], live: Mapping[bytes, LiveNode]
) -> Iterator[tuple[bytes, WantedNode, LiveNode]]:
    both = ((path, node, live[path]) for path, node in nodes.items() if path in live)
    return ((path, node, there) for path, node, there in both if there.data != node.data)


def _is_extra(path: bytes, wanted: WantedSubtree) -> bool:
    below = path == wanted.top or path.startswith(wanted.top + b"/")
    return below and bool(path) and path not in wanted.nodes and not is_system(path)


def _deletes(
    extra: Iterable[bytes], live: Mapping[bytes, LiveNode]
) -> tuple[tuple[DeleteNode, ...], tuple[SkippedNode, ...]]:
    """Children first. What a session owns goes with it, and what is above it stays as long."""
    deletes, kept, held = list[DeleteNode](), list[SkippedNode](), set[bytes]()
    for path in sorted(extra, key=in_order, reverse=True):
        node = live[path]
        if node.owner or path in held:
            held.add(above(path))
            kept.append(
                SkippedNode(path, LeftOutReason.EXTRA_EPHEMERAL if node.owner else LeftOutReason.HOLDS_EPHEMERAL)
            )
        else:
            deletes.append(DeleteNode(path, node.version, node.data, node.acls, node.czxid))
    return tuple(deletes), tuple(kept)


def _is_unknown(wanted: Acls, shown: Acls) -> bool:
    return shown != wanted and shown == masked(wanted)


def _acls(
    nodes: Mapping[bytes, WantedNode], live: Mapping[bytes, LiveNode], inner: Mapping[bytes, Acls]
) -> Iterator[SetNodeAcls]:
    for path, node in nodes.items():
        if path in inner:
            yield SetNodeAcls(path, node.acls, 0, inner[path], may_be_gone=node.may_be_gone)
        elif path in live and live[path].acls not in (node.acls, masked(node.acls)):
            there = live[path]
            yield SetNodeAcls(path, node.acls, there.aversion, there.acls, there.czxid, node.may_be_gone)
