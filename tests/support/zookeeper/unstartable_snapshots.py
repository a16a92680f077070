"""Snapshots of their own that real servers do not start from as they should. Ours to know, theirs to mend.

Before 3.6 they count a multi as processed when its first part is. A snapshot that is begun in that moment bears the
multi's zxid and holds a half of it, and a server that starts from it keeps the half for ever: its tree is not what its
logs say any more, and members of an ensemble differ. (A verification tells it.)

Since 3.6 a snapshot may name an ACL that was new while it was written, and not hold it. A server that has to know it
while it starts exits. (A restore does not: it replays until the ACL is known.)

Tests that compare trees stay clear of both.
"""

from collections.abc import Collection
from pathlib import Path

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.errors import Damaged
from logkeep.formats.zookeeper.transactions import TransactionType, decode
from logkeep.zookeeper.model.tree import Tree, unresolved
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.server_files import bodies, loaded, snapshots
from tests.support.zookeeper.tree_recorder import zxid_of

WHOLE_SINCE = (3, 6)
"""Of multis."""
_CHANGES = 500


def settle(server: EmbeddedZooKeeper) -> None:
    """While nobody else writes: simple changes, until the newest snapshot is whole and was begun among them."""
    began = zxid_of(server.client)
    with raw.RawSession(server.client, password=server.password) as client:
        client.do(raw.create("/settled", b""))
        while not any(tree.zxid >= began for tree in _newest(server.data_dir)):
            client.do(*[raw.set_data("/settled", b"again")] * _CHANGES)


def _newest(data_dir: Path) -> list[Tree]:
    """Of the last two snapshots those that are whole: the last one may be written right now."""
    found = [_tree(path) for path in snapshots(data_dir)[-2:]]
    return [tree for tree in found if tree is not None]


def make_startable(server: EmbeddedZooKeeper) -> None:
    """Of one that was killed: take the snapshots away that are newer than the newest good one, if there is one."""
    half = set[int]()
    if server.release.line < WHOLE_SINCE:
        half = {found.zxid for found in map(decode, bodies(server.log_dir)) if found.kind == TransactionType.MULTI}
    found = snapshots(server.data_dir)
    good = [path for path in found if _is_good(_tree(path), half)]
    for path in found[found.index(good[-1]) + 1 :] if good else ():
        path.unlink()


def _is_good(tree: Tree | None, half: Collection[int]) -> bool:
    return tree is not None and tree.zxid not in half and not unresolved(tree)


def _tree(path: Path) -> Tree | None:
    """None when it is cut."""
    try:
        return loaded(path)[0]
    except Damaged:
        return None
