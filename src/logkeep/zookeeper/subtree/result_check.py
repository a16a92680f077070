"""Read the changed nodes again at the end of a run, and compare them with what the run should have left."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from logkeep.formats.zookeeper.transactions import Acls
from logkeep.zookeeper.server.client import LiveNode, ZooKeeperSession
from logkeep.zookeeper.subtree.batches import Batch
from logkeep.zookeeper.subtree.changes import CreateNode, DeleteNode, SetNode
from logkeep.zookeeper.subtree.plan import is_masked


@dataclass(frozen=True)
class ExpectedNode:
    """Attributes that the run did not set are None. For data, which may be null, `says_data` is False."""

    gone: bool = False
    says_data: bool = False
    data: bytes | None = None
    acls: Acls | None = None
    may_be_gone: bool = False
    """The server removes it by itself."""


@dataclass(frozen=True)
class SubtreeCheck:
    nodes: int
    """Number of nodes that were compared."""
    unreadable: tuple[bytes, ...]
    differing: tuple[bytes, ...]
    """Another client has changed these since."""


def expected_nodes(batches: Iterable[Batch]) -> dict[bytes, ExpectedNode]:
    """By path. Pure."""
    found: dict[bytes, ExpectedNode] = {}
    for batch in batches:
        for change in batch.changes:
            known = found.get(change.path, ExpectedNode())
            match change:
                case CreateNode(path, data, acls):
                    found[path] = ExpectedNode(says_data=True, data=data, acls=acls, may_be_gone=change.may_be_gone)
                case SetNode(path, data):
                    limited = known.may_be_gone or change.may_be_gone
                    found[path] = ExpectedNode(says_data=True, data=data, acls=known.acls, may_be_gone=limited)
                case DeleteNode(path):
                    found[path] = ExpectedNode(gone=True)
                case _:
                    limited = known.may_be_gone or change.may_be_gone
                    found[change.path] = replace(known, gone=False, acls=change.acls, may_be_gone=limited)
    return found


def is_as_expected(wanted: ExpectedNode, node: LiveNode | None) -> bool:
    if wanted.gone or node is None:
        return node is None and (wanted.gone or wanted.may_be_gone)
    data = not wanted.says_data or wanted.data == node.data
    return data and wanted.acls in (None, node.acls)


def check_result(session: ZooKeeperSession, batches: Iterable[Batch]) -> SubtreeCheck:
    wanted = expected_nodes(batches)
    session.catch_up()
    live = {node.path: node for node in session.read_nodes(list(wanted))}
    unreadable = {path for path, node in live.items() if not node.acls or is_masked(node.acls)}
    differing = [p for p, each in wanted.items() if p not in unreadable and not is_as_expected(each, live.get(p))]
    return SubtreeCheck(len(wanted) - len(unreadable), tuple(unreadable), tuple(differing))
