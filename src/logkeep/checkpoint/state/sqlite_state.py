"""State in a SQLite file: the default.

    state    key, value     user keys
    system   key, value     keys of the runtime
    applied  position       one row

Writes use SQLite's write-ahead log with `synchronous=NORMAL`: a transaction that the disk lost is applied again from
the partition's log, which is the truth. A snapshot is SQLite's online backup in one piece over a second connection: it
contains one moment, and writers continue meanwhile. Copying page by page would start again at every write.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from logkeep.checkpoint.state.backend import NOTHING, SnapshotInfo, Write
from logkeep.errors import Damaged, StoreError, StoreFull

TABLES = """
create table if not exists state (key text primary key, value blob not null) without rowid;
create table if not exists system (key text primary key, value blob not null) without rowid;
create table if not exists applied (one integer primary key check (one = 1), position integer not null);
"""
_SCHEMA = "select type, name, tbl_name, sql from sqlite_schema"
_VERSION = 1
_CACHE_KIB = 16 << 10
_PUT = {
    "state": "insert into state values (?, ?) on conflict (key) do update set value = excluded.value",
    "system": "insert into system values (?, ?) on conflict (key) do update set value = excluded.value",
}
_DELETE = {"state": "delete from state where key = ?", "system": "delete from system where key = ?"}


class SqliteState:
    """One partition's state in one file."""

    def __init__(self, path: Path) -> None:
        """Open or create it. Raises Damaged if the file is not a state of this application."""
        self._path, self._position = path, NOTHING
        self._open()

    @property
    def position(self) -> int:
        return self._position

    def get(self, key: str) -> bytes | None:
        return self._value("select value from state where key = ?", key)

    def get_system(self, key: str) -> bytes | None:
        return self._value("select value from system where key = ?", key)

    def apply(self, position: int, writes: Sequence[Write], system: Sequence[Write]) -> None:
        if position < self._position:
            raise ValueError(f"position {position} after {self._position}")
        try:
            self._database.execute("begin immediate")
            self._write("state", writes)
            self._write("system", system)
            self._database.execute("insert or replace into applied values (1, ?)", (position,))
            self._database.execute("commit")
        except BaseException as error:
            with suppress(sqlite3.Error):
                self._database.execute("rollback")
            _refuse_full(error, self._path)
            raise
        self._position = position

    def items(self) -> Iterator[tuple[str, bytes]]:
        return self._all("select key, value from state order by key")

    def system_items(self) -> Iterator[tuple[str, bytes]]:
        return self._all("select key, value from system order by key")

    def snapshot(self, path: Path) -> SnapshotInfo:
        if path.exists():
            raise FileExistsError(str(path))
        try:
            with closing(_connect(self._path)) as source, closing(sqlite3.connect(path)) as target:
                source.backup(target, pages=-1)
                target.execute("pragma journal_mode = delete")
                position = _position(target)
        except sqlite3.Error as error:
            _refuse_full(error, path)
            raise StoreError(f"SQLite made no snapshot of the state ({error})", subject=str(path)) from error
        _sync(path)
        return SnapshotInfo(position, path.stat().st_size)

    def load(self, path: Path) -> None:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as source:
            _check(source, path)
            self._database.execute("pragma wal_checkpoint(truncate)")
            source.backup(self._database, pages=-1)
        self._database.execute("pragma journal_mode = wal")
        self._position = _position(self._database)

    def close(self) -> None:
        self._database.close()

    def _open(self) -> None:
        self._database = _connect(self._path)
        try:
            self._database.executescript(TABLES)
            self._database.execute(f"pragma user_version = {_VERSION}")
            self._position = _position(self._database)
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise _damaged(self._path, error) from error

    def _write(self, table: str, writes: Sequence[Write]) -> None:
        for key, value in writes:
            if value is None:
                self._database.execute(_DELETE[table], (key,))
            else:
                self._database.execute(_PUT[table], (key, value))

    def _value(self, query: str, key: str) -> bytes | None:
        found = self._database.execute(query, (key,)).fetchone()
        return None if found is None else bytes(found[0])

    def _all(self, query: str) -> Iterator[tuple[str, bytes]]:
        with closing(_connect(self._path)) as database:
            for key, value in database.execute(query):
                yield key, bytes(value)


def read_key(path: Path, key: str) -> tuple[int, bytes | None]:
    """A user key of a state that another process may use, and the position of what was read. Raises Damaged."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=60)) as database:
            found = database.execute("select value from state where key = ?", (key,)).fetchone()
            return _position(database), None if found is None else bytes(found[0])
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error


def _connect(path: Path) -> sqlite3.Connection:
    try:
        # The thread that applies may be another one than the one that opened it; never two at once.
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = normal")
        database.execute(f"pragma cache_size = -{_CACHE_KIB}")
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error
    return database


def require_known_tables(database: sqlite3.Connection, path: Path) -> None:
    """Raises Damaged for a snapshot with anything else: SQLite would run its triggers, and read views without end."""
    database.execute("pragma trusted_schema = off")
    with closing(sqlite3.connect(":memory:")) as empty:
        empty.executescript(TABLES)
        expected = set(empty.execute(_SCHEMA))
    try:
        found = set(database.execute(_SCHEMA))
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error
    if found != expected:
        name = min((str(row[1]) for row in found ^ expected), default="")
        raise Damaged(f"the snapshot is not of this application: it differs in {name!r}", subject=str(path))


def _check(database: sqlite3.Connection, path: Path) -> None:
    require_known_tables(database, path)
    try:
        found = database.execute("pragma quick_check(1)").fetchone()[0]
        _position(database)
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error
    if found != "ok":
        raise Damaged(f"the snapshot is damaged ({found})", subject=str(path))


def _position(database: sqlite3.Connection) -> int:
    found = database.execute("select position from applied").fetchone()
    return NOTHING if found is None else int(found[0])


def _refuse_full(error: BaseException, path: Path) -> None:
    if isinstance(error, sqlite3.OperationalError) and "full" in str(error):
        raise StoreFull("no space is left for the state", subject=str(path)) from error


def _damaged(path: Path, error: sqlite3.DatabaseError) -> Damaged:
    remedy = "remove the file while the application is stopped: it is made again from the last snapshot and the log"
    return Damaged(f"the state cannot be read ({error})", subject=str(path), remedy=remedy)


def _sync(path: Path) -> None:
    """Make a new file and its name durable."""
    for one in (path, path.parent):
        descriptor = os.open(one, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
