"""What an undo takes back, and which nodes it leaves alone because somebody else has changed them. Pure.

A node that is left alone keeps the nodes above it: what a restore created there cannot be deleted. And where a node is
gone and stays so, nothing can come back below it. All of these are named, and everything else is taken back.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from logkeep.zookeeper.server.client import LiveNode
from logkeep.zookeeper.subtree.batches import Batch, cut
from logkeep.zookeeper.subtree.changes import Change, CreateNode, DeleteNode, SetNodeAcls, undone


def came_about(done: Sequence[Batch], gone: Collection[int]) -> tuple[Batch, ...]:
    """Batches that there is something to take back of. `gone`: numbers of those that found their node gone by itself.

    A container that was gone comes back nevertheless where a node below it does, which was deleted before.
    """
    acted = [batch for number, batch in enumerate(done) if number not in gone]
    above = {upper for batch in acted for c in batch.changes if isinstance(c, DeleteNode) for upper in _above(c.path)}
    return tuple(
        batch
        for number, batch in enumerate(done)
        if number not in gone or (isinstance(batch.changes[0], DeleteNode) and batch.changes[0].path in above)
    )


def taken_back(done: Sequence[Batch], jute_maxbuffer: int, without: Collection[bytes] = ()) -> tuple[Batch, ...]:
    """What undoes these, the last one first; nothing is done to nodes `without`."""
    changes = [undone(change) for batch in reversed(done) for change in reversed(batch.changes)]
    return cut([change for change in _counted_anew(changes) if change.path not in without], jute_maxbuffer)


def _counted_anew(changes: Iterable[Change]) -> Iterator[Change]:
    """ACLs of a node that is created by these have version 0, whatever they had before it was deleted."""
    created = set[bytes]()
    for change in changes:
        if isinstance(change, CreateNode):
            created.add(change.path)
        new = isinstance(change, SetNodeAcls) and change.path in created
        yield replace(change, version=0, czxid=0) if new else change


def left_alone(done: Sequence[Batch], foreign: Collection[bytes], live: Mapping[bytes, LiveNode]) -> tuple[bytes, ...]:
    """`foreign`: nodes that somebody else has changed or may have; `live`: those of them that are there."""
    comes_or_goes = {c.path for batch in done for c in batch.changes if isinstance(c, CreateNode | DeleteNode)}
    kept = {upper for path in foreign if path in live for upper in _above(path)} & comes_or_goes
    missing = {path for path in foreign if path not in live}
    orphans = {path for path in comes_or_goes if not missing.isdisjoint(_above(path))}
    return tuple(sorted({*foreign, *kept, *orphans}))


def _above(path: bytes) -> set[bytes]:
    """The paths of all nodes above, without the root."""
    return {path[:end] for end, byte in enumerate(path) if byte == ord("/") and end}
