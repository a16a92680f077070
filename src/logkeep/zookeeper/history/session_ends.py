"""Ends of sessions told as deletions of the nodes that went with them. Pure.

Servers before 3.6 do not write which nodes those were. A node goes with the first end of its session behind its
creation: one session may be closed twice, by its client and by its expiry, and the second time nothing is left to take.
All events are of one run of transactions without a hole: what happened in a hole nobody knows, and a node that was
there before it may have been deleted in it.
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
    """For each node that its session's end took along: a deletion by that transaction."""
    ends: dict[int, list[Event]] = {}
    for closing in sorted(closings, key=lambda closing: closing.zxid):
        ends.setdefault(closing.session, []).append(closing)
    taken = ((node, _first_behind(node, ends.get(node.session, []))) for node in created)
    return [
        msgspec.structs.replace(end, op="delete", path=node.path, ephemeral=True)
        for node, end in taken
        if end is not None
    ]


def _first_behind(node: Event, ends: Sequence[Event]) -> Event | None:
    return next((end for end in ends if end.zxid > node.zxid), None)
