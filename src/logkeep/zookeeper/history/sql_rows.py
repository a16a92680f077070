"""The rows of the SQL view `transactions`: the changes in the logs of a backup."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from logkeep.formats.zookeeper.changes import as_text, hexadecimal
from logkeep.model.work import Engine
from logkeep.zookeeper.history.around_damage import Readable, read_around
from logkeep.zookeeper.history.log_task import Depth, LogSearchUnit, WantedEvents, batches
from logkeep.zookeeper.history.selection import HistorySelection
from logkeep.zookeeper.model.archived import BackupView

VIEW: Final = "transactions"
COLUMNS: Final = (
    "zxid bigint, time timestamp, session string, cxid int, txn string, part int, op string, path string, "
    "data_bytes bigint, version int, ephemeral boolean, applied boolean, error int, record_bytes bigint, "
    "member string, history string, proof string"
)
"""One row per change; a session is written as ZooKeeper's tools write it."""
_ALL: Final = WantedEvents(b"/", Depth.EVERYTHING, 1)


def units(view: BackupView, chosen: HistorySelection) -> list[LogSearchUnit]:
    """One for each log."""
    return [LogSearchUnit(view, piece, _ALL) for piece in chosen.parts]


def readable_units(view: BackupView, engine: Engine, chosen: HistorySelection) -> Readable:
    """The same around damage, with the missing transactions."""
    return read_around(view, engine, chosen, _ALL)


def rows(unit: LogSearchUnit) -> Iterator[pa.RecordBatch]:
    """All changes of one log, some megabytes at a time. Raises Damaged."""
    log = unit.piece.log
    for batch in batches(unit, lambda _: None):
        size = batch.num_rows
        named = {name: batch[name] for name in batch.schema.names}
        named["time"] = batch["time"].cast(pa.timestamp("us", "UTC"))
        named["session"], named["path"] = hexadecimal(batch["session"]), as_text(batch["path"])
        for name, value in (("member", log.member), ("history", log.history), ("proof", str(log.proof))):
            named[name] = pa.repeat(pa.scalar(value, pa.string()), size)
        yield pa.RecordBatch.from_pydict(named)
