"""Who made, changed and deleted a znode: what all logs of a backup say, in order.

Servers before 3.6 do not write which ephemeral nodes went with a session: where logs have such silent ends, those of
the sessions whose nodes are known are looked for in a second pass, and told as deletions. Whose they are, a log or else
a snapshot tells. Every run of transactions without a hole is looked at by itself: over a hole nothing is concluded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from logkeep.model.findings import Finding, Severity
from logkeep.model.work import Engine, EngineFor
from logkeep.zookeeper.history.around_damage import UNREADABLE, Missing, around, between
from logkeep.zookeeper.history.ephemeral_owners import owned_before
from logkeep.zookeeper.history.log_task import Event, FoundEvents, LogSearchUnit, WantedEvents, find, find_closings
from logkeep.zookeeper.history.pieces import history_order, searched, transactions_in
from logkeep.zookeeper.history.selection import choice
from logkeep.zookeeper.history.session_ends import deletions, is_ephemeral_creation, without_end
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.model.findings import Class

_NOT_LOOKED_FOR = Finding(
    code=Class.UNSEEN_DELETIONS,
    severity=Severity.WARNING,
    where="--limit",
    what="ends of sessions that owned nodes from before the oldest change that is shown were not looked for: what went "
    "with them is neither shown nor counted",
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


def history(view: BackupView, wanted: WantedEvents, engine_for: EngineFor, member: str | None = None) -> History:
    """Goes on behind damage and holes, which `findings` tells. Raises UsageError for a member that is not there."""
    chosen = choice(view, engine_for, member)
    units = [LogSearchUnit(view, piece, wanted) for piece in chosen.parts]
    engine = engine_for(sum(unit.piece.log.size_bytes for unit in units))
    missing: Sequence[Missing] = between(chosen)
    try:
        found = _searched(units, wanted, engine, member)
    except UNREADABLE:
        readable = around(view, engine, chosen, wanted)
        found, missing = _searched(readable.units, wanted, engine, member), readable.missing
    return replace(found, findings=(*chosen.findings, *found.findings, *(one.finding for one in missing)))


@dataclass(frozen=True)
class _Run:
    """Transactions without a hole, and what was found in them."""

    units: tuple[LogSearchUnit, ...]
    shown: tuple[Event, ...]
    total: int
    ephemerals: int
    """Of those that were created, shown or not."""
    silent_from: int | None
    """See `FoundEvents.silent_from`."""

    @property
    def hides_creations(self) -> bool:
        """Whether a node of a session may be there that nothing shown tells of."""
        return self.ephemerals > sum(map(is_ephemeral_creation, self.shown))


def _searched(units: Sequence[LogSearchUnit], wanted: WantedEvents, engine: Engine, member: str | None) -> History:
    """Raises Damaged, or ObjectMissing, where a log is."""
    parts = [unit.piece for unit in units]
    found = engine.map(find, units, FoundEvents, label="history", weight=_weight)
    events = newest([event for one in found for event in one.events], wanted.most)
    told, total, findings = events, sum(one.total for one in found), list[Finding]()
    for run in _runs(units, found, events):
        ended, unseen = _ended(run, wanted, engine, member)
        told, total = newest([*told, *ended], wanted.most), total + len(ended)
        findings += [finding for finding in unseen if finding not in findings]
    return History(tuple(told), total, tuple(searched(parts)), sum(map(transactions_in, parts)), tuple(findings))


def _runs(units: Sequence[LogSearchUnit], found: Sequence[FoundEvents], events: Sequence[Event]) -> list[_Run]:
    runs = list[_Run]()
    for history, first, last in searched([unit.piece for unit in units]):
        inside = [
            (unit, one)
            for unit, one in zip(units, found, strict=True)
            if unit.piece.log.history == history and first <= unit.piece.first <= last
        ]
        shown = tuple(event for event in events if event.history == history and first <= event.zxid <= last)
        total, ephemerals = sum(one.total for _, one in inside), sum(one.ephemerals for _, one in inside)
        silent = min((one.silent_from for _, one in inside if one.silent_from is not None), default=None)
        runs.append(_Run(tuple(unit for unit, _ in inside), shown, total, ephemerals, silent))
    return runs


def _ended(run: _Run, wanted: WantedEvents, engine: Engine, member: str | None) -> tuple[list[Event], list[Finding]]:
    """Deletions that no log writes, and what of them cannot be told."""
    if run.silent_from is None:
        return [], []  # the logs name all deletions
    pieces = [unit.piece for unit in run.units]
    owned = owned_before(run.units[0].view, engine, wanted, pieces, run.silent_from, member)
    findings, nodes = list(owned.findings), [*owned.nodes, *run.shown]
    if run.total > len(run.shown):  # a deletion among the older ones may have come before a session's end
        findings += [_NOT_LOOKED_FOR] if owned.nodes or run.hides_creations else []
        nodes = list(run.shown)
    left = without_end(nodes)
    if not left:
        return [], findings
    sessions = tuple(sorted({event.session for event in left}))
    asked = replace(wanted, most=len(sessions))
    again = [replace(unit, wanted=asked, sessions=sessions) for unit in run.units]
    closings = engine.map(find_closings, again, FoundEvents, label="sessions", weight=_weight)
    return deletions(left, [event for one in closings for event in one.events]), findings


def newest(events: Sequence[Event], most: int) -> list[Event]:
    """Sorting keeps the order of changes within a transaction."""
    ordered = sorted(events, key=_when)
    return ordered[max(len(ordered) - most, 0) :]


def _when(event: Event) -> tuple[tuple[int, str], int]:
    return history_order(event.history), event.zxid


def _weight(unit: LogSearchUnit) -> int:
    return unit.piece.log.size_bytes
