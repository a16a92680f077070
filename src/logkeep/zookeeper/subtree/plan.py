"""Plan the changes that make a live subtree equal to the backup's. Pure.

Order: creates and sets, parents first; then, if requested, deletes of extra nodes, children first; ACLs last, so that
they do not block the changes before. A new node with new children gets its own ACLs last too. Until then only this
session may use it; if the session has no credentials, every client may create and delete below it and none may read it.
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
from logkeep.zookeeper.subtree.source_nodes import LeftOutReason, SkippedNode, WantedNode, WantedSubtree

_CREATE: Final = 4
_OURS_ALONE: Final[Acls] = (Acl(31, b"auth", b""),)
_UNREADABLE: Final[Acls] = (Acl(4 | 8 | 16, b"world", b"anyone"),)
_EVERYBODY: Final = (b"world", b"anyone")
_DIGEST: Final = b"digest"
_HIDDEN: Final = b"x"


@dataclass(frozen=True)
class SubtreePlan:
    changes: tuple[Change, ...]
    left_out: tuple[SkippedNode, ...]
    masked: tuple[bytes, ...]
    """Nodes to delete whose ACLs the server shows without hashes: an undo cannot restore these ACLs."""
    extra: int
    """Live nodes that the backup does not have, whether or not they would be deleted."""
    not_compared: tuple[bytes, ...] = ()
    """Nodes whose ACLs the server shows without hashes: whether they are equal to the backup's is not known."""


def plan(wanted: WantedSubtree, live: Mapping[bytes, LiveNode], *, delete_extra: bool, proven: bool) -> SubtreePlan:
    """`live`: the live nodes at, below and above the top. `proven`: the session has credentials."""
    missing_above = {path: node for path, node in wanted.above.items() if path not in live}
    _check_parent(wanted, live, missing_above)
    blocked = list(_blocked_by_sessions(wanted, live))
    unreachable = {each.path for each in blocked}
    nodes = {**missing_above, **{p: node for p, node in wanted.nodes.items() if p not in unreachable}}
    created, inner = _creates(nodes, live, proven=proven)
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
        path for path, node in nodes.items() if path in live and node.acls != live[path].acls == _masked(node.acls)
    )
    return SubtreePlan(changes, (*wanted.left_out, *blocked, *kept), hidden, len(extra), not_compared)


def is_masked(acls: Acls) -> bool:
    """Whether the server left out hashes of passwords, as it does for clients that may not change the ACLs."""
    return any(acl.scheme == _DIGEST and acl.id.rpartition(b":")[2] == _HIDDEN for acl in acls)


def _masked(acls: Acls) -> Acls:
    """ACLs as a server shows them to clients that may not change them."""
    return tuple(_mask(acl) if acl.scheme == _DIGEST else acl for acl in acls)


def _mask(acl: Acl) -> Acl:
    user, colon, _ = acl.id.partition(b":")
    return Acl(acl.perms, acl.scheme, user + colon + _HIDDEN if colon else acl.id)


def _check_parent(wanted: WantedSubtree, live: Mapping[bytes, LiveNode], missing: Mapping[bytes, WantedNode]) -> None:
    if wanted.top and above(wanted.top) not in live and above(wanted.top) not in missing:
        remedy = "create the nodes above it first"
        raise UsageError("there is no node above it in the live tree", subject=shown(wanted.top), remedy=remedy)


def _blocked_by_sessions(wanted: WantedSubtree, live: Mapping[bytes, LiveNode]) -> Iterator[SkippedNode]:
    """Ephemeral nodes cannot have children, and only their sessions should change them."""
    blocked = {path for path in (*wanted.above, *wanted.nodes) if path in live and live[path].owner}
    left_out = {each.path for each in wanted.left_out}
    for path in wanted.nodes:
        if path in blocked:
            yield SkippedNode(path, LeftOutReason.LIVE_EPHEMERAL)
        elif path and (above(path) in blocked or above(path) in left_out):
            blocked.add(path)
            yield SkippedNode(path, LeftOutReason.BELOW_EPHEMERAL)


def _creates(
    nodes: Mapping[bytes, WantedNode], live: Mapping[bytes, LiveNode], *, proven: bool
) -> tuple[dict[bytes, CreateNode], dict[bytes, Acls]]:
    """Nodes to create, and the temporary ACLs of new nodes that get new children."""
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
    """Children first. Ephemeral nodes and the nodes above them are kept: they go with their sessions."""
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


def _acls(
    nodes: Mapping[bytes, WantedNode], live: Mapping[bytes, LiveNode], inner: Mapping[bytes, Acls]
) -> Iterator[SetNodeAcls]:
    for path, node in nodes.items():
        if path in inner:
            yield SetNodeAcls(path, node.acls, 0, inner[path], may_be_gone=node.may_be_gone)
        elif path in live and live[path].acls not in (node.acls, _masked(node.acls)):
            there = live[path]
            yield SetNodeAcls(path, node.acls, there.aversion, there.acls, there.czxid, node.may_be_gone)
