"""The changes of an undo, and the nodes that it leaves alone because another client has changed them. Pure.

The nodes above a node that is left alone cannot be deleted, and nothing can be created below a node that is missing.
All these nodes are reported; everything else is undone.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from logkeep.zookeeper.server.client import LiveNode
from logkeep.zookeeper.subtree.batches import Batch, cut_batches
from logkeep.zookeeper.subtree.changes import Change, CreateNode, DeleteNode, SetNodeAcls, reversed_change


def effective_batches(done: Sequence[Batch], gone: Collection[int]) -> tuple[Batch, ...]:
    """Batches that changed something. `gone`: numbers of batches whose node the server had removed by itself.

    The delete of a container that was gone counts if a node below it was deleted: the undo must create it again.
    """
    acted = [batch for number, batch in enumerate(done) if number not in gone]
    above = {upper for batch in acted for c in batch.changes if isinstance(c, DeleteNode) for upper in _above(c.path)}
    return tuple(
        batch
        for number, batch in enumerate(done)
        if number not in gone or (isinstance(batch.changes[0], DeleteNode) and batch.changes[0].path in above)
    )


def undo_batches(done: Sequence[Batch], jute_maxbuffer: int, without: Collection[bytes] = ()) -> tuple[Batch, ...]:
    """The batches that undo these, the last one first; the nodes `without` are not changed."""
    changes = [reversed_change(change) for batch in reversed(done) for change in reversed(batch.changes)]
    kept = [change for change in _with_new_versions(changes) if change.path not in without]
    return cut_batches(kept, jute_maxbuffer)


def _with_new_versions(changes: Iterable[Change]) -> Iterator[Change]:
    """ACLs of a node that these changes create have version 0, whatever it was before the delete."""
    created = set[bytes]()
    for change in changes:
        if isinstance(change, CreateNode):
            created.add(change.path)
        new = isinstance(change, SetNodeAcls) and change.path in created
        yield replace(change, version=0, czxid=0) if new else change


def left_alone(done: Sequence[Batch], foreign: Collection[bytes], live: Mapping[bytes, LiveNode]) -> tuple[bytes, ...]:
    """`foreign`: nodes that another client has changed or may have changed; `live`: those of them that exist."""
    comes_or_goes = {c.path for batch in done for c in batch.changes if isinstance(c, CreateNode | DeleteNode)}
    kept = {upper for path in foreign if path in live for upper in _above(path)} & comes_or_goes
    missing = {path for path in foreign if path not in live}
    orphans = {path for path in comes_or_goes if not missing.isdisjoint(_above(path))}
    return tuple(sorted({*foreign, *kept, *orphans}))


def _above(path: bytes) -> set[bytes]:
    """The paths of all nodes above, without the root."""
    return {path[:end] for end, byte in enumerate(path) if byte == ord("/") and end}
