"""Deletions that no log writes: each is told once, by the transaction that did it, or it is named that none can be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Change, CloseSession, Create, SetData, Transaction
from logkeep.model.work import Engine
from logkeep.zookeeper.history.ephemeral_owners import owner_snapshots
from logkeep.zookeeper.history.log_task import Depth, WantedEvents
from logkeep.zookeeper.history.run import History, history
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, Member
from logkeep.zookeeper.model.tree import new_tree, rows_of
from tests.support.zookeeper.encoding import body, record
from tests.support.zookeeper.handmade_history import MemoryView

PATH = b"/a/leader"
Told = tuple[int, int, Change]
"""Session, kind, change."""
MADE: Told = (7, 1, Create(PATH, b"x", OPEN_ACL, True, 1))
ENDED: Told = (7, -11, CloseSession(None))
NAMED: Told = (7, -11, CloseSession(()))
OTHER: Told = (8, -11, CloseSession(None))
WRITTEN: Told = (8, 5, SetData(PATH, b"y", 1))


@dataclass
class _View(MemoryView):
    broken: list[ArchivedSnapshot] = field(default_factory=list)

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        if kept in self.broken:
            raise Damaged("broken")
        return super().open(kept)


def _view(*logs: Mapping[int, Told]) -> _View:
    view = _View(members=[Member(name="a"), Member(name="b")])
    for log in logs:
        made = (Transaction(s, 0, zxid, zxid * 1000, kind, change, None) for zxid, (s, kind, change) in log.items())
        view.add_log([record(body(each)) for each in made])
    return view


def _snapshot(
    view: MemoryView, zxid: int, made: Mapping[bytes, tuple[int, int]], *, bound: int | None, member: str = "a"
) -> ArchivedSnapshot:
    """`made`: session and transaction of each ephemeral node. `bound`: where its window ends."""
    tree = new_tree(with_config=False)
    tree.apply(Transaction(1, 0, 1, 1, 1, Create(b"/a", b"", OPEN_ACL, False, 1), None))
    for path, (session, at) in made.items():
        tree.apply(Transaction(session, 0, at, at, 1, Create(path, b"x", OPEN_ACL, True, 1), None))
    acls, rows = rows_of(tree)
    content = b"".join(exact_snapshot({}, acls, rows, zxid=zxid, digest=None))
    return view.add_snapshot(content, zxid, member, fuzzy_end=None, bound=bound)


def _engine(_total_bytes: int = 0) -> Engine:
    return InlineEngine()


def _history(view: MemoryView, most: int = 100, member: str | None = None) -> History:
    return history(view, WantedEvents(PATH, Depth.ITSELF, most), _engine, member)


def _told(found: History) -> list[tuple[int, str, int]]:
    return [(event.zxid, event.op, event.session) for event in found.events]


def _unseen(found: History) -> list[str]:
    return [finding.what for finding in found.findings if finding.code == "unseen-deletions"]


CREATED, DELETED = (2, "create", 7), (21, "delete", 7)


def test_behind_a_hole_a_deletion_is_told_once() -> None:
    """A log has the creation, and so has the snapshot behind the hole."""
    view = _view({1: OTHER, 2: MADE}, {20: OTHER, 21: ENDED})
    _snapshot(view, 19, {PATH: (7, 2)}, bound=19)
    found = _history(view)
    assert (_told(found), found.total, _unseen(found)) == ([CREATED, DELETED], 2, [])


@pytest.mark.parametrize("end", [ENDED, NAMED])
def test_over_a_hole_nothing_is_concluded(end: Told) -> None:
    """In the hole somebody deleted the node: the snapshot behind it has none, and its session ended much later."""
    view = _view({1: OTHER, 2: MADE}, {20: OTHER, 21: end})
    _snapshot(view, 19, {}, bound=19)
    assert _told(_history(view)) == [CREATED]


def test_what_a_snapshot_had_before_a_hole_is_not_concluded_either() -> None:
    view = _view({11: OTHER}, {20: OTHER, 21: ENDED})
    _snapshot(view, 10, {PATH: (7, 2)}, bound=10)
    _snapshot(view, 19, {}, bound=19)
    assert _told(_history(view)) == []


def test_a_hole_that_damage_makes_counts_as_one() -> None:
    """The record that is lost may have deleted the node."""
    view = _view({1: OTHER, 2: MADE, 3: OTHER, 4: ENDED})
    content = view.objects[view.logs[0]]
    lost = Transaction(8, 0, 3, 3000, -11, CloseSession(None), None)
    bad = content.index(record(body(lost))) + 20
    view.objects[view.logs[0]] = content[:bad] + b"\xff" + content[bad + 1 :]
    found = _history(view)
    assert _told(found) == [CREATED]
    assert [finding.code for finding in found.findings] == ["unseen-deletions", "log-damaged"]
    assert "created before 0x4 and deleted with their sessions up to 0x4 are not shown" in _unseen(found)[0]


def test_a_session_that_is_closed_twice_took_its_nodes_along_the_first_time() -> None:
    assert _told(_history(_view({1: OTHER, 2: MADE, 3: ENDED, 4: OTHER, 5: ENDED}))) == [CREATED, (3, "delete", 7)]
    split = _view({1: OTHER, 2: MADE, 3: ENDED}, {4: OTHER, 5: ENDED})
    assert _told(_history(split)) == [CREATED, (3, "delete", 7)]
    assert _told(_history(split, most=1)) == [(3, "delete", 7)]


def test_a_snapshot_that_was_written_while_sessions_ended_does_not_speak_for_these() -> None:
    """Its window ends with 12: a node that went with its session at 11 may be in it, or not."""
    log = {11: ENDED, 12: OTHER, 13: OTHER}
    lacking, having = _view(log), _view(log)
    _snapshot(lacking, 10, {}, bound=12)
    _snapshot(having, 10, {PATH: (7, 2)}, bound=12)
    for view, told in ((lacking, []), (having, [(11, "delete", 7)])):
        found = _history(view)
        assert _told(found) == told
        (unseen,) = _unseen(found)
        assert "created before 0xb and deleted with their sessions up to 0xc are not shown" in unseen


def test_what_a_snapshot_has_from_within_its_window_the_log_tells() -> None:
    view = _view({11: MADE, 12: ENDED, 13: OTHER})
    _snapshot(view, 10, {PATH: (7, 11)}, bound=12)
    assert _told(_history(view)) == [(11, "create", 7), (12, "delete", 7)]


def test_where_one_snapshot_cannot_be_read_the_next_one_tells() -> None:
    view = _view({11: OTHER, 12: OTHER, 13: ENDED})
    first = _snapshot(view, 10, {PATH: (7, 2)}, bound=10)
    other = _snapshot(view, 10, {PATH: (7, 2)}, bound=10, member="b")
    later = _snapshot(view, 12, {PATH: (7, 2)}, bound=12)
    for broken, blind in ([first], ""), ([first, other], "up to 0xc"), ([first, other, later], "up to 0xd"):
        view.broken = broken
        found = _history(view)
        assert _told(found) == ([] if later in broken else [(13, "delete", 7)])
        assert all(blind in what for what in _unseen(found))
        assert bool(blind) == bool(_unseen(found))


def test_of_one_member_only_its_own_snapshots_speak() -> None:
    view = _view({11: OTHER, 12: ENDED})
    _snapshot(view, 10, {PATH: (7, 2)}, bound=10, member="b")
    assert _told(_history(view)) == [(12, "delete", 7)]
    assert _told(_history(view, member="a")) == []
    assert len(_unseen(_history(view, member="a"))) == 1


def test_the_best_witness_is_asked_first() -> None:
    view = MemoryView()
    for zxid, bound, member in ((10, 14, "a"), (10, 10, "b"), (12, 12, "c"), (9, 9, "d"), (10, None, "e")):
        _snapshot(view, zxid, {}, bound=bound, member=member)
    found = [(one.snapshot.member, one.blind_until) for one in owner_snapshots(view.snapshots, 11, 20, ())]
    assert found == [("b", 10), ("a", 14), ("e", 20), ("c", 12)]
    over = owner_snapshots(view.snapshots, (1 << 32) + 1, (1 << 32) + 5, {(9, (1 << 32) + 1)})
    assert [(one.snapshot.member, one.blind_until) for one in over] == [("d", 1 << 32)]


def test_a_deletion_behind_changes_that_hide_the_creation_is_not_kept_quiet() -> None:
    view = _view({1: OTHER, 2: MADE, 3: WRITTEN, 4: WRITTEN, 5: ENDED})
    assert (_told(_history(view))[-1], _unseen(_history(view))) == ((5, "delete", 7), [])
    cut = _history(view, most=2)
    assert _told(cut) == [(3, "setData", 8), (4, "setData", 8)]
    assert [finding.where for finding in cut.findings] == ["--limit"]
    assert _history(_view({1: NAMED, 2: MADE, 3: WRITTEN}), most=1).findings == ()
    assert _unseen(_history(_view({1: OTHER, 2: WRITTEN, 3: WRITTEN}), most=1)) == []


def test_a_newer_run_is_told_though_older_changes_are_hidden() -> None:
    view = _view({1: OTHER, 2: WRITTEN, 3: WRITTEN}, {20: OTHER, 21: ENDED})
    _snapshot(view, 19, {PATH: (7, 2)}, bound=19)
    assert _told(_history(view, most=1)) == [DELETED]


def test_a_server_that_writes_digests_may_be_silent_too() -> None:
    """`closeSessionTxn.enabled=false`: a digest, and no names."""
    view = _view()
    for zxid, (session, kind, change) in {11: OTHER, 12: ENDED}.items():
        made = Transaction(session, 0, zxid, zxid * 1000, kind, change, 4711)
        view.add_log([record(body(made))])
    assert all(log.digests for log in view.logs)
    _snapshot(view, 10, {PATH: (7, 2)}, bound=10)
    assert _told(_history(view)) == [(12, "delete", 7)]


@pytest.mark.parametrize("told", [NAMED, WRITTEN])
def test_where_no_end_is_silent_no_snapshot_is_read_and_nothing_unseen(told: Told) -> None:
    view = _view({11: told})
    view.broken = [_snapshot(view, 10, {PATH: (7, 2)}, bound=None)]
    assert _history(view).findings == ()


def test_a_snapshot_is_blind_only_where_a_silent_end_is() -> None:
    view = _view({11: WRITTEN, 12: NAMED, 13: ENDED})
    _snapshot(view, 10, {PATH: (7, 2)}, bound=12)
    found = _history(view)
    assert (_told(found), _unseen(found)) == ([(11, "setData", 8), (13, "delete", 7)], [])


@pytest.mark.parametrize("end", [None, (PATH,)])
def test_what_went_with_a_session_was_ephemeral_whether_it_is_named_or_not(end: tuple[bytes, ...] | None) -> None:
    found = _history(_view({1: OTHER, 2: MADE, 3: (7, -11, CloseSession(end))}))
    assert [(event.op, event.txn, event.ephemeral) for event in found.events] == [
        ("create", "create", True),
        ("delete", "closeSession", True),
    ]
