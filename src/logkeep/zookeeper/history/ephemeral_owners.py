"""Ephemeral nodes that were made before the first transaction that is held: a snapshot knows whose they are.

Not every server writes which nodes went with a session. Where a node's creation is in no log, only a snapshot
tells the session whose end deleted it; what no snapshot tells is named, because the answer cannot have it. Snapshots
are fuzzy: one may lack a node that went with its session while it was written, so it speaks only for what was deleted
behind its window. What it has from within its window the logs tell themselves.

Memory: the nodes that were asked for, of one snapshot.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.formats.zookeeper.snapshot import NodeRow, SnapshotReader
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import Proof
from logkeep.model.work import Engine, Progress
from logkeep.zookeeper.history.around_damage import UNREADABLE
from logkeep.zookeeper.history.log_task import Depth, Event, WantedEvents
from logkeep.zookeeper.model.archived import ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.findings import Class
from logkeep.zookeeper.model.tree import is_ephemeral
from logkeep.zookeeper.timeline.holdings import FIRST_EVER
from logkeep.zookeeper.timeline.plan import Slice
from logkeep.zookeeper.timeline.reachable import base_of
from logkeep.zookeeper.timeline.replay import unpacked


@dataclass(frozen=True)
class Owned:
    nodes: tuple[Event, ...] = ()
    """Their creations, as a snapshot tells them: no log of the run holds these."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class SnapshotSearchUnit:
    """One task: the nodes of a snapshot that were made before a transaction."""

    view: BackupView
    snapshot: ArchivedSnapshot
    wanted: WantedEvents
    before: int


class Creations(msgspec.Struct, frozen=True, kw_only=True):
    events: tuple[Event, ...]
    is_readable: bool


@dataclass(frozen=True)
class WitnessSnapshot:
    """A snapshot that may tell. `blind_until`: what was deleted up to this one it may not have any more."""

    snapshot: ArchivedSnapshot
    blind_until: int


def owned_before(
    view: BackupView,
    engine: Engine,
    wanted: WantedEvents,
    run: Sequence[Slice],
    silent_from: int,
    member: str | None = None,
) -> Owned:
    """`run`: transactions without a hole, of which `silent_from` is the first that may delete what it does not name.
    `member`: only what this one holds."""
    first, last, history = run[0].first, run[-1].last, run[0].log.history
    if first in FIRST_EVER:
        return Owned()  # nothing was before
    kept = [one for one in view.snapshots if one.history == history and member in (None, one.member)]
    borders = {border for part in run for border in part.log.borders}
    for witness in witnesses(kept, first, last, borders):
        unit = SnapshotSearchUnit(view, witness.snapshot, wanted, first)
        (told,) = engine.map(owned, [unit], Creations, label="snapshot", weight=_weight)
        if told.is_readable:
            blind = witness.blind_until
            return Owned(told.events, (_unseen(history, first, blind),) if blind >= silent_from else ())
    return Owned(findings=(_unseen(history, first, last),))


def witnesses(
    kept: Sequence[ArchivedSnapshot], first: int, last: int, borders: Collection[tuple[int, int]]
) -> list[WitnessSnapshot]:
    """Of the snapshots of a history those that speak of a run, the best first: one from right before it has the most to
    tell, then the one that is blind for the shortest time."""
    found = list[tuple[bool, int, ArchivedSnapshot]]()
    for one in kept:
        is_later = not (one.zxid + 1 == first or (one.zxid, first) in borders)
        if is_later and not first <= one.zxid <= last:
            continue
        base = base_of(one, kept)
        settled = last if base is None else min(base.settled, last)
        is_exact = not is_later and (base is not None and base.settled <= one.zxid)
        found.append((is_later, first - 1 if is_exact else max(settled, one.zxid), one))
    found.sort(key=lambda told: (*told[:2], told[2].member))
    return [WitnessSnapshot(one, blind_until) for _, blind_until, one in found]


def owned(unit: SnapshotSearchUnit, progress: Progress) -> Creations:
    """The task. A snapshot that cannot be read to its end tells nothing."""
    try:
        events = tuple(_owned(unit))
    except UNREADABLE:
        return Creations(events=(), is_readable=False)
    progress(unit.snapshot.size_bytes)
    return Creations(events=events, is_readable=True)


def _owned(unit: SnapshotSearchUnit) -> Iterator[Event]:
    """Raises Damaged, or ObjectMissing, where the snapshot is."""
    with unit.view.open(unit.snapshot) as stored, unpacked(stored, unit.snapshot.name) as plain:
        reader = SnapshotReader(plain)
        sessions = reader.sessions()
        reader.acls()
        for row in reader.nodes():
            if row.czxid < unit.before and is_ephemeral(row.owner, sessions) and _is_wanted(row.path, unit.wanted):
                yield _creation(row, unit.snapshot)
        reader.ending()


def _is_wanted(path: bytes, wanted: WantedEvents) -> bool:
    below = wanted.path.rstrip(b"/") + b"/"
    if path == wanted.path or wanted.depth is Depth.ITSELF or not path.startswith(below):
        return path == wanted.path
    return wanted.depth is Depth.EVERYTHING or path.count(b"/") == below.count(b"/")


def _creation(row: NodeRow, base: ArchivedSnapshot) -> Event:
    return Event(
        zxid=row.czxid, time_ms=row.ctime, session=row.owner, txn="create", op="create", path=shown(row.path),
        version=0, data_bytes=None, ephemeral=True, member=base.member, history=base.history, proof=Proof.PROVEN,
    )  # fmt: skip


def _unseen(history: str, first: int, until: int) -> Finding:
    return Finding(
        code=Class.UNSEEN_DELETIONS,
        severity=Severity.WARNING,
        where=f"history {history}",
        what=f"an ephemeral node that was made before {hex_zxid(first)} and went with its session up to "
        f"{hex_zxid(until)} cannot be seen: this server did not write the names, and no snapshot that can be read is "
        f"exact right before {hex_zxid(first)}",
        remedy="an earlier backup may have its creation",
    )


def _weight(unit: SnapshotSearchUnit) -> int:
    return unit.snapshot.size_bytes
