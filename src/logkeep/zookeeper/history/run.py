"""The history of a znode: all creations, changes and deletions in the logs of a backup, in order.

Servers before 3.6 do not log which ephemeral nodes were deleted with a session. Where logs have such silent ends, a
second pass searches the ends of the sessions whose nodes are known, and reports them as deletions. The owner of a node
is known from a log, or else from a snapshot. Every run of transactions without a hole is searched on its own: nothing
is concluded across a hole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from logkeep.model.findings import Finding, Severity
from logkeep.model.work import Engine, EngineFor
from logkeep.zookeeper.history.around_damage import UNREADABLE, UnreadableTransactions, gaps_between, read_around
from logkeep.zookeeper.history.ephemeral_owners import find_earlier_nodes
from logkeep.zookeeper.history.log_task import Event, FoundEvents, LogSearchUnit, WantedEvents, find, find_closings
from logkeep.zookeeper.history.pieces import history_order, searched, transactions_in
from logkeep.zookeeper.history.selection import select_logs
from logkeep.zookeeper.history.session_ends import deletions, is_ephemeral_creation, without_end
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.model.findings import Class

_NOT_SEARCHED = Finding(
    code=Class.UNSEEN_DELETIONS,
    severity=Severity.WARNING,
    where="--limit",
    what="ends of sessions that owned nodes from before the oldest shown change were not searched: the nodes that were "
    "deleted with them are neither shown nor counted",
    remedy="a higher --limit shows all",
)


@dataclass(frozen=True)
class History:
    events: tuple[Event, ...]
    """The newest ones, in order."""
    total: int
    """Number of all events that were found."""
    searched: tuple[tuple[str, int, int], ...]
    """History, first and last zxid of each searched run."""
    transactions: int
    findings: tuple[Finding, ...] = ()
    """What is not in the answer: transactions that cannot be read, are missing, or were never committed."""


def history(view: BackupView, wanted: WantedEvents, engine_for: EngineFor, member: str | None = None) -> History:
    """Continues after damage and holes, which are in `findings`. Raises UsageError for an unknown member."""
    chosen = select_logs(view, engine_for, member)
    units = [LogSearchUnit(view, piece, wanted) for piece in chosen.parts]
    engine = engine_for(sum(unit.piece.log.size_bytes for unit in units))
    missing: Sequence[UnreadableTransactions] = gaps_between(chosen)
    try:
        found = _search(units, wanted, engine, member)
    except UNREADABLE:
        readable = read_around(view, engine, chosen, wanted)
        found, missing = _search(readable.units, wanted, engine, member), readable.missing
    return replace(found, findings=(*chosen.findings, *found.findings, *(one.finding for one in missing)))


@dataclass(frozen=True)
class _Run:
    """Transactions without a hole, and the events that were found in them."""

    units: tuple[LogSearchUnit, ...]
    shown: tuple[Event, ...]
    total: int
    ephemerals: int
    """Number of created ephemeral nodes, shown or not."""
    silent_from: int | None
    """See `FoundEvents.silent_from`."""

    @property
    def hides_creations(self) -> bool:
        """Whether there may be an ephemeral node whose creation is not shown."""
        return self.ephemerals > sum(map(is_ephemeral_creation, self.shown))


def _search(units: Sequence[LogSearchUnit], wanted: WantedEvents, engine: Engine, member: str | None) -> History:
    """Raises Damaged or ObjectMissing."""
    parts = [unit.piece for unit in units]
    found = engine.map(find, units, FoundEvents, label="history", weight=_weight)
    events = newest([event for one in found for event in one.events], wanted.most)
    shown, total, findings = events, sum(one.total for one in found), list[Finding]()
    for run in _runs(units, found, events):
        ended, unseen = _unlogged_deletions(run, wanted, engine, member)
        shown, total = newest([*shown, *ended], wanted.most), total + len(ended)
        findings += [finding for finding in unseen if finding not in findings]
    return History(tuple(shown), total, tuple(searched(parts)), sum(map(transactions_in, parts)), tuple(findings))


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


def _unlogged_deletions(
    run: _Run, wanted: WantedEvents, engine: Engine, member: str | None
) -> tuple[list[Event], list[Finding]]:
    """Deletions that no log names, and findings for those that are not known."""
    if run.silent_from is None:
        return [], []  # the logs name all deletions
    pieces = [unit.piece for unit in run.units]
    earlier = find_earlier_nodes(run.units[0].view, engine, wanted, pieces, run.silent_from, member)
    findings, nodes = list(earlier.findings), [*earlier.nodes, *run.shown]
    if run.total > len(run.shown):  # a deletion among the older events may come before a session's end
        findings += [_NOT_SEARCHED] if earlier.nodes or run.hides_creations else []
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
    """The sort keeps the order of changes within a transaction."""
    ordered = sorted(events, key=lambda event: (history_order(event.history), event.zxid))
    return ordered[max(len(ordered) - most, 0) :]


def _weight(unit: LogSearchUnit) -> int:
    return unit.piece.log.size_bytes
