"""Taking the sessions out of a tree, together with all that lived only as long as they did."""

from dataclasses import dataclass

from logkeep.zookeeper.model.tree import Tree

_MASK = 0xFFFF_FFFF_FFFF_FFFF


@dataclass(frozen=True)
class Dropped:
    sessions: int = 0
    ephemerals: int = 0


def drop_sessions(tree: Tree) -> Dropped:
    """Changes the tree. Nothing else of it changes: no transaction says that they went."""
    paths = [path for of_session in tree.ephemerals.values() for path in of_session]
    for path in paths:
        tree.digest = (tree.digest - tree.nodes.pop(path).digest) & _MASK
    dropped = Dropped(len(tree.sessions), len(paths))
    tree.ephemerals.clear()
    tree.sessions.clear()
    return dropped
