"""Damaged logs and the past: what can be read is told, what cannot is named, and nothing is made up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged, ObjectMissing
from logkeep.model.work import Engine
from logkeep.zookeeper.history.around_damage import UnreadableTransactions, gaps_between, read_around
from logkeep.zookeeper.history.log_task import Depth, LogSearchUnit, WantedEvents
from logkeep.zookeeper.history.run import History, history
from logkeep.zookeeper.history.selection import select_logs
from logkeep.zookeeper.history.sql_rows import readable_units, rows
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot
from tests.support.zookeeper.handmade_history import MemoryView, Past, add_member, backup_of, epoch

PAST = Past([*epoch(1, 12), *epoch(3, 8)])
ALL = WantedEvents(b"/", Depth.EVERYTHING, 1000)


def _engine(_total_bytes: int = 0) -> Engine:
    return InlineEngine()


def _history(view: MemoryView, member: str | None = None) -> History:
    return history(view, ALL, _engine, member)


def _missing(view: MemoryView, member: str | None = None) -> tuple[UnreadableTransactions, ...]:
    return read_around(view, InlineEngine(), select_logs(view, _engine, member), ALL).missing


def _flipped(view: MemoryView, log: ArchivedLog, at: int, bit: int = 0) -> None:
    content = bytearray(view.objects[log])
    content[at] ^= 1 << bit
    view.objects[log] = bytes(content)


def _at(view: MemoryView, log: ArchivedLog, zxid: int) -> int:
    """A byte inside of a record."""
    return view.objects[log].index(PAST.records[zxid]) + 40


def test_a_bad_record_is_left_out_and_named() -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(PAST.zxids[:12], PAST.zxids[12:]))
    bad = (1 << 32) + 5
    _flipped(view, view.logs[0], _at(view, view.logs[0], bad))
    found = _history(view)
    assert [event.zxid for event in found.events] == [zxid for zxid in PAST.zxids if zxid != bad]
    (finding,) = found.findings
    assert (finding.code, finding.where) == ("log-damaged", "a/log.100000001")
    assert finding.what.startswith("transactions 0x100000005 to 0x100000005 cannot be read")
    assert found.searched == (("1", (1 << 32) + 1, bad - 1), ("1", bad + 1, (3 << 32) + 8))
    assert found.transactions == len(PAST.zxids) - 1


def test_rows_for_sql_are_the_same() -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(PAST.zxids,))
    bad = (3 << 32) + 2
    _flipped(view, view.logs[0], _at(view, view.logs[0], bad))
    readable = readable_units(view, InlineEngine(), select_logs(view, _engine))
    found = [zxid for unit in readable.units for batch in rows(unit) for zxid in batch["zxid"].to_pylist()]
    assert found == [zxid for zxid in PAST.zxids if zxid != bad]
    assert [(one.first, one.last) for one in readable.missing] == [(bad, bad)]


def test_another_member_has_what_one_lacks() -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(PAST.zxids,))
    add_member(view, PAST, snapshot_at=(), logs=(PAST.zxids[3:10],), member="b")
    for counter in (2, 5, 11):
        _flipped(view, view.logs[0], _at(view, view.logs[0], (1 << 32) + counter))
    found = _history(view)
    lost = {(1 << 32) + 2, (1 << 32) + 11}
    assert [event.zxid for event in found.events] == [zxid for zxid in PAST.zxids if zxid not in lost]
    assert {event.zxid for event in found.events if event.member == "b"} == {(1 << 32) + 5}
    assert {one.first for one in _missing(view)} == lost
    assert (1 << 32) + 5 in {one.first for one in _missing(view, "a")}


@dataclass
class _Without(MemoryView):
    """A store that has lost an object, or cannot unpack it."""

    gone: tuple[ArchivedLog, ...] = ()
    error: type[Damaged] | type[ObjectMissing] = ObjectMissing

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        if kept in self.gone:
            raise self.error("gone", subject="object")
        return super().open(kept)


def test_a_log_that_is_gone_is_missing_as_a_whole() -> None:
    whole = backup_of(PAST, snapshot_at=(0,), logs=(PAST.zxids[:4], PAST.zxids[4:]))
    for error in (Damaged, ObjectMissing):
        view = _Without("x", whole.members, whole.snapshots, whole.logs, whole.objects, (whole.logs[0],), error)
        found = _history(view)
        assert [event.zxid for event in found.events] == list(PAST.zxids[4:])
        assert [(one.first, one.last) for one in _missing(view)] == [(PAST.zxids[0], PAST.zxids[3])]
        assert "gone" in found.findings[0].what


def test_without_damage_nothing_is_missing() -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(PAST.zxids[:4], PAST.zxids[4:]))
    assert _history(view).findings == ()
    assert _missing(view) == ()


E1, E3 = 1 << 32, 3 << 32


@pytest.mark.parametrize(
    ("logs", "missing"),
    [
        ((PAST.zxids[:4], PAST.zxids[6:]), [(E1 + 5, E1 + 6)]),
        ((PAST.zxids[:12], PAST.zxids[14:]), [(E3 + 1, E3 + 2)]),
        ((PAST.zxids[:4], PAST.zxids[14:]), [(E3 + 1, E3 + 2)]),  # where epoch 1 ended is not known any more
    ],
)
def test_what_no_log_holds_between_others_is_told_without_any_damage(
    logs: tuple[Sequence[int], ...], missing: list[tuple[int, int]]
) -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=logs)
    view.logs[1:] = [msgspec.structs.replace(log, borders=()) for log in view.logs[1:]]
    view.objects.update(zip(view.logs, list(view.objects.values())[1:], strict=True))
    found = _history(view)
    assert [event.zxid for event in found.events] == [zxid for log in logs for zxid in log]
    assert [(one.first, one.last) for one in gaps_between(select_logs(view, _engine))] == missing
    assert [(f.code, f.severity) for f in found.findings] == [("lost-transactions", "damage")] * len(missing)
    assert all(f"{first:#x} to {last:#x}" in found.findings[n].what for n, (first, last) in enumerate(missing))


def test_the_lost_end_of_an_epoch_is_told_where_a_log_knows_how_it_ended() -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(PAST.zxids[:10], PAST.zxids[12:]))
    log = msgspec.structs.replace(view.logs[1], borders=((E1 + 12, E3 + 1),))
    view.objects[log] = view.objects[view.logs[1]]
    view.logs[1] = log
    assert [(one.first, one.last) for one in gaps_between(select_logs(view, _engine))] == [(E1 + 11, E1 + 12)]


def test_what_another_member_holds_is_not_missing() -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(PAST.zxids[:4], PAST.zxids[6:]))
    add_member(view, PAST, snapshot_at=(), logs=(PAST.zxids[2:8],), member="b")
    assert _history(view).findings == ()
    assert [(one.first, one.last) for one in gaps_between(select_logs(view, _engine, "a"))] == [(E1 + 5, E1 + 6)]


def test_a_hole_is_told_beside_damage() -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(PAST.zxids[:4], PAST.zxids[6:]))
    _flipped(view, view.logs[0], _at(view, view.logs[0], E1 + 2))
    assert [f.code for f in _history(view).findings] == ["log-damaged", "lost-transactions"]


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 7)), min_size=1, max_size=4), st.booleans())
def test_every_transaction_is_told_or_named(flips: list[tuple[int, int]], cut: bool) -> None:
    """Whatever happens to the bytes: an event is the true one, and what has none lies in a missing interval."""
    view = backup_of(PAST, snapshot_at=(0,), logs=(PAST.zxids[:7], PAST.zxids[7:]))
    for at, bit in flips:
        log = view.logs[at % 2]
        _flipped(view, log, at % len(view.objects[log]), bit)
    if cut:
        view.objects[view.logs[1]] = view.objects[view.logs[1]][: flips[0][0]]
    told = {event.zxid: event for event in _history(view).events}
    true = {event.zxid: event for event in _history(backup_of(PAST, snapshot_at=(0,), logs=(PAST.zxids,))).events}
    assert all(true[zxid].path == event.path and true[zxid].time_ms == event.time_ms for zxid, event in told.items())
    named = [(one.first, one.last) for one in _missing(view)]
    assert all(zxid in told or any(a <= zxid <= b for a, b in named) for zxid in PAST.zxids)


def test_a_unit_begins_where_it_is_said() -> None:
    view = backup_of(PAST, snapshot_at=(0,), logs=(PAST.zxids,))
    _flipped(view, view.logs[0], 20)
    units: tuple[LogSearchUnit, ...] = readable_units(view, InlineEngine(), select_logs(view, _engine)).units
    assert [(unit.piece.first, unit.start_at > 16) for unit in units] == [((1 << 32) + 2, True)]
