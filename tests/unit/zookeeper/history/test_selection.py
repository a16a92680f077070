"""What was never committed is no past: which transactions an answer is made of, and whose log they are read from."""

import msgspec
import pytest

from logkeep.cli.verbs.zookeeper.moment import damaged_if
from logkeep.engine.inline import InlineEngine
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Create, Transaction
from logkeep.model.findings import Severity
from logkeep.model.segments import Proof
from logkeep.model.work import Engine
from logkeep.zookeeper.history.log_task import Depth, WantedEvents
from logkeep.zookeeper.history.run import History, history
from logkeep.zookeeper.history.selection import select_logs
from logkeep.zookeeper.history.sql_rows import rows, units
from logkeep.zookeeper.model.archived import Member
from tests.support.zookeeper.encoding import body, record
from tests.support.zookeeper.handmade_history import MemoryView, Past, add_member, epoch

ALL = WantedEvents(b"/", Depth.EVERYTHING, 1000)
E1, E2 = 1 << 32, 2 << 32
COMMITTED = Past([*epoch(1, 5), *epoch(2, 4)])
CUT_OFF = Past(epoch(1, 8))
"""The same up to the fifth, then three that its member alone has."""


def _engine(_total_bytes: int = 0) -> Engine:
    return InlineEngine()


def _history(view: MemoryView, member: str | None = None) -> History:
    return history(view, ALL, _engine, member)


def _ensemble(*others: str) -> MemoryView:
    names = ("zk1", *others)
    view = MemoryView(members=[Member(name=name, role="follower", voters=3) for name in names])
    add_member(view, CUT_OFF, snapshot_at=(0,), logs=(CUT_OFF.zxids,), member="zk1", proof=Proof.UNPROVEN)
    for name in others:
        add_member(view, COMMITTED, snapshot_at=(0,), logs=(COMMITTED.zxids,), member=name)
    return view


def test_what_was_never_committed_is_left_out_and_named() -> None:
    found = _history(_ensemble("zk2", "zk3"))
    assert [event.zxid for event in found.events] == list(COMMITTED.zxids)
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.where) == ("never-committed", Severity.NOTE, "zk1")
    assert "0x100000006 to 0x100000008" in finding.what
    assert "proposed and never committed" in finding.what
    assert damaged_if(found.findings) == 0
    assert found.searched == (("1", E1 + 1, E2 + 4),)
    assert found.transactions == len(COMMITTED.zxids)


def test_a_query_in_sql_does_not_see_it_either() -> None:
    view = _ensemble("zk2", "zk3")
    chosen = select_logs(view, _engine)
    seen = [zxid for unit in units(view, chosen) for batch in rows(unit) for zxid in batch["zxid"].to_pylist()]
    assert seen == list(COMMITTED.zxids)
    assert [finding.code for finding in chosen.findings] == ["never-committed"]


def test_the_best_proven_log_is_read() -> None:
    found = _history(_ensemble("zk2", "zk3"))
    assert {event.proof for event in found.events} == {Proof.PROVEN}
    view = MemoryView(members=[Member(name=name) for name in "ab"])
    add_member(view, COMMITTED, snapshot_at=(), logs=(COMMITTED.zxids[:5],), member="a", proof=Proof.UNPROVEN)
    add_member(view, COMMITTED, snapshot_at=(), logs=(COMMITTED.zxids[2:4],), member="b")
    parts = [(part.log.member, part.first, part.last) for part in select_logs(view, _engine).parts]
    assert parts == [("a", E1 + 1, E1 + 2), ("b", E1 + 3, E1 + 4), ("a", E1 + 5, E1 + 5)]


def test_one_members_log_is_judged_by_all() -> None:
    found = _history(_ensemble("zk2", "zk3"), "zk1")
    assert [event.zxid for event in found.events] == epoch(1, 5)
    assert [finding.code for finding in found.findings] == ["never-committed"]
    assert _history(_ensemble("zk2", "zk3"), "zk2").findings == ()


def test_too_few_members_prove_no_end_of_an_epoch() -> None:
    """The other one may have been brought up to date by a snapshot, and lack what was committed."""
    found = _history(_ensemble("zk2"))
    (finding,) = found.findings
    assert (finding.code, finding.severity) == ("never-committed", Severity.WARNING)
    assert "are in the answer, and may never have been committed: zk2 continued without them" in finding.what
    assert {*epoch(1, 8)} <= {event.zxid for event in found.events}


@pytest.mark.parametrize("told_by", ["a proven log", "a snapshot", "an observer", "an unknown number of voters"])
def test_what_something_tells_to_be_committed_stays(told_by: str) -> None:
    """Two members that were brought up to date by snapshots are a majority too."""
    role = "observer" if told_by == "an observer" else "follower"
    voters = None if told_by == "an unknown number of voters" else 3
    members = [Member(name="zk1", role=role, voters=voters)]
    members += [Member(name=name, role="follower", voters=voters) for name in ("zk2", "zk3")]
    view = MemoryView(members=members)
    proof = Proof.PROVEN if told_by == "a proven log" else Proof.UNPROVEN
    at = (0, E1 + 7) if told_by == "a snapshot" else (0,)
    add_member(view, CUT_OFF, snapshot_at=at, logs=(CUT_OFF.zxids,), member="zk1", proof=proof)
    for name in ("zk2", "zk3"):
        add_member(view, COMMITTED, snapshot_at=(0,), logs=(COMMITTED.zxids,), member=name)
    found = _history(view)
    assert {*epoch(1, 8)} <= {event.zxid for event in found.events}
    assert [(one.code, one.severity) for one in found.findings] == [("never-committed", Severity.WARNING)]


def test_what_members_disagree_on_is_nobodys() -> None:
    view = MemoryView(members=[Member(name=name, role="follower", voters=3) for name in "ab"])
    add_member(view, COMMITTED, snapshot_at=(0,), logs=(COMMITTED.zxids[:5],), member="a")
    other = Transaction(9, 0, E1 + 3, 5, 1, Create(b"/other", b"", OPEN_ACL, False, 1), None)
    records = [record(body(other)) if z == E1 + 3 else COMMITTED.records[z] for z in COMMITTED.zxids[:5]]
    view.add_log(records, "b")
    found = _history(view)
    assert [event.zxid for event in found.events] == [E1 + 1, E1 + 2, E1 + 4, E1 + 5]
    assert [(one.code, one.where) for one in found.findings] == [("members-disagree", "a, b")]
    assert damaged_if(found.findings) == 10
    assert E1 + 3 in {event.zxid for event in _history(view, "b").events}


def test_the_end_of_an_epoch_is_read_where_another_member_lacks_it() -> None:
    """A log that goes on in the next epoch hides nothing of the one before."""
    view = MemoryView(members=[Member(name=name, role="follower", voters=3) for name in "abc"])
    synced = [*COMMITTED.zxids[:3], *COMMITTED.zxids[5:]]
    add_member(view, COMMITTED, snapshot_at=(0,), logs=(synced,), member="a")
    for name in "bc":
        add_member(view, COMMITTED, snapshot_at=(0,), logs=(COMMITTED.zxids,), member=name)
    found = _history(view)
    assert [event.zxid for event in found.events] == list(COMMITTED.zxids)
    assert found.findings == ()


def test_around_damage_a_log_is_looked_at_again_for_what_was_not_read_of_it() -> None:
    view = MemoryView(members=[Member(name=name) for name in "ab"])
    add_member(view, COMMITTED, snapshot_at=(), logs=(COMMITTED.zxids[:5],), member="a", proof=Proof.UNPROVEN)
    add_member(view, COMMITTED, snapshot_at=(), logs=(COMMITTED.zxids[2:5],), member="b")
    log = view.logs[1]
    bad = view.objects[log].index(COMMITTED.records[E1 + 4]) + 40
    view.objects[log] = view.objects[log][:bad] + b"\xff" + view.objects[log][bad + 1 :]
    found = _history(view)
    assert [(event.zxid, event.member) for event in found.events][2:] == [(E1 + 3, "b"), (E1 + 4, "a"), (E1 + 5, "b")]
    assert found.findings == ()


def test_borders_that_only_a_survey_tells_count() -> None:
    view = _ensemble("zk2", "zk3")
    for number, log in enumerate(view.logs):
        view.logs[number] = msgspec.structs.replace(log, borders=())
        view.objects[view.logs[number]] = view.objects[log]
    assert [event.zxid for event in _history(view).events] == list(COMMITTED.zxids)
