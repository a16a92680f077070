"""A live tree as values: it takes changes as a server does, all of a batch or none, and counts versions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from logkeep.formats.zookeeper.transactions import Acls
from logkeep.zookeeper.server.client import LiveNode
from logkeep.zookeeper.subtree.batches import Batch
from logkeep.zookeeper.subtree.changes import Change, CreateNode, DeleteNode, SetNode, SetNodeAcls


class Refused(Exception):
    """By the model: a version, a parent or a child is not what the change expects."""


def live(
    path: bytes, data: bytes | None, acls: Acls, *, version: int = 0, aversion: int = 0, owner: int = 0
) -> LiveNode:
    return LiveNode(path, data, acls, 1, 1, 1, 1, version, 0, aversion, owner, 0, 1)


@dataclass
class LiveModel:
    nodes: dict[bytes, LiveNode] = field(default_factory=dict)

    def take(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            before = dict(self.nodes)
            try:
                for change in batch.changes:
                    self._take(change)
            except Refused:
                self.nodes = before
                raise

    def _take(self, change: Change) -> None:
        node = self.nodes.get(change.path)
        if isinstance(change, CreateNode):
            parent = self.nodes.get(change.path[: change.path.rindex(b"/")])
            _demand(node is None and parent is not None and not parent.owner, change)
            self.nodes[change.path] = live(change.path, change.data, change.acls)
            return
        assert node is not None, change
        if isinstance(change, SetNodeAcls):
            _demand(node.aversion == change.version, change)
            self.nodes[change.path] = node._replace(acls=change.acls, aversion=node.aversion + 1)
            return
        _demand(node.version == change.version, change)
        if isinstance(change, DeleteNode):
            _demand(not any(path.startswith(change.path + b"/") for path in self.nodes), change)
            del self.nodes[change.path]
        elif isinstance(change, SetNode):
            self.nodes[change.path] = node._replace(data=change.data, version=node.version + 1)


def _demand(holds: bool, change: Change) -> None:
    if not holds:
        raise Refused(str(change))


def shape(nodes: Mapping[bytes, LiveNode]) -> dict[bytes, tuple[bytes | None, Acls]]:
    """What can be put back: not versions."""
    return {path: (node.data, node.acls) for path, node in nodes.items()}
