"""Changes in portions that a server carries out as a whole or not at all, and which of them are done. Pure.

Sizes are those on the wire. A portion fills at most half of what a server takes, since what it writes of a multi can be
longer than what it is sent; a change that is larger alone goes alone. Servers take no ACL within a multi.
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

_MOST_CHANGES: Final = 500
_NO_NODE: Final = -101


class Batch(msgspec.Struct, frozen=True):
    changes: tuple[Change, ...]


class BatchState(StrEnum):
    DONE = "done"
    NOT_DONE = "not done"
    CHANGED = "changed by somebody else"
    """Of a batch: nobody can tell whether it was carried out."""
    DONE_THEN_CHANGED = "done, and some of its nodes were changed by somebody else since"


def cut(changes: Iterable[Change], jute_maxbuffer: int) -> tuple[Batch, ...]:
    """In their order. Raises TargetUnsafe for one that no server with this limit takes."""
    batches, held, size = list[Batch](), list[Change](), MULTI_BYTES
    for change in changes:
        request = request_of(change)
        _check_size(change, request, jute_maxbuffer)
        full = size + request.part_bytes > jute_maxbuffer // 2 or len(held) == _MOST_CHANGES
        if held and (full or _goes_alone(change) or _goes_alone(held[-1])):
            batches.append(Batch(tuple(held)))
            held, size = [], MULTI_BYTES
        held.append(change)
        size += request.part_bytes
    return (*batches, *((Batch(tuple(held)),) if held else ()))


def _goes_alone(change: Change) -> bool:
    """Also what may be refused for a node that is gone by itself: nothing else must be refused with it."""
    return isinstance(change, SetNodeAcls) or (not isinstance(change, CreateNode) and change.may_be_gone)


def is_gone_by_itself(batch: Batch, code: int) -> bool:
    """Whether a server's refusal says only that the server has removed the node: then there is nothing left to do."""
    alone = batch.changes[0]
    return code == _NO_NODE and not isinstance(alone, CreateNode) and alone.may_be_gone


def _check_size(change: Change, request: MultiRequest, jute_maxbuffer: int) -> None:
    alone = request.frame_bytes if isinstance(change, SetNodeAcls) else MULTI_BYTES + request.part_bytes
    if alone > jute_maxbuffer:
        raise TargetUnsafe(
            f"it takes {alone} bytes to write it, and jute.maxbuffer is {jute_maxbuffer}",
            subject=shown(change.path),
            remedy="raise jute.maxbuffer of the servers and say so with --jute-maxbuffer",
        )


def sent(batch: Batch) -> MultiRequest:
    """What goes over the wire for it."""
    parts = [request_of(change) for change in batch.changes]
    return parts[0] if isinstance(batch.changes[0], SetNodeAcls) else multi(parts)


def standing(batch: Batch, live: Mapping[bytes, LiveNode]) -> BatchState:
    """Of a batch that may have been carried out or not, by what the live tree is now.

    A server does all of it or nothing, so one node can prove it for all, whatever became of the others since.
    """
    found = {change: _standing(change, live.get(change.path)) for change in batch.changes}
    if len(set(found.values())) == 1 and not _made_apart(batch, live):
        return found[batch.changes[0]]
    telling = {stands for change, stands in found.items() if not _may_have_gone(change, live.get(change.path))}
    if _made_at_once(found, live) or (_proves_done(found) and BatchState.NOT_DONE not in telling):
        return BatchState.DONE_THEN_CHANGED
    # Versions of one node never go back: what waits to be set was not set. What is missing may have been deleted since.
    waiting = any(_is_set_of_known(c) and stands is BatchState.NOT_DONE for c, stands in found.items())
    return BatchState.NOT_DONE if waiting and BatchState.DONE not in found.values() else BatchState.CHANGED


def foreign(batch: Batch, live: Mapping[bytes, LiveNode]) -> tuple[bytes, ...]:
    """Nodes that are not as this batch left them, which was carried out, and that no server changes by itself."""
    mine = (c for c in batch.changes if not _may_have_gone(c, live.get(c.path)))
    return tuple(c.path for c in mine if _standing(c, live.get(c.path)) is not BatchState.DONE)


def _may_have_gone(change: Change, node: LiveNode | None) -> bool:
    return node is None and isinstance(change, CreateNode) and change.may_be_gone


def created_again(batch: Batch, live: Mapping[bytes, LiveNode]) -> tuple[bytes, ...]:
    """Nodes of a batch that was carried out, and that somebody has deleted and created again since.

    Their versions may be what an undo expects, so no server would refuse it. What one multi creates has one czxid; and
    a node of version 0 has the data that it was created with.
    """
    seen = [(c, live[c.path]) for c in batch.changes if c.path in live and live[c.path].acls]
    first = min((node.czxid for change, node in seen if isinstance(change, CreateNode)), default=0)
    return tuple(change.path for change, node in seen if _is_another(change, node, first))


def _is_another(change: Change, node: LiveNode, created: int) -> bool:
    if isinstance(change, CreateNode):
        return node.czxid != created or (node.version == 0 and node.data != change.data)
    return bool(change.czxid) and node.czxid != change.czxid


def _proves_done(found: Mapping[Change, BatchState]) -> bool:
    """The same node in the next version, with our data, is our doing. One that is missing, or new, may be anybody's."""
    return any(_is_set_of_known(c) and stands is BatchState.DONE for c, stands in found.items())


def _is_set_of_known(change: Change) -> bool:
    """Of a node that cannot be another one by now. The root has czxid 0, and nobody deletes it."""
    return isinstance(change, SetNode) and (bool(change.czxid) or not change.path)


def _made_at_once(found: Mapping[Change, BatchState], live: Mapping[bytes, LiveNode]) -> bool:
    """Whether one transaction left two nodes as this batch leaves them: nobody else writes just that at once."""
    done = [change.path for change, stands in found.items() if stands is BatchState.DONE]
    written = Counter(live[path].mzxid for path in done if path in live and live[path].acls)
    return any(nodes > 1 for nodes in written.values())


def _made_apart(batch: Batch, live: Mapping[bytes, LiveNode]) -> bool:
    """Whether nodes that this batch creates came with several transactions: then not all of them are its doing."""
    nodes = [live[c.path] for c in batch.changes if isinstance(c, CreateNode) and c.path in live]
    return len({node.czxid for node in nodes if node.acls}) > 1


def _standing(change: Change, node: LiveNode | None) -> BatchState:
    if node is not None and not node.acls:
        return _hidden_standing(change)
    if node is not None and not isinstance(change, CreateNode) and _is_another(change, node, 0):
        return BatchState.CHANGED
    if node is None and isinstance(change, SetNode | SetNodeAcls) and change.may_be_gone:
        return BatchState.DONE
    before, after = _before(change, node), _after(change, node)
    return BatchState.NOT_DONE if before else BatchState.DONE if after else BatchState.CHANGED


def _hidden_standing(change: Change) -> BatchState:
    """Of a node that only the server may look at: it is there, and the server's own check decides on its ACLs."""
    if isinstance(change, CreateNode):
        return BatchState.DONE
    return BatchState.NOT_DONE if isinstance(change, SetNodeAcls) else BatchState.CHANGED


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
