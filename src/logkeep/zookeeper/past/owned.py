"""Ephemeral nodes that were made before the first transaction that is held: a snapshot knows whose they are.

Servers before 3.6 do not write which nodes went with a session. Where a node's creation is in no log, only a snapshot
tells the session whose end deleted it; what no snapshot tells is named, because the answer cannot have it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.formats.zookeeper.snapshot import NodeRow, SnapshotReader
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import Proof
from logkeep.zookeeper.coverage import FIRST_EVER
from logkeep.zookeeper.findings import Class
from logkeep.zookeeper.kept import BackupView, KeptSnapshot
from logkeep.zookeeper.past.around import UNREADABLE
from logkeep.zookeeper.past.events import Depth, Event, Wanted
from logkeep.zookeeper.past.pieces import searched
from logkeep.zookeeper.plan import Slice
from logkeep.zookeeper.replay import unpacked
from logkeep.zookeeper.tree import is_ephemeral


@dataclass(frozen=True)
class Owned:
    nodes: tuple[Event, ...] = ()
    """Their creations, as snapshots tell them: no log holds these."""
    findings: tuple[Finding, ...] = ()


def owned_before(view: BackupView, wanted: Wanted, parts: Sequence[Slice]) -> Owned:
    """`parts`: what is looked through."""
    nodes, findings = dict[tuple[str, str, int], Event](), list[Finding]()
    for history, first, last in searched(parts):
        of_run = [part for part in parts if part.log.history == history and first <= part.first <= last]
        if first in FIRST_EVER or all(part.log.digests for part in of_run):
            continue  # nothing was before, or the server is one that writes the names
        borders = {border for part in of_run for border in part.log.borders}
        of_history = sorted((s for s in view.snapshots if s.history == history), key=lambda s: s.zxid)
        exact = [s for s in of_history if s.zxid + 1 == first or (s.zxid, first) in borders]
        base = next(iter([*exact, *(s for s in of_history if first <= s.zxid <= last)]), None)
        try:
            told = [] if base is None else list(_owned(view, base, wanted, first))
        except UNREADABLE:
            base, told = None, []
        nodes.update({(node.history, node.path, node.zxid): node for node in told})
        if base is None or base not in exact:
            findings.append(_unseen(history, first, last if base is None else base.zxid))
    return Owned(tuple(nodes.values()), tuple(findings))


def _owned(view: BackupView, base: KeptSnapshot, wanted: Wanted, first: int) -> Iterator[Event]:
    """Raises Damaged, or ObjectMissing, where the snapshot is."""
    with view.open(base) as stored, unpacked(stored, base.name) as plain:
        reader = SnapshotReader(plain)
        sessions = reader.sessions()
        reader.acls()
        for row in reader.nodes():
            if row.czxid < first and is_ephemeral(row.owner, sessions) and _is_wanted(row.path, wanted):
                yield _creation(row, base)
        reader.ending()


def _is_wanted(path: bytes, wanted: Wanted) -> bool:
    below = wanted.path.rstrip(b"/") + b"/"
    if path == wanted.path or wanted.depth is Depth.ITSELF or not path.startswith(below):
        return path == wanted.path
    return wanted.depth is Depth.EVERYTHING or path.count(b"/") == below.count(b"/")


def _creation(row: NodeRow, base: KeptSnapshot) -> Event:
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
        f"{hex_zxid(until)} cannot be seen: this server did not write the names, and no snapshot from right before "
        f"{hex_zxid(first)} can be read",
        remedy="an earlier backup may have its creation",
    )
