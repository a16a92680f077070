"""Who compares members' logs, and when: not the driver, not twice, and not for one member's word about itself."""

import pickle
from dataclasses import dataclass, field
from typing import BinaryIO

import msgspec
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Create, Transaction
from logkeep.model.segments import Proof
from logkeep.model.work import Engine
from logkeep.zookeeper.history.conflicts import LogPairUnit, compare_logs
from logkeep.zookeeper.history.log_task import Depth, WantedEvents
from logkeep.zookeeper.history.run import History, history
from logkeep.zookeeper.history.selection import select_logs
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, Member
from logkeep.zookeeper.timeline.survey import to_compare
from tests.support.zookeeper.encoding import body, record
from tests.support.zookeeper.handmade_history import MemoryView, Past, add_member, epoch

ALL = WantedEvents(b"/", Depth.EVERYTHING, 1000)
PAST = Past([*epoch(1, 5), *epoch(2, 4)])
CUT_OFF = Past(epoch(1, 8))
E1, E2 = 1 << 32, 2 << 32


@dataclass
class _Watched(MemoryView):
    opened: list[ArchivedSnapshot | ArchivedLog] = field(default_factory=list)

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        self.opened.append(kept)
        return super().open(kept)


@dataclass
class _Engines:
    """Tells for how many bytes an engine was asked."""

    asked: list[int] = field(default_factory=list)

    def __call__(self, total_bytes: int) -> Engine:
        self.asked.append(total_bytes)
        return InlineEngine()


def _ensemble() -> _Watched:
    """Two whose logs are the same bytes, and one that began a log in between."""
    view = _Watched(members=[Member(name=name, role="follower", voters=3) for name in "abc"])
    for name in "ab":
        add_member(view, PAST, snapshot_at=(0,), logs=(PAST.zxids,), member=name)
    add_member(view, PAST, snapshot_at=(0,), logs=(PAST.zxids[:3], PAST.zxids[3:]), member="c")
    return view


def test_the_same_bytes_are_not_compared() -> None:
    logs = _ensemble().logs
    pairs = {(left.member, right.member) for left, right in to_compare(logs)}
    assert pairs == {("a", "c"), ("b", "c")}
    unknown = [msgspec.structs.replace(log, sha256="") for log in logs]
    assert ("a", "b") in {(left.member, right.member) for left, right in to_compare(unknown)}


def test_logs_are_compared_by_tasks_of_an_engine_for_as_many_bytes() -> None:
    view, engines = _ensemble(), _Engines()
    assert select_logs(view, engines).findings == ()
    a, b, c1, c2 = (log.size_bytes for log in view.logs)
    assert engines.asked == [a + c1 + a + c2 + b + c1 + b + c2]
    assert len(view.opened) == 8
    alone, unused = MemoryView(members=[Member(name="a")]), _Engines()
    add_member(alone, PAST, snapshot_at=(0,), logs=(PAST.zxids,), member="a")
    assert (len(select_logs(alone, unused).parts), unused.asked) == (1, [])


def test_a_pair_travels_to_another_process() -> None:
    view = _diverged()
    unit = LogPairUnit(view, view.logs[0], view.logs[1])
    there = pickle.loads(pickle.dumps(unit))  # noqa: S301 - our own bytes, a line ago
    assert compare_logs(there, lambda _: None).runs == ((E2 + 1, E2 + 1),)


def test_for_one_member_nobodys_logs_are_compared() -> None:
    view = _ensemble()
    found = history(view, ALL, _Engines(), "c")
    assert [event.zxid for event in found.events] == list(PAST.zxids)
    assert {kept.member for kept in view.opened} == {"c"}


def _diverged() -> MemoryView:
    """The first epoch ended otherwise for a, and the second began with another transaction."""
    view = MemoryView(members=[Member(name=name, role="follower", voters=3) for name in "abc"])
    other = Transaction(9, 0, E2 + 1, 5, 1, Create(b"/other", b"", OPEN_ACL, False, 1), None)
    records = [*(CUT_OFF.records[zxid] for zxid in CUT_OFF.zxids), record(body(other))]
    view.add_log(records, "a", borders=((E1 + 8, E2 + 1),), proof=Proof.UNPROVEN)
    for name in "bc":
        add_member(view, PAST, snapshot_at=(0,), logs=(PAST.zxids,), member=name)
    return view


def _told(found: History) -> list[int]:
    return [event.zxid for event in found.events]


@pytest.mark.parametrize("member", ["a", "b"])
def test_who_holds_another_history_does_not_judge_a_members_own(member: str) -> None:
    """The others went on without the end of a's epoch, in a history that is not a's."""
    expected = {"a": [*epoch(1, 8), E2 + 1], "b": list(PAST.zxids)}
    assert _told(history(_diverged(), ALL, _Engines(), member)) == expected[member]
