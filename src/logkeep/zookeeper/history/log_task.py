"""Search one log for the changes of a path, with Arrow: the task that an engine runs for each log.

Memory: some megabytes of the log, and at most the requested number of events.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.changes import changes
from logkeep.formats.zookeeper.txnlog import tables
from logkeep.model.segments import Proof
from logkeep.model.work import Progress
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.model.paths import parsed_path
from logkeep.zookeeper.timeline.plan import Slice

CREATES: Final = ("create", "createContainer", "createTTL")
DELETES: Final = ("delete", "deleteContainer")
_FRAME_BYTES: Final = 13
"""Of a record, around its body."""
_SILENT: Final = (32, 44)
"""Sizes of a session's end without names of nodes: a header, and perhaps a digest. Servers that log the names log their
number, also 0. A record with one name of four bytes and no digest has the same size: it is searched needlessly."""


class Depth(StrEnum):
    """How far below a path events are searched; the path itself is always included."""

    ITSELF = "itself"
    CHILDREN = "children"
    EVERYTHING = "everything"


@dataclass(frozen=True)
class WantedEvents:
    path: bytes
    """As in logs: the root is `/`."""
    depth: Depth
    most: int
    """The maximum number of events, the newest; all are counted."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One change that was applied to one node."""

    zxid: int
    time_ms: int
    session: int
    txn: str
    """The type of the transaction: that of the change, or `multi`, or `closeSession`."""
    op: str
    path: str
    version: int | None
    data_bytes: int | None
    ephemeral: bool
    """Whether the node is known to be ephemeral: by its creation, or by the end of the session that deleted it."""
    member: str
    history: str
    proof: Proof


class FoundEvents(msgspec.Struct, frozen=True, kw_only=True):
    events: tuple[Event, ...]
    total: int
    ephemerals: int = 0
    """Number of creations of ephemeral nodes."""
    silent_from: int | None = None
    """The first end of a session that may have deleted nodes and does not name them."""


@dataclass(frozen=True)
class LogSearchUnit:
    """One task: a part of one log, and what is searched. `sessions`: search their ends instead of events of a path."""

    view: BackupView
    piece: Slice
    wanted: WantedEvents
    sessions: tuple[int, ...] = ()
    start_at: int = 0
    """The byte of the log at which the part begins, if there is damage before it; else the log is read from 0."""
    salvaged: bool = False
    """The log cannot be unpacked: the part, and the byte, are of the salvaged data."""


def wanted_path(text: str) -> bytes:
    """As in logs. One slash at the end is ignored. Raises UsageError for a text that is not the path of a znode."""
    return parsed_path(text.removesuffix("/") if text.strip("/") else text) or b"/"


def find(unit: LogSearchUnit, progress: Progress) -> FoundEvents:
    """The task. Raises Damaged."""
    silent = list[int]()

    def chosen(batch: pa.RecordBatch) -> pa.RecordBatch:
        if not silent:
            silent.extend(silent_ends(batch)["zxid"][:1].to_pylist())
        return matching(batch, unit.wanted)

    found = _newest(unit, chosen, progress)
    return msgspec.structs.replace(found, silent_from=silent[0] if silent else None)


def find_closings(unit: LogSearchUnit, progress: Progress) -> FoundEvents:
    """The task for sessions: the first silent end of each, because a session may be closed twice."""
    asked = set(unit.sessions)

    def ended(batch: pa.RecordBatch) -> pa.RecordBatch:
        closings = silent_ends(batch)
        if closings.num_rows:
            closings = closings.filter(pc.is_in(closings["session"], value_set=pa.array(asked, pa.int64())))
            _, firsts = np.unique(closings["session"].to_numpy(), return_index=True)
            closings = closings.take(pa.array(np.sort(firsts)))
            asked.difference_update(closings["session"].to_pylist())
        return closings

    return _newest(unit, ended, progress)


def silent_ends(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Ends of sessions that do not name the deleted nodes: of servers before 3.6, and of later ones with
    `closeSessionTxn.enabled` off, whether they write digests or not."""
    ends = batch.filter(pc.equal(batch["op"], "closeSession"))
    return ends.filter(pc.is_in(ends["record_bytes"], value_set=pa.array(_SILENT, pa.int64())))


def matching(batch: pa.RecordBatch, wanted: WantedEvents) -> pa.RecordBatch:
    """The changes that were applied to the path, without checks and failed multis."""
    paths, below = batch["path"], wanted.path.rstrip(b"/") + b"/"
    hit = pc.equal(paths, pa.scalar(wanted.path, pa.binary()))
    if wanted.depth is not Depth.ITSELF:
        lower = pc.starts_with(paths, below)
        if wanted.depth is Depth.CHILDREN:
            lower = pc.and_(lower, pc.equal(pc.count_substring(paths, b"/"), below.count(b"/")))
        hit = pc.or_(hit, lower)
    changed = pc.and_(batch["applied"], pc.not_equal(batch["op"], "check"))
    return batch.filter(pc.and_(pc.fill_null(hit, fill_value=False), changed))


def batches(unit: LogSearchUnit, progress: Progress) -> Iterator[pa.RecordBatch]:
    """All changes of the part of the log, some megabytes at a time."""
    first, last = unit.piece.first, unit.piece.last
    view, log = unit.view, unit.piece.log
    with view.salvage(log) if unit.salvaged else view.open(log) as source:
        for records in tables(source, start_at=unit.start_at):
            for batch in changes(records):
                within = pc.and_(pc.greater_equal(batch["zxid"], first), pc.less_equal(batch["zxid"], last))
                yield batch.filter(within)
            progress(int(records.body_bytes.sum()) + _FRAME_BYTES * len(records.zxid))
            if int(records.zxid[-1]) >= last:
                return  # damage after the part does not matter


def _newest(unit: LogSearchUnit, chosen: Callable[[pa.RecordBatch], pa.RecordBatch], progress: Progress) -> FoundEvents:
    kept, total, ephemerals = list[pa.RecordBatch](), 0, 0
    for batch in batches(unit, progress):
        found = chosen(batch)
        if found.num_rows:
            total += found.num_rows
            ephemerals += _made_ephemeral(found)
            table = pa.Table.from_batches([*kept, found])
            kept = table.slice(max(table.num_rows - unit.wanted.most, 0)).to_batches()
    rows = (row for batch in kept for row in _plain(batch).to_pylist())
    return FoundEvents(events=tuple(_event(row, unit) for row in rows), total=total, ephemerals=ephemerals)


def _made_ephemeral(batch: pa.RecordBatch) -> int:
    made = pc.is_in(batch["op"], value_set=pa.array(CREATES))
    return int(pc.sum(pc.and_(made, batch["ephemeral"])).as_py() or 0)


def _plain(batch: pa.RecordBatch) -> pa.Table:
    table = pa.Table.from_batches([batch])
    at = table.schema.get_field_index("time")
    return table.set_column(at, "time", table["time"].cast(pa.int64()))


def _event(row: dict[str, object], unit: LogSearchUnit) -> Event:
    log, path = unit.piece.log, row["path"]
    same = {name: row[name] for name in ("zxid", "session", "txn", "op", "version", "data_bytes")}
    ephemeral = row["ephemeral"] or (row["txn"] == "closeSession" and row["op"] in DELETES)
    named = shown(path) if isinstance(path, bytes) else ""
    more = {"time_ms": row["time"], "path": named, "member": log.member, "history": log.history, "proof": log.proof}
    return msgspec.convert({**same, **more, "ephemeral": ephemeral}, Event)
