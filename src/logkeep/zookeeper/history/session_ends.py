"""Deletions of ephemeral nodes by the ends of their sessions. Pure.

Servers before 3.6 do not log which nodes those were. A node is deleted by the first end of its session after its
creation: a session may be closed twice, by its client and by its expiry, and the second end deletes nothing. All events
are of one run of transactions without a hole: a node from before a hole may have been deleted in it.
"""

from collections.abc import Sequence

import msgspec

from logkeep.zookeeper.history.log_task import CREATES, DELETES, Event


def without_end(events: Sequence[Event]) -> list[Event]:
    """Creations of ephemeral nodes that no deletion follows before the next creation."""
    open_ones: dict[str, Event] = {}
    left = []
    for event in events:
        if event.op in (*CREATES, *DELETES) and (before := open_ones.pop(event.path, None)) is not None:
            left += [before] if event.op in CREATES else []
        if is_ephemeral_creation(event):
            open_ones[event.path] = event
    return [*left, *open_ones.values()]


def is_ephemeral_creation(event: Event) -> bool:
    return event.ephemeral and event.op in CREATES


def deletions(created: Sequence[Event], closings: Sequence[Event]) -> list[Event]:
    """One deletion for each node that its session's end deleted, by that transaction."""
    ends: dict[int, list[Event]] = {}
    for closing in sorted(closings, key=lambda closing: closing.zxid):
        ends.setdefault(closing.session, []).append(closing)
    taken = (
        (node, next((end for end in ends.get(node.session, ()) if end.zxid > node.zxid), None)) for node in created
    )
    return [
        msgspec.structs.replace(end, op="delete", path=node.path, ephemeral=True)
        for node, end in taken
        if end is not None
    ]
