"""Ephemeral nodes whose creation only a snapshot has: the end of their session is their deletion too."""

from logkeep.engine.inline import InlineEngine
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Change, CloseSession, Create, Delete, Transaction
from logkeep.model.findings import Severity
from logkeep.model.work import Engine
from logkeep.zookeeper.history.log_task import Depth, WantedEvents
from logkeep.zookeeper.history.run import History, history
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.model.tree import new_tree, rows_of
from tests.support.zookeeper.encoding import body, record
from tests.support.zookeeper.handmade_history import MemoryView


def _engine(_total_bytes: int = 0) -> Engine:
    return InlineEngine()


def _view(*told: tuple[int, int, Change], snapshot_at: int | None = 10) -> MemoryView:
    """A snapshot with /a/leader, which session 7 owns, and a log from transaction 11 on."""
    view = MemoryView(members=[Member(name="a")])
    tree = new_tree(with_config=False)
    for zxid, path in ((8, b"/a"), (9, b"/a/leader")):
        made = Create(path, b"x", OPEN_ACL, path == b"/a/leader", 1)
        tree.apply(Transaction(7, 0, zxid, zxid, 1, made, None))
    if snapshot_at is not None:
        acls, rows = rows_of(tree)
        content = b"".join(exact_snapshot({7: 4000}, acls, rows, zxid=snapshot_at, digest=None))
        view.add_snapshot(content, snapshot_at, fuzzy_end=None, bound=snapshot_at)
    made_up = (Transaction(s, 0, z, z * 1000, kind, change, None) for z, (s, kind, change) in enumerate(told, 11))
    view.add_log([record(body(each)) for each in made_up])
    return view


def _history(view: MemoryView, path: bytes = b"/a/leader", depth: Depth = Depth.ITSELF, most: int = 100) -> History:
    return history(view, WantedEvents(path, depth, most), _engine)


def _told(found: History) -> list[tuple[int, str, str, str]]:
    return [(event.zxid, event.op, event.txn, event.path) for event in found.events]


ENDED = (7, -11, CloseSession(None))
OTHER = (8, -11, CloseSession(None))
AGAIN = (8, 1, Create(b"/a/leader", b"y", OPEN_ACL, True, 2))


def test_the_snapshot_tells_whose_session_it_was() -> None:
    deleted = (12, "delete", "closeSession", "/a/leader")
    found = _history(_view(OTHER, ENDED))
    assert (_told(found), found.total, found.findings) == ([deleted], 1, ())
    for path, depth in ((b"/a", Depth.CHILDREN), (b"/", Depth.EVERYTHING)):
        assert _told(_history(_view(OTHER, ENDED), path, depth)) == [deleted]
    assert _told(_history(_view(OTHER, ENDED), b"/", Depth.CHILDREN)) == []
    assert [one[:2] for one in _told(_history(_view(ENDED, AGAIN)))] == [(11, "delete"), (12, "create")]


def test_what_was_deleted_before_goes_with_no_session() -> None:
    view = _view((9, 2, Delete(b"/a/leader")), ENDED)
    assert _told(_history(view)) == [(11, "delete", "delete", "/a/leader")]


def test_where_older_changes_are_cut_off_it_is_told_that_nothing_was_looked_for() -> None:
    found = _history(_view((9, 2, Delete(b"/a/leader")), AGAIN, ENDED), most=1)
    assert [one[:2] for one in _told(found)] == [(12, "create")]
    assert [(one.where, one.severity) for one in found.findings] == [("--limit", Severity.WARNING)]


def test_without_a_snapshot_it_is_told_that_such_deletions_cannot_be_seen() -> None:
    found = _history(_view(OTHER, ENDED, snapshot_at=None))
    assert _told(found) == []
    (finding,) = found.findings
    assert (finding.code, finding.severity) == ("unseen-deletions", Severity.WARNING)
    assert "created before 0xb and deleted with their sessions up to 0xc" in finding.what


def test_a_later_snapshot_tells_what_it_still_has() -> None:
    found = _history(_view(OTHER, ENDED, snapshot_at=11))
    assert [one[:2] for one in _told(found)] == [(12, "delete")]
    assert "up to 0xb are not shown" in found.findings[0].what
