"""Each guard of the commit protocol by itself: take one away, and one of these tests fails."""

import hashlib
from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import BackupFailed, CommitConflict, LeaseLost
from logkeep.model.segments import Segment
from logkeep.repository.backups.backup import FinishedRun, begin
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain.commits import SourceRef, follow, put_checkpoint, read_chain, read_whole_chain
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect, decide
from logkeep.repository.upkeep.marks import StoredMark
from logkeep.store.base import ObjectInfo
from tests.support.faults.plan import Fault
from tests.support.faults.store import FaultyStore
from tests.support.scripted.backup import back_up, expected, log_of, restored
from tests.unit.repository.chain.test_walk import Lab


@pytest.fixture
def lab() -> Lab:
    return Lab()


class Once:
    """Something that happens elsewhere, right before a put whose name holds a text."""

    def __init__(self, text: str, happens: Callable[[], object]) -> None:
        self._text, self._happens, self._done = text, happens, False

    def __call__(self, number: int, operation: str, name: str) -> Fault | None:
        if operation == "put_new" and self._text in name and not self._done:
            self._done = True
            self._happens()
        return None


def sleepy(lab: Lab, text: str, happens: Callable[[], object]) -> SourceRef:
    """The repository as a process sees it that falls asleep before a certain put."""
    return SourceRef(FaultyStore(lab.store, Once(text, happens)), lab.place.repository, "prod")


def collected(lab: Lab, hours: int) -> int:
    lab.now += timedelta(hours=hours)
    with writing(lab.place, "gc", lab.clock, lab.token) as session:
        return collect(session, GarbageRules()).deleted


def test_the_fence_stops_a_commit_whose_manifest_was_swept(lab: Lab) -> None:
    """The lease was confirmed; then the writer slept for days, and its parts and manifest were nobody's."""
    first = lab.back_up({0: 4})

    def days_pass() -> None:
        assert collected(lab, 30) == 0
        assert collected(lab, 30) > 0

    with pytest.raises(CommitConflict):
        back_up(sleepy(lab, "/commits/", days_pass), {0: 9}, InlineEngine(), lab.clock, lab.token)
    assert [e.id for e in read_chain(lab.place).completed] == [first]
    newer = lab.back_up({0: 9}, resumed=True)
    assert restored(lab.place, newer) == expected({0: 9})


def test_an_object_that_was_marked_before_its_receipt_came_is_copied_again(lab: Lab) -> None:
    place = sleepy(lab, "/journal/", lambda: collected(lab, 30))
    with pytest.raises(LeaseLost):
        back_up(place, {0: 3}, InlineEngine(), lab.clock, lab.token)
    (marked,) = (n for n in lab.names() if "/topics/" in n)
    newer = lab.back_up({0: 3}, resumed=True)
    assert len([n for n in lab.names() if "/topics/" in n]) == 2, "it took what a mark names"
    collected(lab, 30)
    collected(lab, 30)
    assert marked not in lab.names()
    assert restored(lab.place, newer) == expected({0: 3})


def test_what_the_journal_of_a_slow_backup_names_is_not_swept(lab: Lab) -> None:
    def days_pass() -> None:
        assert collected(lab, 30) == 0
        assert collected(lab, 30) == 0

    with pytest.raises(LeaseLost):
        back_up(sleepy(lab, "/parts/", days_pass), {0: 9}, InlineEngine(), lab.clock, lab.token)
    copied = {n for n in lab.names() if "/topics/" in n}
    assert len(copied) == 3
    slow = lab.back_up({0: 9}, resumed=True)
    assert {n for n in lab.names() if "/topics/" in n} == copied, "finished work was lost"
    assert restored(lab.place, slow) == expected({0: 9})


def test_a_checkpoint_that_no_commit_pins_is_not_believed(lab: Lab) -> None:
    for end in (4, 8, 12):
        lab.back_up({0: end})
    lie: Folded = msgspec.structs.replace(follow(lab.place, Folded(), until=2), completed=())
    put_checkpoint(lab.place, lie, lab.token())
    assert read_chain(lab.place) == read_whole_chain(lab.place)


def test_a_hole_that_nobody_admits_to_is_no_backup(lab: Lab) -> None:
    first = lab.back_up({0: 4})
    with writing(lab.place, "backup", lab.clock, lab.token) as session:
        ongoing = begin(session, ensure_source(lab.place, "scripted", {"id": "s-1"}, lab.now))
        with pytest.raises(BackupFailed, match="no segment holds"):
            ongoing.complete(FinishedRun(cut=[LogCut(log_of(0), 0, 9)], new=[]))
    assert [e.id for e in read_chain(lab.place).completed] == [first]


@pytest.mark.parametrize(("stored", "what"), ((b"", "is missing"), (b"half", "4 bytes instead of 9")))
def test_an_object_that_is_not_there_whole_is_not_committed(lab: Lab, stored: bytes, what: str) -> None:
    digest = hashlib.sha256(b"").hexdigest()
    claim = Segment(
        log=log_of(0),
        start=0,
        end=9,
        first=0,
        token=lab.token(),
        records=9,
        stored_bytes=9,
        plain_bytes=9,
        base_time_ms=-1,
        max_time_ms=-1,
        sha256=digest,
        plain_sha256=digest,
    )
    if stored:
        root = "sources/prod/topics/scripted/history-1/partition=0"
        lab.store.put_new(f"{root}/{0:020d}.{claim.token}.log", stored)
    with writing(lab.place, "backup", lab.clock, lab.token) as session:
        ongoing = begin(session, ensure_source(lab.place, "scripted", {"id": "s-1"}, lab.now))
        with pytest.raises(BackupFailed, match=what):
            ongoing.complete(FinishedRun(cut=[LogCut(log_of(0), 0, 9)], new=[claim]))
    assert read_chain(lab.place).completed == ()


def test_what_was_marked_and_is_live_again_is_not_swept(lab: Lab) -> None:
    old, live = (ObjectInfo(name, 1, lab.now - timedelta(days=9), "1") for name in ("old", "live"))
    mark = StoredMark("mark", lab.now - timedelta(days=1), frozenset({"old", "live", "gone"}))
    assert decide([old], [mark], GarbageRules(), lab.now).to_sweep == (old,)
    assert live not in decide([old], [mark], GarbageRules(), lab.now).to_sweep


def test_stamps_that_are_a_moment_out_of_order_do_not_delay_who_waits_for_nothing(lab: Lab) -> None:
    moment = timedelta(milliseconds=1)
    late = ObjectInfo("late", 1, lab.now + moment, "1")
    mark = StoredMark("mark", lab.now + moment, frozenset({"late"}))
    at_once = GarbageRules(age=timedelta(0), interval=timedelta(0))
    assert decide([late], [], at_once, lab.now).to_mark == (late,)
    assert decide([late], [mark], at_once, lab.now).to_sweep == (late,)
