"""Find the owners of ephemeral nodes that were created before the first archived transaction: snapshots have them.

Not every server logs which nodes were deleted with a session. If the creation of a node is in no log, only a snapshot
shows the session whose end deleted it. What no snapshot shows is reported, because the answer lacks it. Snapshots are
fuzzy: one may lack a node that was deleted with its session while it was written, so it only counts for deletions after
its window. Creations within its window are in the logs.

Memory: the wanted nodes of one snapshot.
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
class EarlierNodes:
    nodes: tuple[Event, ...] = ()
    """Their creations, from a snapshot: no log of the run holds these."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class SnapshotSearchUnit:
    """One task: the nodes of a snapshot that were created before a transaction."""

    view: BackupView
    snapshot: ArchivedSnapshot
    wanted: WantedEvents
    before: int


class Creations(msgspec.Struct, frozen=True, kw_only=True):
    events: tuple[Event, ...]
    is_readable: bool


@dataclass(frozen=True)
class OwnerSnapshot:
    """A snapshot that may have the owners. `blind_until`: it may lack nodes that were deleted up to this zxid."""

    snapshot: ArchivedSnapshot
    blind_until: int


def find_earlier_nodes(
    view: BackupView,
    engine: Engine,
    wanted: WantedEvents,
    run: Sequence[Slice],
    silent_from: int,
    member: str | None = None,
) -> EarlierNodes:
    """`run`: transactions without a hole; `silent_from` is the first that may delete nodes without naming them.
    `member`: only snapshots of this one."""
    first, last, history = run[0].first, run[-1].last, run[0].log.history
    if first in FIRST_EVER:
        return EarlierNodes()  # the history begins here
    kept = [one for one in view.snapshots if one.history == history and member in (None, one.member)]
    borders = {border for part in run for border in part.log.borders}
    for candidate in owner_snapshots(kept, first, last, borders):
        unit = SnapshotSearchUnit(view, candidate.snapshot, wanted, first)
        (found,) = engine.map(
            find_creations, [unit], Creations, label="snapshot", weight=lambda each: each.snapshot.size_bytes
        )
        if found.is_readable:
            blind = candidate.blind_until
            return EarlierNodes(found.events, (_unseen(history, first, blind),) if blind >= silent_from else ())
    return EarlierNodes(findings=(_unseen(history, first, last),))


def owner_snapshots(
    kept: Sequence[ArchivedSnapshot], first: int, last: int, borders: Collection[tuple[int, int]]
) -> list[OwnerSnapshot]:
    """The snapshots of a history that are of use for a run, the best first: one from right before the run, then the one
    with the lowest `blind_until`."""
    found = list[tuple[bool, int, ArchivedSnapshot]]()
    for one in kept:
        is_later = not (one.zxid + 1 == first or (one.zxid, first) in borders)
        if is_later and not first <= one.zxid <= last:
            continue
        base = base_of(one, kept)
        settled = last if base is None else min(base.settled, last)
        is_exact = not is_later and (base is not None and base.settled <= one.zxid)
        found.append((is_later, first - 1 if is_exact else max(settled, one.zxid), one))
    found.sort(key=lambda each: (*each[:2], each[2].member))
    return [OwnerSnapshot(one, blind_until) for _, blind_until, one in found]


def find_creations(unit: SnapshotSearchUnit, progress: Progress) -> Creations:
    """The task. A snapshot that cannot be read to its end is of no use."""
    try:
        events = tuple(_creations(unit))
    except UNREADABLE:
        return Creations(events=(), is_readable=False)
    progress(unit.snapshot.size_bytes)
    return Creations(events=events, is_readable=True)


def _creations(unit: SnapshotSearchUnit) -> Iterator[Event]:
    """Raises Damaged or ObjectMissing."""
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
        what=f"ephemeral nodes that were created before {hex_zxid(first)} and deleted with their sessions up to "
        f"{hex_zxid(until)} are not shown: this server did not log their names, and no readable snapshot is exact "
        f"right before {hex_zxid(first)}",
        remedy="an earlier backup may have their creation",
    )
