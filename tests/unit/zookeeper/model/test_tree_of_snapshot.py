"""Trees out of snapshots that were written while transactions went on."""

import pytest

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.snapshot import NodeRow
from logkeep.formats.zookeeper.transactions import Acl, CloseSession, Create, SetAcl, Transaction
from logkeep.zookeeper.model.tree import TTL_MARK, Tree, is_ephemeral, rows_of, tree_of, unresolved

ROOT = NodeRow(b"", b"", -1, *[0] * 9)
SECRET = (Acl(1, b"digest", b"a:b"),)


def row(path: bytes, acl_id: int = -1, owner: int = 0) -> NodeRow:
    return NodeRow(path, b"", acl_id, 5, 5, 0, 0, 0, 0, 0, owner, 5)


def applied(tree: Tree, kind: int, change: Create | SetAcl | CloseSession, session: int = 0) -> Tree:
    tree.apply(Transaction(session, 0, 6, 0, kind, change, None))
    return tree


@pytest.mark.parametrize(("kind", "change"), [(7, SetAcl(b"/a", SECRET, 1)), (1, Create(b"/a", b"", SECRET, False, 1))])
def test_acls_that_came_up_while_it_was_written_are_told_by_the_log(kind: int, change: Create | SetAcl) -> None:
    tree = tree_of({}, {}, [ROOT, row(b"/a", acl_id=7)])
    assert list(unresolved(tree)) == [b"/a"]
    with pytest.raises(Damaged, match="are not in the backup"):
        rows_of(tree)
    applied(tree, kind, change)
    assert list(unresolved(tree)) == []
    assert rows_of(tree)[0] == {1: SECRET}


def test_parents_come_first() -> None:
    assert set(tree_of({}, {}, [ROOT, row(b"/a"), row(b"/a/b")]).nodes) == {b"", b"/a", b"/a/b"}
    for rows in ([ROOT, row(b"/a/b"), row(b"/a")], [row(b"/a"), ROOT], [ROOT, row(b"no-slash/x")]):
        with pytest.raises(Damaged, match="before its parent"):
            tree_of({}, {}, rows)


def test_an_owner_that_is_a_session_is_one_whatever_it_looks_like() -> None:
    """Server 255 gives its sessions ids that look like a time to live."""
    session = TTL_MARK | 1234
    assert not is_ephemeral(session)
    assert is_ephemeral(session, {session})
    tree = tree_of({session: 1000}, {}, [ROOT, row(b"/mine", owner=session), row(b"/ttl", owner=TTL_MARK | 99)])
    applied(tree, -11, CloseSession(None), session)
    assert set(tree.nodes) == {b"", b"/ttl"}
