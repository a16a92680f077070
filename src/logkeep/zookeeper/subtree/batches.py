"""Changes in portions that a server carries out as a whole or not at all, and which of them are done. Pure.

Sizes are those on the wire. A portion fills at most half of what a server takes, since what it writes of a multi can be
longer than what it is sent; a change that is larger alone goes alone. Servers take no ACL within a multi.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from logkeep.errors import TargetUnsafe
from logkeep.formats.zookeeper import shown
from logkeep.zookeeper.client import LiveNode
from logkeep.zookeeper.requests import MULTI_BYTES, Request, multi
from logkeep.zookeeper.subtree.changes import Change, CreateNode, DeleteNode, SetNodeAcls, request_of, undone

_MOST_CHANGES: Final = 500


class Batch(msgspec.Struct, frozen=True):
    changes: tuple[Change, ...]


class Standing(StrEnum):
    DONE = "done"
    NOT_DONE = "not done"
    CHANGED = "changed by somebody else"


def cut(changes: Iterable[Change], jute_maxbuffer: int) -> tuple[Batch, ...]:
    """In their order. Raises TargetUnsafe for one that no server with this limit takes."""
    batches, held, size = list[Batch](), list[Change](), MULTI_BYTES
    for change in changes:
        request = request_of(change)
        _check_size(change, request, jute_maxbuffer)
        full = size + request.part_bytes > jute_maxbuffer // 2 or len(held) == _MOST_CHANGES
        if held and (full or isinstance(change, SetNodeAcls) or isinstance(held[-1], SetNodeAcls)):
            batches.append(Batch(tuple(held)))
            held, size = [], MULTI_BYTES
        held.append(change)
        size += request.part_bytes
    return (*batches, *((Batch(tuple(held)),) if held else ()))


def _check_size(change: Change, request: Request, jute_maxbuffer: int) -> None:
    alone = request.frame_bytes if isinstance(change, SetNodeAcls) else MULTI_BYTES + request.part_bytes
    if alone > jute_maxbuffer:
        raise TargetUnsafe(
            f"it takes {alone} bytes to write it, and jute.maxbuffer is {jute_maxbuffer}",
            subject=shown(change.path),
            remedy="raise jute.maxbuffer of the servers and say so with --jute-maxbuffer",
        )


def sent(batch: Batch) -> Request:
    """What goes over the wire for it."""
    parts = [request_of(change) for change in batch.changes]
    return parts[0] if isinstance(batch.changes[0], SetNodeAcls) else multi(parts)


def taken_back(done: Sequence[Batch], jute_maxbuffer: int) -> tuple[Batch, ...]:
    """What undoes these, the last one first."""
    changes = [undone(change) for batch in reversed(done) for change in reversed(batch.changes)]
    return cut(changes, jute_maxbuffer)


def standing(batch: Batch, live: Mapping[bytes, LiveNode]) -> Standing:
    """Of a batch that may have been carried out or not, by what the live tree is now."""
    found = {_standing(change, live.get(change.path)) for change in batch.changes}
    return found.pop() if len(found) == 1 else Standing.CHANGED


def _standing(change: Change, node: LiveNode | None) -> Standing:
    if node is not None and not node.acls:
        return _hidden_standing(change)
    before, after = _before(change, node), _after(change, node)
    return Standing.NOT_DONE if before else Standing.DONE if after else Standing.CHANGED


def _hidden_standing(change: Change) -> Standing:
    """Of a node that only the server may look at: it is there, and the server's own check decides on its ACLs."""
    if isinstance(change, CreateNode):
        return Standing.DONE
    return Standing.NOT_DONE if isinstance(change, SetNodeAcls) else Standing.CHANGED


def _before(change: Change, node: LiveNode | None) -> bool:
    if isinstance(change, CreateNode) or node is None:
        return isinstance(change, CreateNode) and node is None
    return change.version == (node.aversion if isinstance(change, SetNodeAcls) else node.version)


def _after(change: Change, node: LiveNode | None) -> bool:
    if isinstance(change, DeleteNode) or node is None:
        return isinstance(change, DeleteNode) and node is None
    if isinstance(change, SetNodeAcls):
        return node.aversion == change.version + 1
    version = 0 if isinstance(change, CreateNode) else change.version + 1
    return (node.version, node.data) == (version, change.data)
