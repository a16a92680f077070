"""Who made, changed and deleted a znode: what all logs of a backup say, in order.

Servers before 3.6 do not write which ephemeral nodes went with a session: for nodes whose session is known, its end is
looked for in a second pass, and told as their deletion. Whose they are, a log or else a snapshot tells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from logkeep.model.findings import Finding, Severity
from logkeep.model.work import Engine, EngineFor
from logkeep.zookeeper.findings import Class
from logkeep.zookeeper.kept import BackupView
from logkeep.zookeeper.past.around import UNREADABLE, Missing, around, between
from logkeep.zookeeper.past.choice import choice
from logkeep.zookeeper.past.events import CREATES, DELETES, Event, Found, LogUnit, Wanted, find, find_closings
from logkeep.zookeeper.past.owned import owned_before
from logkeep.zookeeper.past.pieces import history_order, searched, transactions_in

_NOT_LOOKED_FOR = Finding(
    code=Class.UNSEEN_DELETIONS,
    severity=Severity.WARNING,
    where="--limit",
    what="ends of sessions that owned nodes from before the first log were not looked for: older changes are not shown",
    remedy="a higher --limit shows all",
)


@dataclass(frozen=True)
class History:
    events: tuple[Event, ...]
    """The newest, oldest of them first."""
    total: int
    """Of all events that were found."""
    searched: tuple[tuple[str, int, int], ...]
    """History, first and last zxid of what was looked through."""
    transactions: int
    findings: tuple[Finding, ...] = ()
    """What could not be read, is held by no log, or was never committed, and is not in the answer."""


def history(view: BackupView, wanted: Wanted, engine_for: EngineFor, member: str | None = None) -> History:
    """Goes on behind damage and holes, which `findings` tells. Raises UsageError for a member that is not there."""
    chosen = choice(view, member)
    units = [LogUnit(view, piece, wanted) for piece in chosen.parts]
    engine = engine_for(sum(unit.piece.log.size_bytes for unit in units))
    missing: Sequence[Missing] = between(chosen)
    owned = owned_before(view, wanted, chosen.parts)
    try:
        found = _searched(units, wanted, engine, owned.nodes)
    except UNREADABLE:
        readable = around(view, engine, chosen, wanted)
        found, missing = _searched(readable.units, wanted, engine, owned.nodes), readable.missing
    told = (*chosen.findings, *owned.findings, *found.findings, *(one.finding for one in missing))
    return replace(found, findings=told)


def _searched(units: Sequence[LogUnit], wanted: Wanted, engine: Engine, owned: Sequence[Event]) -> History:
    """`owned`: creations that are in no log. Raises Damaged, or ObjectMissing, where a log is."""
    parts = [unit.piece for unit in units]
    found = engine.map(find, units, Found, label="history", weight=_weight)
    events = newest([event for one in found for event in one.events], wanted.most)
    total = sum(one.total for one in found)
    cut = bool(owned) and total > len(events)  # a deletion among the older ones may have come before a session's end
    if left := without_end(events if cut else newest([*owned, *events], len(owned) + len(events))):
        sessions = tuple(sorted({event.session for event in left}))
        asked = replace(wanted, most=max(wanted.most, len(sessions)))
        again = [replace(unit, wanted=asked, sessions=sessions) for unit in units]
        closings = engine.map(find_closings, again, Found, label="sessions", weight=_weight)
        ended = deletions(left, [event for one in closings for event in one.events])
        events, total = newest([*events, *ended], wanted.most), total + len(ended)
    looked = tuple(searched(parts)), sum(map(transactions_in, parts))
    return History(tuple(events), total, *looked, (_NOT_LOOKED_FOR,) if cut else ())


def newest(events: Sequence[Event], most: int) -> list[Event]:
    """Sorting keeps the order of changes within a transaction."""
    ordered = sorted(events, key=_when)
    return ordered[max(len(ordered) - most, 0) :]


def without_end(events: Sequence[Event]) -> list[Event]:
    """Creations of ephemeral nodes that no deletion follows before the next creation."""
    open_ones: dict[tuple[str, str], Event] = {}
    left = []
    for event in events:
        node = event.history, event.path
        if event.op in (*CREATES, *DELETES) and (before := open_ones.pop(node, None)) is not None:
            left += [before] if event.op in CREATES else []
        if event.op in CREATES and event.ephemeral:
            open_ones[node] = event
    return [*left, *open_ones.values()]


def deletions(created: Sequence[Event], closings: Sequence[Event]) -> list[Event]:
    """For each node that its session's end took along: a deletion by that transaction."""
    ends = {(closing.history, closing.session): closing for closing in closings}
    taken = ((node, ends.get((node.history, node.session))) for node in created)
    return [
        msgspec.structs.replace(end, op="delete", path=node.path, ephemeral=True)
        for node, end in taken
        if end is not None and end.zxid > node.zxid
    ]


def _when(event: Event) -> tuple[tuple[int, str], int]:
    return history_order(event.history), event.zxid


def _weight(unit: LogUnit) -> int:
    return unit.piece.log.size_bytes
