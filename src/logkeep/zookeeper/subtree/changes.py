"""Single changes of a live tree: each has the version of the node that it expects, and the values from before. Pure.

`reversed_change` makes the change that undoes one; it expects what the first one left. Live nodes that an undo creates
again are persistent: clients cannot see whether a live node is a container or has a time to live. Nodes that a restore
created itself are created again as what they were.
"""

import msgspec

from logkeep.formats.zookeeper.transactions import Acls
from logkeep.zookeeper.server import multi_requests
from logkeep.zookeeper.server.multi_requests import MultiRequest


class CreateNode(msgspec.Struct, frozen=True, tag="create", omit_defaults=True):
    """The node must not exist, and its parent must."""

    path: bytes
    data: bytes | None
    acls: Acls
    container: bool = False
    ttl_ms: int | None = None

    @property
    def may_be_gone(self) -> bool:
        """Whether the server may have removed it by itself after it was created."""
        return self.container or self.ttl_ms is not None


class SetNode(msgspec.Struct, frozen=True, tag="set", omit_defaults=True):
    path: bytes
    data: bytes | None
    version: int
    before: bytes | None
    czxid: int = 0
    """Identifies the node: one that is deleted and created again counts its versions from 0. No server checks it; it is
    used later to find out whether the change was applied. 0: not known."""
    may_be_gone: bool = False
    """The backup has a container or a node with a time to live at this path: the live node most likely is the same."""


class DeleteNode(msgspec.Struct, frozen=True, tag="delete", omit_defaults=True):
    """The node must have no children."""

    path: bytes
    version: int
    before: bytes | None
    before_acls: Acls
    czxid: int = 0
    may_be_gone: bool = False
    """A container or a node with a time to live: the server may remove it by itself, with the same result."""
    container: bool = False
    ttl_ms: int | None = None
    """The kind of the node, if known. Journals of earlier versions have only `may_be_gone`."""


class SetNodeAcls(msgspec.Struct, frozen=True, tag="acls", omit_defaults=True):
    path: bytes
    acls: Acls
    version: int
    """Of the ACLs, which servers count separately."""
    before: Acls
    czxid: int = 0
    may_be_gone: bool = False


Change = CreateNode | SetNode | DeleteNode | SetNodeAcls


def request_of(change: Change) -> MultiRequest:
    match change:
        case CreateNode(path, data, acls, True):
            return multi_requests.create_container(path, data, acls)
        case CreateNode(path, data, acls, _, int(ttl_ms)):
            return multi_requests.create_with_ttl(path, data, acls, ttl_ms)
        case CreateNode(path, data, acls):
            return multi_requests.create(path, data, acls)
        case SetNode(path, data, version):
            return multi_requests.set_data(path, data, version)
        case DeleteNode(path, version):
            return multi_requests.delete(path, version)
        case SetNodeAcls(path, acls, version):
            return multi_requests.set_acl(path, acls, version)


def reversed_change(change: Change) -> Change:
    match change:
        case CreateNode(path, data, acls):
            kind = change.container, change.ttl_ms
            return DeleteNode(path, 0, data, acls, 0, change.may_be_gone, *kind)
        case SetNode(path, data, version, before, czxid, may_be_gone):
            return SetNode(path, before, version + 1, data, czxid, may_be_gone)
        case DeleteNode(path, _, before, before_acls):
            return CreateNode(path, before, before_acls, change.container, change.ttl_ms)
        case SetNodeAcls(path, acls, version, before, czxid, may_be_gone):
            return SetNodeAcls(path, before, version + 1, acls, czxid, may_be_gone)
