"""Snapshots of an application's state that whoever can write the store has prepared: SQLite runs nothing of them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from logkeep.checkpoint.certificate.snapshot_file import read_facts, user_items
from logkeep.checkpoint.state.backend import Write
from logkeep.checkpoint.state.sqlite_state import SqliteState
from logkeep.errors import Damaged

_PREPARED = {
    "trigger": "create trigger t after insert on state begin update state set value = x'99' where key = 'a'; end",
    "view": """drop table state; create view state as with recursive c(key, value) as (
        select 'a', x'00' union all select key, value from c) select * from c""",
    "table": "create table more (key text)",
    "index": "create index i on state (length(value))",
    "check": "drop table state; create table state (key text primary key, value blob not null check (value > x'01'))",
    "missing": "drop table system",
}


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    state = SqliteState(tmp_path / "state.sqlite")
    state.apply(7, [Write("a", b"1")], [])
    state.snapshot(tmp_path / "snapshot.sqlite")
    state.close()
    return tmp_path / "snapshot.sqlite"


def test_a_true_snapshot_is_read_and_loaded(snapshot: Path, tmp_path: Path) -> None:
    assert list(user_items(snapshot)) == [[("a", b"1")]]
    assert read_facts(snapshot, 0).position == 7
    restored = SqliteState(tmp_path / "restored.sqlite")
    restored.load(snapshot)
    assert (restored.position, restored.get("a")) == (7, b"1")
    restored.close()


@pytest.mark.parametrize("statement", _PREPARED.values(), ids=_PREPARED)
def test_a_prepared_one_is_neither_read_nor_loaded(snapshot: Path, tmp_path: Path, statement: str) -> None:
    with closing(sqlite3.connect(snapshot)) as database:
        database.executescript(statement)
    with pytest.raises(Damaged, match="not of this application"):
        next(user_items(snapshot))
    with pytest.raises(Damaged):
        read_facts(snapshot, 0)
    restored = SqliteState(tmp_path / "restored.sqlite")
    with pytest.raises(Damaged):
        restored.load(snapshot)
    restored.apply(8, [Write("b", b"2")], [])
    assert list(restored.items()) == [("b", b"2")]
    restored.close()
