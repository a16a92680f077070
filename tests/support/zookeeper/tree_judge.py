"""Our tree held against what an independent client saw of a live server."""

from collections import Counter
from collections.abc import Collection, Mapping

from logkeep.formats.zookeeper import shown
from logkeep.zookeeper.model.tree import Node, Tree, is_ephemeral
from logkeep.zookeeper.model.tree_compare import data_is_unlogged, stat_is_unlogged
from tests.support.zookeeper.tree_recorder import Recording, Seen


def visible(tree: Tree) -> dict[str, Seen]:
    """As clients see it: the server counts deleted children too, and tells no owner that is none."""
    children = Counter(path[: path.rindex(b"/")] for path in tree.nodes if path)
    return {shown(path): _seen(node, children[path]) for path, node in tree.nodes.items()}


def _seen(node: Node, children: int) -> Seen:
    return Seen(
        data=node.data,
        acls=tuple((acl.perms, acl.scheme.decode(), acl.id.decode()) for acl in node.acls),
        czxid=node.czxid,
        mzxid=node.mzxid,
        ctime=node.ctime,
        mtime=node.mtime,
        version=node.version,
        cversion=2 * node.cversion - children,
        aversion=node.aversion,
        owner=node.owner if is_ephemeral(node.owner) else 0,
        data_bytes=len(node.data or b""),
        children=children,
        pzxid=node.pzxid,
    )


def differences(live: Recording, tree: Tree, *, leave_out: Collection[str] = ()) -> list[str]:
    """What is not the same, in words; empty for equal trees. Also when they are not of the same moment."""
    found = [f"zxid {tree.zxid:x} is not {live.zxid:x}"] if tree.zxid != live.zxid else []
    return found + between(visible(tree), live.nodes, leave_out=leave_out)


def between(found: Mapping[str, Seen], wanted: Mapping[str, Seen], *, leave_out: Collection[str] = ()) -> list[str]:
    """The same for two trees as clients see them."""
    ours, theirs = (
        {path: seen for path, seen in logged(nodes).items() if path not in leave_out} for nodes in (found, wanted)
    )
    differing = [f"{path} is missing" for path in theirs.keys() - ours.keys()]
    differing += [f"{path} is too much" for path in ours.keys() - theirs.keys()]
    for path in ours.keys() & theirs.keys():
        if ours[path] != theirs[path]:
            differing.append(f"{path}: {_fields(ours[path], theirs[path])}")
    return differing


def logged(nodes: Mapping[str, Seen]) -> dict[str, Seen]:
    """Without what servers change by themselves."""
    return {path: _logged(path.encode(), seen) for path, seen in nodes.items()}


def _logged(path: bytes, seen: Seen) -> Seen:
    if data_is_unlogged(path):
        seen = seen._replace(data=None, data_bytes=0)
    if stat_is_unlogged(path):
        seen = seen._replace(version=0, mzxid=0, mtime=0)
    return seen


def _fields(ours: Seen, theirs: Seen) -> str:
    pairs = zip(Seen._fields, ours, theirs, strict=True)
    return ", ".join(f"{name} {ours!r:.60} is not {theirs!r:.60}" for name, ours, theirs in pairs if ours != theirs)
