"""Batches of changes, each applied by a server as a whole or not at all, and the state of a batch. Pure.

Sizes are those on the wire. A batch fills at most half of what a server accepts, since a multi can be longer in the
server's log than in the request. A larger change is sent alone. Servers accept no change of ACLs within a multi.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from logkeep.errors import TargetUnsafe
from logkeep.formats.zookeeper import shown
from logkeep.zookeeper.server.client import LiveNode
from logkeep.zookeeper.server.multi_requests import MULTI_BYTES, MultiRequest, multi
from logkeep.zookeeper.subtree.changes import Change, CreateNode, DeleteNode, SetNode, SetNodeAcls, request_of

_MAX_CHANGES: Final = 500
_NO_NODE: Final = -101


class Batch(msgspec.Struct, frozen=True):
    changes: tuple[Change, ...]


class BatchState(StrEnum):
    DONE = "done"
    NOT_DONE = "not done"
    CHANGED = "changed by another client"
    """Whether the batch was applied cannot be decided."""
    DONE_THEN_CHANGED = "done, and some of its nodes were changed by another client since"


def cut_batches(changes: Iterable[Change], jute_maxbuffer: int) -> tuple[Batch, ...]:
    """In the order of the changes. Raises TargetUnsafe for a change that no server with this limit accepts."""
    batches, held, size = list[Batch](), list[Change](), MULTI_BYTES
    for change in changes:
        request = request_of(change)
        _check_size(change, request, jute_maxbuffer)
        full = size + request.part_bytes > jute_maxbuffer // 2 or len(held) == _MAX_CHANGES
        if held and (full or _goes_alone(change) or _goes_alone(held[-1])):
            batches.append(Batch(tuple(held)))
            held, size = [], MULTI_BYTES
        held.append(change)
        size += request.part_bytes
    return (*batches, *((Batch(tuple(held)),) if held else ()))


def _goes_alone(change: Change) -> bool:
    """Also a change of a node that the server may remove by itself: its refusal must not affect other changes."""
    return isinstance(change, SetNodeAcls) or (not isinstance(change, CreateNode) and change.may_be_gone)


def is_gone_by_itself(batch: Batch, code: int) -> bool:
    """Whether the server refused only because it has removed the node itself: then there is nothing left to do."""
    alone = batch.changes[0]
    return code == _NO_NODE and not isinstance(alone, CreateNode) and alone.may_be_gone


def _check_size(change: Change, request: MultiRequest, jute_maxbuffer: int) -> None:
    alone = request.frame_bytes if isinstance(change, SetNodeAcls) else MULTI_BYTES + request.part_bytes
    if alone > jute_maxbuffer:
        raise TargetUnsafe(
            f"its request has {alone} bytes, and jute.maxbuffer is {jute_maxbuffer}",
            subject=shown(change.path),
            remedy="raise jute.maxbuffer of the servers and give the value with --jute-maxbuffer",
        )


def batch_request(batch: Batch) -> MultiRequest:
    parts = [request_of(change) for change in batch.changes]
    return parts[0] if isinstance(batch.changes[0], SetNodeAcls) else multi(parts)


def batch_state(batch: Batch, live: Mapping[bytes, LiveNode]) -> BatchState:
    """Whether a batch was applied, decided from the live tree.

    A server applies all of it or nothing, so one node can prove it for all, also if other nodes were changed since.
    """
    found = {change: _change_state(change, live.get(change.path)) for change in batch.changes}
    if len(set(found.values())) == 1 and not _created_apart(batch, live):
        return found[batch.changes[0]]
    conclusive = {state for change, state in found.items() if not _may_have_gone(change, live.get(change.path))}
    if _written_at_once(found, live) or (_proves_done(found) and BatchState.NOT_DONE not in conclusive):
        return BatchState.DONE_THEN_CHANGED
    # Versions of a node only grow: an unchanged version was not set. A missing node may have been deleted since.
    waiting = any(_is_set_of_known(c) and state is BatchState.NOT_DONE for c, state in found.items())
    return BatchState.NOT_DONE if waiting and BatchState.DONE not in found.values() else BatchState.CHANGED


def changed_by_others(batch: Batch, live: Mapping[bytes, LiveNode]) -> tuple[bytes, ...]:
    """Nodes that differ from what this applied batch left, and that no server changes by itself."""
    mine = (c for c in batch.changes if not _may_have_gone(c, live.get(c.path)))
    return tuple(c.path for c in mine if _change_state(c, live.get(c.path)) is not BatchState.DONE)


def _may_have_gone(change: Change, node: LiveNode | None) -> bool:
    return node is None and isinstance(change, CreateNode) and change.may_be_gone


def created_again(batch: Batch, live: Mapping[bytes, LiveNode]) -> tuple[bytes, ...]:
    """Nodes of an applied batch that another client has deleted and created again since.

    Their versions may be the ones that an undo expects, so the server would not refuse it. All nodes that one multi
    creates have the same czxid, and a node of version 0 has the data that it was created with.
    """
    seen = [(c, live[c.path]) for c in batch.changes if c.path in live and live[c.path].acls]
    first = min((node.czxid for change, node in seen if isinstance(change, CreateNode)), default=0)
    return tuple(change.path for change, node in seen if _is_another(change, node, first))


def _is_another(change: Change, node: LiveNode, created: int) -> bool:
    if isinstance(change, CreateNode):
        return node.czxid != created or (node.version == 0 and node.data != change.data)
    return bool(change.czxid) and node.czxid != change.czxid


def _proves_done(found: Mapping[Change, BatchState]) -> bool:
    """The same node in the next version with our data proves it. A missing or new node may be another client's work."""
    return any(_is_set_of_known(c) and state is BatchState.DONE for c, state in found.items())


def _is_set_of_known(change: Change) -> bool:
    """A set whose node is known by its czxid. The root has czxid 0, and no client can delete it."""
    return isinstance(change, SetNode) and (bool(change.czxid) or not change.path)


def _written_at_once(found: Mapping[Change, BatchState], live: Mapping[bytes, LiveNode]) -> bool:
    """Whether one transaction left two nodes as this batch leaves them: no other client writes the same at once."""
    done = [change.path for change, state in found.items() if state is BatchState.DONE]
    written = Counter(live[path].mzxid for path in done if path in live and live[path].acls)
    return any(nodes > 1 for nodes in written.values())


def _created_apart(batch: Batch, live: Mapping[bytes, LiveNode]) -> bool:
    """Whether several transactions created the nodes of this batch: then another client created some of them."""
    nodes = [live[c.path] for c in batch.changes if isinstance(c, CreateNode) and c.path in live]
    return len({node.czxid for node in nodes if node.acls}) > 1


def _change_state(change: Change, node: LiveNode | None) -> BatchState:
    if node is not None and not node.acls:
        return _state_of_hidden(change)
    if node is not None and not isinstance(change, CreateNode) and _is_another(change, node, 0):
        return BatchState.CHANGED
    if node is None and isinstance(change, SetNode | SetNodeAcls) and change.may_be_gone:
        return BatchState.DONE
    if _is_before(change, node):
        return BatchState.NOT_DONE
    return BatchState.DONE if _is_after(change, node) else BatchState.CHANGED


def _state_of_hidden(change: Change) -> BatchState:
    """Of a node that this session may not read: it exists, and the server's check of versions decides on its ACLs."""
    if isinstance(change, CreateNode):
        return BatchState.DONE
    return BatchState.NOT_DONE if isinstance(change, SetNodeAcls) else BatchState.CHANGED


def _is_before(change: Change, node: LiveNode | None) -> bool:
    if isinstance(change, CreateNode) or node is None:
        return isinstance(change, CreateNode) and node is None
    return change.version == (node.aversion if isinstance(change, SetNodeAcls) else node.version)


def _is_after(change: Change, node: LiveNode | None) -> bool:
    if isinstance(change, DeleteNode) or node is None:
        return isinstance(change, DeleteNode) and node is None
    if isinstance(change, SetNodeAcls):
        return node.aversion == change.version + 1
    version = 0 if isinstance(change, CreateNode) else change.version + 1
    return (node.version, node.data) == (version, change.data)
