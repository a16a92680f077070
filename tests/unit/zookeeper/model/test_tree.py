"""The tree, where servers of real life do something surprising."""

import zlib

import pytest

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.snapshot import NodeRow
from logkeep.formats.zookeeper.transactions import (
    OPEN_ACL,
    Create,
    CreateSession,
    SetData,
    Transaction,
    TransactionType,
)
from logkeep.zookeeper.model.tree import Tree, new_tree, rows_of, tree_of


def created(
    zxid: int, path: bytes, cversion: int, *, kind: TransactionType = TransactionType.CREATE, digest: int | None = None
) -> Transaction:
    return Transaction(7, 1, zxid, 1000 + zxid, kind, Create(path, b"", OPEN_ACL, False, cversion), digest)


def tree_with(*transactions: Transaction) -> Tree:
    tree = new_tree(with_config=True)
    for transaction in transactions:
        tree.apply(transaction)
    return tree


def test_before_digests_a_server_lowers_the_count_of_children_too() -> None:
    tree = tree_with(created(1, b"/a", 5), created(2, b"/b", 3))
    assert (tree.nodes[b""].cversion, tree.nodes[b""].pzxid) == (3, 2)


def test_with_digests_it_only_raises_it() -> None:
    tree = tree_with(created(1, b"/a", 5, digest=1), created(2, b"/b", 3, digest=1))
    assert (tree.nodes[b""].cversion, tree.nodes[b""].pzxid) == (5, 1)
    assert b"/b" in tree.nodes


def test_a_node_that_a_fuzzy_snapshot_has_already_raises_it_whatever_made_it() -> None:
    tree = tree_with(created(1, b"/a", 1), created(2, b"/b", 2))
    tree.nodes[b""].cversion = 1
    tree.apply(created(2, b"/b", 2, kind=TransactionType.CREATE2))
    assert (tree.nodes[b""].cversion, tree.nodes[b""].pzxid) == (2, 2)


def test_logs_of_the_oldest_versions_count_by_one() -> None:
    tree = tree_with(created(1, b"/a", -1), created(2, b"/b", -1))
    assert tree.nodes[b""].cversion == 2


def test_a_session_changes_no_node() -> None:
    before = new_tree(with_config=True).digest
    assert tree_with(Transaction(7, 1, 1, 1, -10, CreateSession(4000), None)).digest == before


def test_paths_are_counted_in_the_charset_of_the_server() -> None:
    """A server in a plain locale counts a question mark for what its charset cannot say."""
    path = "/größe☃".encode()
    wide, narrow = tree_with(created(1, path, 1)), tree_with(created(1, b"/gr??e?", 1))
    assert wide.digest != narrow.digest
    assert wide.agrees(wide.digest)
    assert wide.agrees(narrow.digest)
    for tree, name in ((wide, path), (narrow, b"/gr??e?")):
        tree.apply(Transaction(7, 1, 2, 5, 5, SetData(name, b"new", 1), None))
    assert wide.digest == narrow.digest, "it stays in that charset"
    back = tree_with(created(1, path, 1), Transaction(7, 1, 2, 5, 5, SetData(path, b"new", 1), None))
    assert wide.agrees(back.digest), "the next server has another one"
    assert not wide.agrees(zlib.crc32(b"something else"))
    assert wide.digest == back.digest


def test_a_tree_of_plain_names_agrees_with_one_digest_only() -> None:
    tree = tree_with(created(1, b"/a", 1))
    assert tree.agrees(tree.digest)
    assert not tree.agrees(tree.digest + 1)


def test_acls_that_a_fuzzy_snapshot_does_not_know_come_with_the_replay() -> None:
    late = NodeRow(b"/late", b"", 75, 9, 9, 0, 0, 0, 0, 0, 0, 9)
    root = NodeRow(b"", b"", -1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    tree = tree_of({}, {}, [root, late])
    with pytest.raises(Damaged, match="ACLs of 1 node"):
        rows_of(tree)
    tree.apply(created(9, b"/late", 1))
    acls, rows = rows_of(tree)
    assert (acls, [row.acl_id for row in rows]) == ({}, [-1, -1])
