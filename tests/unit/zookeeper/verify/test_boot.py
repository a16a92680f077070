"""A server's tree against ours: only the end of a session explains a difference."""

from logkeep.formats.zookeeper.transactions import OPEN_ACL, Create, SetData, Transaction
from logkeep.zookeeper.model.tree import Tree, is_ephemeral, new_tree
from logkeep.zookeeper.server.client import LiveNode
from logkeep.zookeeper.verify.boot import tree_differences

SESSION = 0x1000_0000_0001


def tree() -> Tree:
    made = new_tree(with_config=True)
    made.apply(Transaction(SESSION, 1, 1, 10, 1, Create(b"/a", b"x", OPEN_ACL, False, 1), None))
    made.apply(Transaction(SESSION, 2, 2, 11, 1, Create(b"/a/e", b"", OPEN_ACL, True, 1), None))
    made.apply(Transaction(SESSION, 3, 3, 12, 5, SetData(b"/a", b"y", 1), None))
    return made


def seen_by_a_client(ours: Tree) -> dict[bytes, LiveNode]:
    def children(path: bytes) -> int:
        return sum(other != b"" and other[: other.rindex(b"/")] == path for other in ours.nodes)

    return {
        path: LiveNode(
            path, node.data, node.acls, node.czxid, node.mzxid, node.ctime, node.mtime, node.version,
            2 * node.cversion - children(path), node.aversion, node.owner if is_ephemeral(node.owner) else 0,
            children(path), node.pzxid,
        )
        for path, node in ours.nodes.items()
    }  # fmt: skip


def test_equal_trees_do_not_differ() -> None:
    assert list(tree_differences(tree(), seen_by_a_client(tree()))) == []


def test_a_session_that_ended_since_explains_its_nodes_and_their_parent() -> None:
    live = seen_by_a_client(tree())
    del live[b"/a/e"]
    parent = live[b"/a"]
    live[b"/a"] = parent._replace(children=0, cversion=parent.cversion + 1, pzxid=9)
    assert list(tree_differences(tree(), live)) == []


def test_every_other_difference_is_told() -> None:
    live = seen_by_a_client(tree())
    live[b"/a"] = live[b"/a"]._replace(data=b"z", version=7)
    live[b"/b"] = live[b"/a"]._replace(path=b"/b")
    del live[b"/zookeeper/quota"]
    assert sorted(tree_differences(tree(), live)) == [
        "/a differs in data, version",
        "/b is in the server's tree only",
        "/zookeeper/quota is not in the server's tree",
    ]


def test_a_child_that_is_gone_without_its_session_is_told() -> None:
    live = seen_by_a_client(tree())
    del live[b"/a/e"]
    live[b"/a"] = live[b"/a"]._replace(children=0)
    assert list(tree_differences(tree(), live)) == ["/a differs in cversion, children"]


def test_what_servers_write_without_a_transaction_is_passed_over() -> None:
    live = seen_by_a_client(tree())
    live[b"/zookeeper/config"] = live[b"/zookeeper/config"]._replace(data=b"server.1", version=-1)
    assert list(tree_differences(tree(), live)) == []
