"""Snapshots of their own that real servers do not start from as they should. Ours to know, theirs to mend.

Before 3.6 they count a multi as processed when its first part is. A snapshot that is begun in that moment bears the
multi's zxid and holds a half of it, and a server that starts from it keeps the half for ever: its tree is not what its
logs say any more, and members of an ensemble differ. (A verification tells it.)

Since 3.6 a snapshot may name an ACL that was new while it was written, and not hold it. A server that meets the node
while it starts exits. (A restore needs no such luck: it replays until the ACL is known.)

Tests that compare trees stay clear of both.
"""

from pathlib import Path

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.errors import Damaged
from logkeep.formats.zookeeper.transactions import Kind, decode
from logkeep.zookeeper.tree import Tree, require_acls
from tests.zookeeper.files import bodies, loaded, snapshots

WHOLE_SINCE = (3, 6)
"""Of multis."""


def make_startable(server: EmbeddedZooKeeper) -> None:
    """Before it starts again: take the newest snapshots away as long as they are such."""
    half = set[int]()
    if server.release.line < WHOLE_SINCE:
        half = {found.zxid for found in map(decode, bodies(server.log_dir)) if found.kind == Kind.MULTI}
    for path in reversed(snapshots(server.data_dir)):
        tree = _tree(path)
        if tree is None:
            continue  # cut when it was killed: it starts from the one before
        if _knows_its_acls(tree) and tree.zxid not in half:
            return
        path.unlink()


def _tree(path: Path) -> Tree | None:
    try:
        return loaded(path)[0]
    except Damaged:
        return None


def _knows_its_acls(tree: Tree) -> bool:
    try:
        require_acls(tree)
    except Damaged:
        return False
    return True
