"""Single changes of a live tree: each says which version of the node it expects and what was there before. Pure.

`undone` turns one into the change that takes it back, which expects in its turn what the first one left. Live nodes
that are created again are persistent ones: nobody can see of them that they are containers or have a time to live.
Those that a restore made itself come back as what they were.
"""

import msgspec

from logkeep.formats.zookeeper.transactions import Acls
from logkeep.zookeeper.server import multi_requests
from logkeep.zookeeper.server.multi_requests import MultiRequest


class CreateNode(msgspec.Struct, frozen=True, tag="create", omit_defaults=True):
    """It must not be there, and the node above it must."""

    path: bytes
    data: bytes | None
    acls: Acls
    container: bool = False
    ttl_ms: int | None = None

    @property
    def may_be_gone(self) -> bool:
        """When it was created, and somebody looks for it later."""
        return self.container or self.ttl_ms is not None


class SetNode(msgspec.Struct, frozen=True, tag="set", omit_defaults=True):
    path: bytes
    data: bytes | None
    version: int
    before: bytes | None
    czxid: int = 0
    """Which node it was planned for: one that is deleted and created again counts its versions from 0. No server looks
    at it, but who asks later what became of the change does. 0: not known."""
    may_be_gone: bool = False
    """The backup has a container, or a node with a time to live, there: the live one most likely is the same."""


class DeleteNode(msgspec.Struct, frozen=True, tag="delete", omit_defaults=True):
    """It must have no children."""

    path: bytes
    version: int
    before: bytes | None
    before_acls: Acls
    czxid: int = 0
    may_be_gone: bool = False
    """A container, or a node with a time to live: the server removes it in its own time, and that is as good."""
    container: bool = False
    ttl_ms: int | None = None
    """What it was, where that is known. Journals of former versions say only that it may be gone."""


class SetNodeAcls(msgspec.Struct, frozen=True, tag="acls", omit_defaults=True):
    path: bytes
    acls: Acls
    version: int
    """Of the ACLs, which servers count apart."""
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


def undone(change: Change) -> Change:
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
