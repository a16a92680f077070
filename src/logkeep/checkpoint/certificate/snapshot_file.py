"""Reads a snapshot that SQLite wrote: user keys in blocks, system keys as facts. Its hash was compared before.

state, system   key, value
applied         position
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import msgspec

from logkeep.checkpoint.certificate.tables import INDEX_BITS, SystemKeys
from logkeep.checkpoint.machine_state import MachineState, load
from logkeep.checkpoint.state.sqlite_state import require_known_tables
from logkeep.errors import Damaged

_MAGIC = b"SQLite format 3\0"
_BLOCK_ROWS = 8192
Item = tuple[str, bytes]


def is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def read_facts(path: Path, partition: int) -> SystemKeys:
    """Position, outbox, memory and low-water marks. Raises Damaged."""
    if not is_sqlite(path):
        return SystemKeys(partition, unknown=True, problem="its state backend has snapshots of its own format")
    with closing(_open(path)) as database:
        applied = list(_all(database, "select position from applied", path))
        machine = _machine(list(_all(database, "select key, value from system", path)), path)
        position = int(applied[0][0]) if len(applied) == 1 else -1
    return SystemKeys(
        partition,
        position,
        machine.checkpoint_id,
        tuple((receiver, _key(*key)) for receiver, waiting in machine.outbox.items() for key in waiting),
        {sender: [_key(*key) for key in known] for sender, known in machine.received.items()},
        dict(machine.lows),
    )


def user_items(path: Path) -> Iterator[list[Item]]:
    """All user keys, some thousand at a time. Raises Damaged."""
    with closing(_open(path)) as database:
        block: list[Item] = []
        for key, value in _all(database, "select key, value from state", path):
            block.append((key, bytes(value)))
            if len(block) == _BLOCK_ROWS:
                yield block
                block = []
        yield block


def _key(position: int, index: int) -> int:
    return (position << INDEX_BITS) | index


def _machine(rows: list[Item], path: Path) -> MachineState:
    empty = MachineState(bytes(16), "", 0, 0, 1)
    try:
        return load(empty, [(key, bytes(value)) for key, value in rows])
    except (msgspec.MsgspecError, ValueError, TypeError, AttributeError) as error:
        raise Damaged(f"its system keys cannot be read ({error})", subject=str(path)) from error


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
    try:
        require_known_tables(database, path)
    except Damaged:
        database.close()
        raise
    return database


def _all(database: sqlite3.Connection, query: str, path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        yield from database.execute(query)
    except sqlite3.DatabaseError as error:
        raise Damaged(f"the snapshot cannot be read ({error})", subject=str(path)) from error
